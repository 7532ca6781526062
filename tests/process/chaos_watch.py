"""Looks at a cluster while faults go on: who leads, who claims a lease, who has ended without being
told to; and at the nodes' logs, who has voted for whom. Each rule is one that no fault excuses:

- a term of a group has one leader;
- while a lease is valid nobody of a higher term has led with a valid lease before: the higher term's
  leader has committed, so the older lease must be over, for good;
- a node votes for one candidate in a term, over all its restarts. The log is a witness, not the
  vote: a line is there before the vote is durable, and nothing has left the node until then. So a
  start in a lower term takes a vote back, and a start soon after a vote of its term leaves it open.
"""

import asyncio
import collections
import itertools
import json
import re
import time

import resp
from cluster import Failed
from load import LOST, Connection

POLL_SECONDS = 0.08
STATUS_TIMEOUT = 2.0

# A vote that is older than this is durable: longer than any stall of a disk.
DURABLE_SECONDS = 5.0

GROUP = r"(?:group (\d+), )?"  # where a node has many of them
VOTE = re.compile(GROUP + r"term (\d+): vote for node (\d+)")
ROLE = re.compile(GROUP + r"term (\d+): (\w+) -> (\w+): (.*)")
STARTED = "started"


class Violation(Failed):
    """What must never happen. The message says what was seen."""


class Claims:
    """Judges what nodes say about leaders and leases of one group; instants are the test's own."""

    def __init__(self):
        self._leaders = {}  # term: who leads it
        self._leases = {}   # term: (when its lease was surely valid first, at whom)

    def leads(self, term, leader, witness):
        known = self._leaders.setdefault(term, (leader, witness))
        if known[0] != leader:
            raise Violation(f"term {term} has two leaders: node {known[0]} ({known[1]}) and node "
                            f"{leader} ({witness})")

    def lease(self, node, term, asked, answered):
        """The node had a valid lease of the term at some instant between the two."""
        for other, (since, at) in self._leases.items():
            if other > term and since < asked:
                raise Violation(f"node {node} claims a lease of term {term}, "
                                f"{asked - since:.3f} s after node {at} had one of term {other}")
        if term not in self._leases:
            self._leases[term] = answered, node

    @property
    def terms(self):
        return len(self._leaders)


class LogReader:
    """Votes and leaders in a node's log, as it grows. `claims`: of each group."""

    def __init__(self, node, claims, clock=time.monotonic):
        self._node = node
        self._clock = clock
        self._claims = claims
        self._at = 0
        self._votes = {group: {} for group in claims}  # term: (for whom, when it was read)

    def became_another(self):
        """Call it when the node's process has ended, before its number changes: the next member that writes this log
        has voted for nobody."""
        self.read()
        self._votes = {group: {} for group in self._claims}

    def read(self):
        with open(self._node.log_path, "rb") as log:
            log.seek(self._at)
            data = log.read()
        whole = data.rfind(b"\n") + 1
        self._at += whole
        for line in data[:whole].decode("utf-8", "replace").splitlines():
            self.judge(line)

    def judge(self, line):
        if found := VOTE.search(line):
            if "pre-vote" not in line:
                self._vote(int(found[1] or 1), int(found[2]), int(found[3]))
        elif found := ROLE.search(line):
            group, term = int(found[1] or 1), int(found[2])
            if found[5] == STARTED:
                self._started(group, term)
            elif found[4] == "candidate":
                self._vote(group, term, self._node.id)
            elif found[4] == "leader":
                self._claims[group].leads(term, self._node.id, f"the log of {self._node}")

    def _started(self, group, term):
        now = self._clock()
        self._votes[group] = {at: vote for at, vote in self._votes[group].items() if at < term or (
            at == term and now - vote[1] > DURABLE_SECONDS)}

    def _vote(self, group, term, candidate):
        known, _ = self._votes[group].setdefault(term, (candidate, self._clock()))
        if known != candidate:
            raise Violation(f"{self._node} voted twice in term {term} of group {group}: for node {known} and for "
                            f"node {candidate}")


class Watch:
    """Polls every node until stop(). `expected_down(node)` says whether its end is somebody's
    doing."""

    def __init__(self, cluster, story, expected_down, groups=1):
        self._claims = {group: Claims() for group in range(1, groups + 1)}
        self._cluster = cluster
        self._story = story
        self._expected_down = expected_down
        self._newest = {group: {} for group in self._claims}
        self._readers = {node: LogReader(node, self._claims) for node in cluster.nodes}
        self._turn = itertools.cycle(self._claims)
        self._tasks = []
        self._over = False
        self.counts = collections.Counter()

    def start(self):
        self._tasks = [asyncio.create_task(self._poll(node)) for node in self._cluster.nodes]
        self._tasks.append(asyncio.create_task(self._read_logs()))

    def check(self):
        for task in self._tasks:
            if task.done():
                task.result()

    async def stop(self):
        self._over = True
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
        for reader in self._readers.values():
            reader.read()

    def becomes_another(self, node):
        """Its process has ended; its number will be another."""
        self._readers[node].became_another()
        self._forget(node)

    def all_answer(self):
        """Every node has answered the newest question about each group."""
        return all(len(newest) == len(self._cluster.nodes) for newest in self._newest.values())

    @property
    def terms(self):
        return sum(claims.terms for claims in self._claims.values())

    def leader(self):
        """The id of the node that said last that it leads the newest term, each time of another group; None: no
        node did."""
        leading = [(status["term"], node_id) for node_id, status in self._newest[next(self._turn)].items()
                   if status["role"] == "leader"]
        return max(leading)[1] if leading else None

    async def _read_logs(self):
        while not self._over:
            for reader in self._readers.values():
                reader.read()
            await asyncio.sleep(1)

    async def _poll(self, node):
        connection = None
        try:
            while not self._over:
                try:
                    if connection is None:
                        connection = await Connection.to(node).open()
                    for group in self._claims:
                        await self._ask(node, group, connection)
                except LOST:
                    if connection is not None:
                        connection.close()
                    connection = None
                    self._forget(node)
                    self._story.state(node.place, time.monotonic(), None, None)
                    self._look_whether_it_ended(node)
                await asyncio.sleep(POLL_SECONDS)
        finally:
            if connection is not None:
                connection.close()

    def _forget(self, node):
        for newest in self._newest.values():
            newest.pop(node.id, None)

    async def _ask(self, node, group, connection):
        claims, node_id = self._claims[group], node.id
        await connection.call("LEASEHOLD", "GROUP", group, timeout=STATUS_TIMEOUT)
        asked = time.monotonic()
        reply = await connection.call("LEASEHOLD", "STATUS", timeout=STATUS_TIMEOUT)
        answered = time.monotonic()
        if isinstance(reply, resp.RespError):
            return
        status = json.loads(reply)
        self._newest[group][node_id] = status
        self.counts["samples"] += 1
        leased = status["lease_left"] > 0
        if status["role"] == "leader":
            claims.leads(status["term"], node_id, "it says so")
        if status["leader"]:
            claims.leads(status["term"], status["leader"], f"node {node_id} says so")
        if leased:
            claims.lease(node_id, status["term"], asked, answered)
        if group == 1:
            self._story.state(node.place, answered, status["role"], status["term"], leased)

    def _look_whether_it_ended(self, node):
        if node.process is None or node.process.poll() is None or self._expected_down(node):
            return
        raise Violation(f"{node} ended by itself with status {node.process.poll()}")
