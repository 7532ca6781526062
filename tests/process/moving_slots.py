"""Slots that move from group to group all the while, and how long nobody serves one."""

import random
import statistics
import time

import resp
import slots
from cluster import Background, check, wait_for

PROBE = "moving:probe"
LOST = (resp.ConnectionLost, resp.TimedOut)
# A run of slots that moves together with that of the probe, of at most one move.
RUN_MAX = 1000
# A node that is killed may have been about to move them.
MOVE_SECONDS = 30


class MovingSlots(Background):
    """One move after the other, each by another node, until the block ends."""

    def __init__(self, cluster, groups):
        super().__init__(self._move)
        self._cluster = cluster
        self._groups = groups
        self._to = 0
        self.slots = 0
        self.frozen = []  # of each move that was seen whole: for how long its slots were refused

    def _move(self):
        node = random.choice([node for node in self._cluster.nodes if node.running] or self._cluster.nodes)
        first = random.randrange(slots.COUNT - RUN_MAX)
        self._to = random.choice([group for group in range(1, self._groups + 1) if group != self._to])
        try:
            with node.client() as client:
                reply = client.call("LEASEHOLD", "SLOTS", "MOVE", f"{first}-{first + random.randrange(RUN_MAX)}",
                                    slots.slot_of(PROBE), "TO", self._to)
                if isinstance(reply, int):
                    self.slots += reply
                else:
                    check(reply.not_executed or reply.unknown or "on its way" in reply.text,
                          f"LEASEHOLD SLOTS MOVE was answered {reply!r}")
                self._follow(client)
        except LOST:
            time.sleep(0.1)

    def _follow(self, client):
        """Asks for a key of a slot that moves until all moves have ended, or a node is away."""
        refused = []
        end = time.monotonic() + MOVE_SECONDS
        while time.monotonic() < end:
            asked = time.monotonic()
            read, moves = client.pipeline([("GET", PROBE), ("LEASEHOLD", "SLOTS")])
            if isinstance(read, resp.RespError):
                if "slot" not in read.text:
                    return  # the group has no leader: this is no time of a move
                refused += [asked, time.monotonic()]
            if moves == []:
                if refused:
                    self.frozen.append(refused[-1] - refused[0])
                return
            time.sleep(0.0002)

    def settle(self, seconds):
        """After the block: no slot moves, and all nodes know of the same groups."""
        def settled():
            for node in self._cluster.nodes:
                with node.client() as client:
                    if client.call("LEASEHOLD", "SLOTS") != []:
                        return False
            layouts = [slots.owners(node) for node in self._cluster.nodes]
            return all(layout == layouts[0] for layout in layouts)
        wait_for("the ends of all moves", MOVE_SECONDS + seconds, settled, pause=0.1)

    def summary(self):
        if not self.frozen:
            return f"{self.slots} slots began to move"
        times = sorted(self.frozen)
        return (f"{self.slots} slots began to move; in {len(times)} moves a slot was refused for "
                f"{statistics.median(times) * 1000:.1f} ms (median), "
                f"{times[int(len(times) * 0.9)] * 1000:.1f} ms (p90), {times[-1] * 1000:.1f} ms (longest)")
