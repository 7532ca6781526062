"""A client that works while others misbehave, and complains about any error and any long wait."""

import time

from cluster import check

# An answer that takes longer is a disturbance: time for a large value to reach the disks of others,
# less than it takes to elect a leader.
LONGEST_SECONDS = 2.5


class GoodClient:
    """Writes and reads back one key at one node. step() runs on a thread of its own."""

    def __init__(self, node, slack):
        self._node = node
        self._limit = LONGEST_SECONDS * slack
        self._client = None
        self._rounds = 0
        self._longest = 0.0

    def step(self):
        if self._client is None:
            self._client = self._node.client()
        self._rounds += 1
        key = f"good:{self._node.id}"
        check(self._timed("SET", key, self._rounds) == "OK", "SET failed")
        check(self._timed("GET", key) == str(self._rounds).encode(), "GET gave another value")
        time.sleep(0.002)

    def _timed(self, *words):
        begun = time.monotonic()
        reply = self._client.call(*words)
        seconds = time.monotonic() - begun
        self._longest = max(self._longest, seconds)
        check(seconds < self._limit,
              f"{words[0]} at {self._node} took {seconds * 1000:.0f} ms")
        return reply

    def report(self):
        check(self._rounds > 0, "the good client did nothing")
        print(f"the good client at {self._node}: {self._rounds} rounds so far, the longest answer "
              f"took {self._longest * 1000:.0f} ms", flush=True)
