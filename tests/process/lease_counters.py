#!/usr/bin/env python3
"""What a read under the lease costs, by the nodes' own counters: no log entry, no sync, no message
beyond the heartbeats that flow anyway."""

import math
import time

from cluster import Cluster, check, main

HEARTBEAT_SECONDS = 0.1


def arguments(parser):
    parser.add_argument("--reads", type=int, default=10000)


def snapshot(nodes):
    return {node.id: node.status() for node in nodes}


def rose(before, after, *path):
    for name in path:
        before, after = before[name], after[name]
    return after - before


def run(options):
    with Cluster(options.binary, flags=["--heartbeat", f"{HEARTBEAT_SECONDS * 1000:.0f}ms"],
                 keep=options.keep) as cluster:
        leader = cluster.start()
        with leader.client() as client:
            check(client.call("SET", "key", "value") == "OK", "the write failed")
            for node in cluster.nodes:
                cluster.wait_caught_up(node)
            before = snapshot(cluster.nodes)
            begun = time.monotonic()
            for _ in range(options.reads):
                check(client.call("GET", "key") == b"value", "a wrong value")
            seconds = time.monotonic() - begun
            after = snapshot(cluster.nodes)
            # Snapshots are taken one node after the other: the heartbeats of that time count too.
            seconds_in_all = time.monotonic() - begun
        old, new = before[leader.id], after[leader.id]
        hits = rose(old, new, "reads", "lease_hits")
        fallbacks = rose(old, new, "reads", "lease_fallbacks")
        appends = rose(old, new, "node", "appends_sent")
        heartbeats = rose(old, new, "node", "heartbeats_sent")
        most = 2 * (math.ceil(seconds_in_all / HEARTBEAT_SECONDS) + 1)
        print(f"{options.reads} GETs at the leader in {seconds:.2f} s: lease hits +{hits}, "
              f"fallbacks +{fallbacks}, appends +{appends}, heartbeats +{heartbeats} (at most "
              f"{most} in that time)")
        check(new["term"] == old["term"], "the leader changed meanwhile")
        check(hits == options.reads, "not every read was answered by the lease")
        check(fallbacks == 0, "a read fell back to a quorum round")
        check(appends == 0, "entries were sent")
        check(heartbeats <= most, "more messages were sent than heartbeats are due")
        for node in cluster.nodes:
            entries = rose(before[node.id], after[node.id], "last")
            syncs = rose(before[node.id], after[node.id], "node", "log_syncs")
            check(entries == 0, f"the log of {node} grew by {entries}")
            check(syncs == 0, f"the log of {node} was synced {syncs} times")


if __name__ == "__main__":
    main(__doc__, run, arguments)
