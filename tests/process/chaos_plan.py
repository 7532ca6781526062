"""What happens in a chaos run, and when: a pure function of the seed, the round, the classes of
faults and the numbers of nodes and groups. Nothing here looks at a cluster or a clock. Which node leads is
seen when a fault strikes; the plan only says that the leader is meant."""

import dataclasses
import random

import slots

CLASSES = ("kill", "pause", "starve", "partition", "proxy", "drift", "jump", "power", "disk",
           "transfer", "replace", "slots")
# Those that take hold of a whole process: one at a time on each node.
OF_A_PROCESS = ("kill", "pause", "starve", "power", "disk")
LEADER = "leader"

# Jumps of a clock for which the process is stopped.
STOPS = ("suspended", "machine stopped")

ROUND_SECONDS = (20, 32)
# With the default timing a lease lasts 1 s, an election timeout 0.3 s: far below, near, far above.
PAUSES = (0.05, 0.3, 0.9, 1.1, 1.5, 3.0, 5.0)
DOWN_TIMES = (0.0, 0.2, 1.0, 3.0)
CUT_TIMES = (0.3, 0.8, 1.2, 2.0, 4.0, 8.0)
GAPS = (0.1, 0.4, 0.8, 1.5, 2.5)
# The bound that the program is started with is 10 %; both clocks of a node stay inside.
DRIFT_PPM = 99_000
# How many slots a command moves: one, those of few keys, those of several moves.
RUNS = (1, 10, 100, 600, 3000)

PROXY_KINDS = {
    "slow": {"delay": (0.005, 0.08)},
    "very slow": {"delay": (0.1, 1.5)},
    "out of order": {"delay": (0.0, 0.15), "keep_order": False},
    "doubling": {"double": 0.3, "delay": (0.0, 0.03), "keep_order": False},
    "replaying": {"replay": 0.2, "delay": (0.0, 0.05), "keep_order": False},
    "lossy": {"lose": 0.2},
    "cutting": {"cut": 0.01},
    "everything": {"delay": (0.0, 0.2), "keep_order": False, "double": 0.1, "lose": 0.05,
                   "replay": 0.1, "cut": 0.002},
}


@dataclasses.dataclass
class Fault:
    """`at` and `lasts` in seconds of the round. `node`: a place, which is the number of its first member; LEADER;
    or None where the fault has no one place."""
    at: float
    lasts: float
    kind: str
    node: object
    what: str
    detail: dict

    def __str__(self):
        where = {None: "", LEADER: " at the leader"}.get(self.node, f" at node {self.node}")
        detail = "".join(f", {name} {value}" for name, value in self.detail.items())
        return f"{self.at:6.2f} s  {self.kind}: {self.what}{where} for {self.lasts:.2f} s{detail}"


class Plan:
    """One round: `seconds` of faults, of the classes that this round has drawn."""

    def __init__(self, seed, number, classes, size, groups=1):
        self._source = random.Random(f"{seed}:{number}:{size}:{','.join(classes)}")
        self._nodes = list(range(1, size + 1))
        self._groups = groups
        self.number = number
        self.seconds = self._source.uniform(*ROUND_SECONDS)
        # Not all classes every time, so that rare mixtures happen.
        self.classes = [name for name in classes if self._source.random() < 0.6]
        if len(self.classes) < 2:
            self.classes = list(classes)
        self.faults = []
        of_a_process = [name for name in self.classes if name in OF_A_PROCESS]
        if of_a_process:
            self._lane(of_a_process, 0)
            if self._source.random() < 0.5:  # two at once: often nobody has a quorum
                self._lane(of_a_process, 3)
        for name in self.classes:
            if name not in OF_A_PROCESS:
                self._lane([name], 0)
        self.faults.sort(key=lambda fault: fault.at)

    def shortened(self, seconds):
        """Only what begins and ends in the first `seconds`, for the last round of a run."""
        self.seconds = min(self.seconds, seconds)
        self.faults = [fault for fault in self.faults if fault.at + fault.lasts <= self.seconds]

    def _lane(self, names, extra_gap):
        """One fault after the other."""
        at = self._source.choice(GAPS)
        while True:
            fault = getattr(self, "_" + self._source.choice(names))(at)
            if at + fault.lasts > self.seconds:
                return
            self.faults.append(fault)
            at += fault.lasts + self._source.choice(GAPS) + extra_gap

    def _victim(self):
        leader = self._source.random() < 0.5
        node = self._source.choice(self._nodes)
        return LEADER if leader else node

    def _kill(self, at):
        return Fault(at, self._source.choice(DOWN_TIMES), "kill", self._victim(), "kill -9", {})

    def _replace(self, at):
        """`lasts` until its removal begins. `late`: the new process starts so long after the command that adds it."""
        return Fault(at, self._source.choice(DOWN_TIMES), "replace", self._victim(), "disk lost",
                     {"address": self._source.choice(("same", "another")),
                      "late": self._source.choice((0.0, 0.0, 1.0, 4.0))})

    def _pause(self, at):
        return Fault(at, self._source.choice(PAUSES), "pause", self._victim(), "stopped", {})

    def _starve(self, at):
        return Fault(at, self._source.choice((1.0, 3.0, 5.0)), "starve", self._victim(), "starved",
                     {"percent": self._source.choice((2, 5, 10, 30))})

    def _power(self, at):
        every = self._source.random() < 0.2
        victim = self._victim()
        return Fault(at, self._source.choice(DOWN_TIMES), "power", None if every else victim,
                     "power cut of all" if every else "power cut", {})

    def _disk(self, at):
        what = self._source.choice(("stalls", "stalls", "fails", "full"))
        victim = self._victim()
        if what == "stalls":
            return Fault(at, self._source.choice((1.0, 2.0, 4.0)), "disk", victim, "disk stalls",
                         {"stall": self._source.choice((0.05, 0.3, 1.0, 3.0)),
                          "syncs": self._source.choice((1, 3, 20))})
        if what == "full":
            return Fault(at, self._source.choice((1.0, 3.0)), "disk", victim, "disk full", {})
        return Fault(at, 2.0, "disk", victim, "sync fails",
                     {"error": self._source.choice(("EIO", "ENOSPC", "EDQUOT"))})

    def _transfer(self, at):
        return Fault(at, self._source.choice((0.1, 1.0, 2.0)), "transfer", LEADER, "transferred",
                     {})

    def _slots(self, at):
        """`moves`: runs of slots, and to which group. `loaded`: keys of the load, as shares of their list, and to which
        group. All of these are sent at once. `cancel`: when the moves of all slots are cancelled; None: never."""
        what = self._source.choice(("moved",) * 4 + ("moved, cancelled",))
        moves = [self._run_of_slots() for _ in range(self._source.choice((0, 1, 1, 2, 4)))]
        loaded = [(round(self._source.random(), 2), self._group()) for _ in range(self._source.choice((1, 2, 4)))]
        return Fault(at, self._source.choice((0.1, 0.5, 1.5)), "slots", None, what,
                     {"moves": moves, "loaded": loaded,
                      "cancel": self._source.choice((0.0, 0.01, 0.05)) if what != "moved" else None})

    def _run_of_slots(self):
        length = self._source.choice(RUNS)
        first = self._source.randrange(slots.COUNT - length)
        return first, first + length - 1, self._group()

    def _group(self):
        return self._source.randint(1, self._groups)

    def _partition(self, at):
        what = self._source.choice(("isolated",) * 5 + ("deaf", "mute", "one way", "bridge", "ring",
                                                        "halves", "all apart"))
        victim = self._victim() if what in ("isolated", "deaf", "mute") else None
        if what == "isolated" and self._source.random() < 0.7:
            victim = LEADER  # the old leader's lease against the new one's
        nodes = self._source.sample(self._nodes, len(self._nodes))
        pairs = {"one way": self._one_way, "bridge": self._bridge, "ring": self._ring,
                 "halves": self._halves, "all apart": self._all_apart}
        detail = {} if victim is not None else {"pairs": pairs[what](nodes)}
        return Fault(at, self._source.choice(CUT_TIMES), "partition", victim, what, detail)

    @staticmethod
    def _one_way(nodes):
        return [(nodes[0], nodes[1])]

    @staticmethod
    def _both(a, b):
        return [(a, b), (b, a)]

    def _bridge(self, nodes):
        """Two sides; the first node alone reaches both."""
        middle = 1 + len(nodes) // 2
        return [pair for a in nodes[1:middle] for b in nodes[middle:] for pair in self._both(a, b)]

    def _ring(self, nodes):
        """Each reaches its two neighbours; of three, the ring lacks one link."""
        count = len(nodes)
        pairs = [(i, j) for i in range(count) for j in range(i + 1, count)
                 if (j - i) % count not in (1, count - 1)] or [(0, 1)]
        return [pair for i, j in pairs for pair in self._both(nodes[i], nodes[j])]

    def _halves(self, nodes):
        middle = len(nodes) // 2
        return [pair for a in nodes[:middle] for b in nodes[middle:] for pair in self._both(a, b)]

    def _all_apart(self, nodes):
        return [(a, b) for a in nodes for b in nodes if a != b]

    def _proxy(self, at):
        what = self._source.choice(sorted(PROXY_KINDS))
        where = self._source.choice(("everywhere", "from", "to", "one link"))
        first, second = self._source.sample(self._nodes, 2)
        pairs = {"everywhere": [(a, b) for a in self._nodes for b in self._nodes if a != b],
                 "from": [(first, b) for b in self._nodes if b != first],
                 "to": [(a, first) for a in self._nodes if a != first],
                 "one link": [(first, second)]}[where]
        return Fault(at, self._source.choice((1.0, 3.0, 6.0)), "proxy", None, what,
                     {"pairs": pairs})

    def _drift(self, at):
        """Rates that stay after the fault: what lasts is only the time until the next change."""
        pattern = self._source.choice(("leader slow", "leader fast", "any", "any", "none"))
        if pattern == "none":
            rates = {node: (0, 0) for node in self._nodes}
        elif pattern == "any":
            rates = {node: self._two_rates() for node in self._nodes}
        else:
            sign = -1 if pattern == "leader slow" else 1
            rates = {node: (-sign * DRIFT_PPM,) * 2 for node in self._nodes}
            rates[LEADER] = (sign * DRIFT_PPM,) * 2
        return Fault(at, self._source.choice((2.0, 5.0, 8.0)), "drift", None, pattern,
                     {"rates": rates})

    def _two_rates(self):
        """Of the promises' clock and of the lease's: usually one oscillator, not always."""
        first = self._source.choice((-DRIFT_PPM, DRIFT_PPM, 0,
                                     self._source.randint(-DRIFT_PPM, DRIFT_PPM)))
        other = self._source.randint(-DRIFT_PPM, DRIFT_PPM)
        return (first, first if self._source.random() < 0.7 else other)

    def _jump(self, at):
        what = self._source.choice(("suspended", "machine stopped", "boot clock", "wall clock"))
        victim = self._victim()
        if what in STOPS:
            return Fault(at, self._source.choice(PAUSES), "jump", victim, what, {})
        if what == "boot clock":
            ahead = self._source.choice((0.1, 1.0, 60.0, 300.0))
            return Fault(at, 0.5, "jump", victim, what, {"ahead": ahead})
        return Fault(at, 0.5, "jump", victim, what,
                     {"ahead": self._source.choice((-3600.0, -1.0, 1.0, 3600.0))})
