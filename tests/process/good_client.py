"""A client that works while others misbehave, and complains about any error and any long wait."""

import os
import threading
import time

from cluster import check

# An answer that takes longer is a disturbance. A write waits for the largest values of the tests, which
# three nodes write to one disk: on a machine with other work one took 3 s. hostile_clients.py judges short
# waits, and the term shows an election.
LONGEST_SECONDS = 5.0
PROBE_PAUSE_SECONDS = 0.05


class DiskProbe:
    """Measures how long the disk under `folder` lets a small write wait, without any node: a disk
    that other machines share may stall for seconds, and every write of every node with it."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "disk-probe")
        self._lock = threading.Lock()
        self._waits = []  # (begin, end), the newest last
        self._begun = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        with open(self._path, "wb", buffering=0) as file:
            while not self._over.wait(PROBE_PAUSE_SECONDS):
                with self._lock:
                    self._begun = time.monotonic()
                os.pwrite(file.fileno(), b"x" * 4096, 0)
                os.fdatasync(file.fileno())
                with self._lock:
                    self._waits.append((self._begun, time.monotonic()))
                    self._begun = None
                    del self._waits[:-1000]

    def longest_wait(self, begin, end):
        """Of one write, as far as it lies between these two."""
        with self._lock:
            waits = self._waits + ([(self._begun, end)] if self._begun is not None else [])
        return max([0.0] + [min(there, end) - max(here, begin) for here, there in waits])


class GoodClient:
    """Writes and reads back one key at one node. step() runs on a thread of its own."""

    def __init__(self, node, slack, disk):
        self._node = node
        self._limit = LONGEST_SECONDS * slack
        self._disk = disk
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
        end = time.monotonic()
        seconds = end - begun
        if seconds >= self._limit:
            of_the_disk = self._disk.longest_wait(begun, end)
            print(f"{words[0]} at {self._node} took {seconds * 1000:.0f} ms; the disk alone held a "
                  f"write of 4 KiB up for {of_the_disk * 1000:.0f} ms of these", flush=True)
            seconds -= of_the_disk
        self._longest = max(self._longest, seconds)
        check(seconds < self._limit,
              f"{words[0]} at {self._node} took {seconds * 1000:.0f} ms")
        return reply

    def report(self):
        check(self._rounds > 0, "the good client did nothing")
        print(f"the good client at {self._node}: {self._rounds} rounds so far, the longest answer "
              f"took {self._longest * 1000:.0f} ms", flush=True)
