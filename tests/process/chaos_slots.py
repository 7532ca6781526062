"""Slots move from group to group in a chaos run. When the faults of a round have ended, every move comes to its end by
itself, and each slot is in one group with all of its keys."""

import asyncio
import collections
import random
import time

import resp
import slots
from chaos_watch import Violation
from load import LOST, Connection
from slots import as_map, owners

# A move that has failed waits for up to 10 s until it is tried again, and a node does one after the other.
SETTLE_SECONDS = 60
CALL_SECONDS = 5.0
COMMAND_SECONDS = 5.0  # --command-timeout of a node
POLL_SECONDS = 0.1
# What a command of moves may be answered beside a number, and what is not executed or unknown. A move may have begun
# before it or, in a group that has just got the slot, the one that brought it may not have ended; a member that is new
# may not have heard of the level of its group.
REFUSALS = ("on their way", "on its way", "is frozen", "has not left", "is not of this group",
            "needs the group's level", "has no replica of group")


def without(first, last, staying):
    """The runs that are left of first to last."""
    runs = []
    for slot in sorted(staying):
        if first <= slot <= last:
            runs.append((first, slot - 1))
            first = slot + 1
    return [(begin, end) for begin, end in [*runs, (first, last)] if begin <= end]


class Moves:
    """Begins and cancels moves. `groups`: of each node."""

    def __init__(self, cluster, groups, seed, slack):
        self._cluster = cluster
        self._groups = groups
        self._limit = SETTLE_SECONDS * slack
        self._source = random.Random(f"{seed}:slots")
        self._layout = None  # once all have ended
        self.counts = collections.Counter()
        self.settled = []  # how long it took after each heal

    async def strike(self, detail, workload):
        """All moves of a fault at once, each by a node of its own."""
        staying = {slots.slot_of(key) for key in workload.staying_keys()}
        keys = workload.keys()
        asked = [(without(first, last, staying), to) for first, last, to in detail["moves"]]
        for share, to in detail["loaded"]:
            if keys:
                slot = slots.slot_of(keys[int(share * (len(keys) - 1) + 0.5)])
                asked.append(([(slot, slot)], to))
        await asyncio.gather(*(self._move(runs, to) for runs, to in asked if runs))
        if detail["cancel"] is not None:
            await asyncio.sleep(detail["cancel"])
            stay = await self._ask("CANCEL", f"0-{slots.COUNT - 1}")
            self.counts["cancelled"] += stay or 0

    async def _move(self, runs, to):
        words = [f"{first}-{last}" for first, last in runs]
        self.counts["begun"] += await self._ask("MOVE", *words, "TO", str(to)) or 0

    async def _ask(self, *words):
        """How many slots; None: it was refused, or the answer is not known."""
        node = self._source.choice(self._cluster.nodes)
        self.counts["commands"] += 1
        connection = Connection.to(node)
        try:
            await connection.open()
            reply = await connection.call("LEASEHOLD", "SLOTS", *words, timeout=CALL_SECONDS)
        except LOST:
            self.counts["no answer"] += 1
            return None
        finally:
            connection.close()
        if isinstance(reply, int):
            return reply
        if not (reply.not_executed or reply.unknown or any(text in reply.text for text in REFUSALS)):
            raise Violation(f"{node}: LEASEHOLD SLOTS {' '.join(words)} was answered {reply!r}")
        self.counts["refused" if reply.word == "ERR" else reply.word] += 1
        return None

    def begin(self):
        """Call it before the first round."""
        if self._groups > 1:
            self._layout = owners(self._cluster.nodes[0])

    def layout(self, node):
        """Of each slot its group, as a node knows it."""
        return owners(node) if self._groups > 1 else [1] * slots.COUNT

    def settle(self):
        """Waits until no slot moves and all nodes know of the same groups. Call it when all is healed."""
        if self._groups == 1:
            return
        begun = time.monotonic()
        while True:
            moving = self._moving()
            if not any(moving.values()):
                layouts = [owners(node) for node in self._cluster.nodes]
                if all(layout == layouts[0] for layout in layouts):
                    break
                moving = "none, but the nodes do not know of the same groups"
            if time.monotonic() > begun + self._limit:
                raise Violation(f"{self._limit:.0f} s after the heal slots move still: {moving}")
            time.sleep(POLL_SECONDS)
        self.settled.append(time.monotonic() - begun)
        if self._layout is not None:
            self.counts["in another group after a round"] += sum(a != b for a, b in zip(self._layout, layouts[0]))
        self._layout = layouts[0]

    def settle_for_good(self):
        """A move whose outcome its client does not know may begin as long as its node tries: also when settle() has
        looked for the last time."""
        if self._groups > 1:
            time.sleep(COMMAND_SECONDS)
            self.settle()

    def _moving(self):
        """What each node says of moves; what it says else, if it does not know."""
        found = {}
        for node in self._cluster.nodes:
            try:
                with node.client() as client:
                    reply = client.call("LEASEHOLD", "SLOTS")
                found[node] = reply if isinstance(reply, resp.RespError) else [as_map(run) for run in reply]
            except LOST as error:
                found[node] = str(error)
        return found

    def check_keys(self):
        """While nobody writes: no key is in two groups, and each group counts its own."""
        if self._groups == 1:
            return
        for node in self._cluster.nodes:
            with node.client(timeout=20) as client:
                listed, size = client.call("KEYS", "*"), client.call("DBSIZE")
            if isinstance(listed, resp.RespError) or isinstance(size, resp.RespError):
                raise Violation(f"{node}: KEYS was answered {listed!r:.200}, DBSIZE {size!r}")
            twice = [key for key, count in collections.Counter(listed).items() if count > 1]
            if twice:
                raise Violation(f"{node}: {len(twice)} keys are in two groups, of which {twice[:5]}")
            if len(listed) != size:
                raise Violation(f"{node}: it lists {len(listed)} keys and counts {size}")

    def check_kept(self):
        """After a start of all nodes each slot is where it was."""
        if self._layout is None:
            return
        for node in self._cluster.nodes:
            now = owners(node)
            wrong = [slot for slot in range(slots.COUNT) if now[slot] != self._layout[slot]]
            if wrong:
                raise Violation(f"{node}: {len(wrong)} slots are in other groups than before the start of all nodes, "
                                f"slot {wrong[0]} of group {self._layout[wrong[0]]} first")
