#!/usr/bin/env python3
"""A group grows from three members to five, replaces each of the first three, and shrinks to three, under
load: how many requests does the first node that is asked execute, how long does the longest one that
is refused take elsewhere, and how long is the longest gap?"""

import time

from cluster import Cluster, built, check, free_port, main
from member_changes import Members, grow, replace_the_old, shrink
from planned_transfers import Load, judge_history, quantile

MS = 1_000_000
NEW_NODES = 5


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--client", required=True, type=built, help="the gap_client program")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--more-rounds", type=int, default=0,
                        help="at most, while the gap is too long: one round can fall into a standstill of the machine")
    parser.add_argument("--read-us", type=int, default=10000,
                        help="between two requests of a reader; there is one for each node")
    parser.add_argument("--write-us", type=int, default=20000, help="the same for a writer")
    parser.add_argument("--limit-first-try", type=float, default=0.99,
                        help="smallest share of requests that the first node executes")
    parser.add_argument("--limit-retry-ms", type=float, default=1000,
                        help="the longest that any request may take")
    parser.add_argument("--limit-gap-ms", type=float, default=20,
                        help="the p99 of a round's longest request: a transfer's")


class KnownMembers(Members):
    """The clients know the addresses of all who will ever be members."""

    def __init__(self, cluster, ports):
        super().__init__(cluster)
        self._ports = ports

    def joiner(self, node_id, name=None):
        node = super().joiner(node_id, name)
        node.port = self._ports[node_id]
        return node


class Port:
    def __init__(self, number):
        self.port = number


def change(options, cluster, ports):
    """One round. Returns the requests, and when each step began."""
    members = KnownMembers(cluster, ports)
    clients = [*cluster.nodes, *(Port(ports[node_id]) for node_id in sorted(ports))]
    steps = []
    with Load(options, clients) as load:
        time.sleep(0.5)
        for name, step in (("growth to five", lambda: grow(members, 4)),
                           ("replacement", lambda: replace_the_old(members, 6)),
                           ("back to three", lambda: shrink(members))):
            steps.append((name, time.monotonic_ns()))
            step()
            # A removed node has ended by now, and its clients have gone elsewhere.
            time.sleep(0.5)
    return sorted(load.requests, key=lambda request: request.sent), steps


def tell(number, requests, steps):
    parts = []
    ends = [begun for _, begun in steps[1:]] + [requests[-1].done]
    for (name, begun), end in zip(steps, ends):
        within = [r for r in requests if begun <= r.sent < end]
        refused = [r for r in within if r.refusals]
        longest = max(within, key=lambda r: r.done - r.sent)
        parts.append(f"{name}: {len(within)} requests, {len(refused)} refused at first, the longest "
                     f"{(longest.done - longest.sent) / MS:.1f} ms")
    print(f"round {number}: " + "; ".join(parts), flush=True)


def run(options):
    everything, gaps, unknown = [], [], 0
    limit = options.limit_gap_ms * options.slack
    while len(gaps) < options.rounds or (len(gaps) < options.rounds + options.more_rounds
                                         and quantile(gaps, 0.5) > limit):
        ports = {3 + at: free_port() for at in range(1, NEW_NODES + 1)}
        with Cluster(options.binary, keep=options.keep) as cluster:
            cluster.start()
            requests, steps = change(options, cluster, ports)
        tell(len(gaps) + 1, requests, steps)
        judge_history(options, requests)
        everything += requests
        unknown += sum(request.unknown for request in requests)
        gaps.append(max(request.done - request.sent for request in requests) / MS)
    first = sum(not r.refusals and not r.unknown for r in everything) / len(everything)
    retried = [(r.done - r.sent) / MS for r in everything if r.refusals] or [0.0]
    why = {}
    for request in everything:
        if request.refusals:
            why[request.why] = why.get(request.why, 0) + 1
    print(f"{len(everything)} requests: {100 * first:.3f} % executed by the first node, {unknown} writes "
          f"of unknown outcome; the longest that was sent elsewhere took {max(retried):.1f} ms; the "
          f"longest of a round p50 {quantile(gaps, 0.5):.1f}, max {max(gaps):.1f} ms; refused: {why}")
    check(unknown == 0, f"{unknown} writes of unknown outcome")
    check(first >= options.limit_first_try, f"only {100 * first:.3f} % at the first try")
    check(max(retried) <= options.limit_retry_ms * options.slack, "a request was retried for too long")
    check(quantile(gaps, 0.5) <= limit, "the gap is longer than a transfer's")


if __name__ == "__main__":
    main(__doc__, run, arguments)
