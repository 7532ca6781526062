#!/usr/bin/env python3
"""A node with --busy-poll serves requests. Its io thread polls its sockets after each request, and sleeps at rest."""

import os
import time

from cluster import Cluster, check, main

BUSY_S = 0.01
REQUESTS = 100
REST_S = 1.0


def arguments(_parser):
    pass


def worked(node):
    """Seconds of processor time of the thread that serves proven clients."""
    folder = f"/proc/{node.process.pid}/task"
    for task in os.listdir(folder):
        with open(f"{folder}/{task}/comm", encoding="utf-8") as comm:
            if comm.read().strip() != "lh-client":
                continue
        with open(f"{folder}/{task}/schedstat", encoding="utf-8") as times:
            return int(times.read().split()[0]) / 1e9
    raise AssertionError("no thread of the name lh-client")


def run(options):
    with Cluster(options.binary, size=1, flags=["--busy-poll", f"{BUSY_S * 1000:g}ms"], keep=options.keep) as cluster:
        cluster.start()
        node = cluster.nodes[0]
        with node.client(60) as client:
            check(client.call("SET", "key", "value") == "OK", "a write")
            before = worked(node)
            for _ in range(REQUESTS):
                check(client.call("GET", "key") == b"value", "a read of it")
                time.sleep(BUSY_S)  # a thread that does not poll sleeps now
            busy = worked(node) - before
            before = worked(node)
            time.sleep(REST_S)
            rest = worked(node) - before
        # Other processes may have the processor while it polls, so it gets less than the whole time. A thread that
        # sleeps at once works for less than a tenth of a millisecond per request.
        check(busy > REQUESTS * BUSY_S / 50, f"the thread worked for {busy:.3f} s: it fell asleep at once")
        check(rest < 5 * BUSY_S, f"the thread worked for {rest:.3f} of {REST_S:g} s at rest")
        check(node.terminate() == 0, "a clean end")
    print(f"{REQUESTS} requests: {busy:.2f} s of the thread; at rest {rest:.3f} s of {REST_S:g}")


if __name__ == "__main__":
    main(__doc__, run, arguments)
