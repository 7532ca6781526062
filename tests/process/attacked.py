"""A group under attack: what no attack may change, and how much memory one may take."""

import time

from cluster import check

# Between an attack and the look at what it did: longer than the group needs to answer a message.
SETTLE_SECONDS = 0.02
STATUS_KEYS = ("term", "leader", "incarnation", "uuid", "membership", "formed")


def standing_of(status, *more):
    """What no attack may change of a node's status."""
    found = {key: status[key] for key in (*STATUS_KEYS, *more)}
    found["members"] = [(m["id"], m["uuid"], m["voter"]) for m in status["members"]]
    return found


class Attacked:
    """What a group has to be after an attack, which is what it was before."""

    def __init__(self, cluster, settle=SETTLE_SECONDS):
        self.cluster = cluster
        self.settle = settle
        self.count = 0
        self.before = self.standing()
        self.memory = {node.id: self.status(node)["rss_bytes"] for node in cluster.nodes}

    def status(self, node):
        check(node.running, f"{node} ended")
        return node.status()

    def standing(self):
        return {node.id: standing_of(self.status(node), "commit", "revision", "keys") for node in self.cluster.nodes}

    def look(self, what):
        time.sleep(self.settle)
        now = self.standing()
        check(now == self.before, f"{what} moved something: {difference(self.before, now)}")

    def grown(self, node):
        return self.status(node)["rss_bytes"] - self.memory[node.id]

    def check_memory(self, what, limit):
        for node in self.cluster.nodes:
            grown = self.grown(node)
            check(grown < limit, f"{what}: {node} grew by {grown >> 10} KiB, and the limit is {limit >> 10} KiB")


def difference(before, now):
    """The parts of two standings that differ, for people."""
    parts = []
    for node, was in before.items():
        for name, value in was.items():
            if now[node][name] != value:
                parts.append(f"node {node}: {name}: {str(value)[:500]} became {str(now[node][name])[:500]}")
    return "; ".join(parts)
