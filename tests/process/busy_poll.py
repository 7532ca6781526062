#!/usr/bin/env python3
"""A node with --busy-poll serves requests. Its io thread polls its sockets after each request, and sleeps at rest."""

import os
import time

from cluster import Cluster, check, main

BUSY_S = 0.01
BETWEEN_S = 0.001  # the next request comes while the thread polls
REQUESTS = 500
REST_S = 1.0


def arguments(_parser):
    pass


class Thread:
    """The one that serves proven clients."""

    def __init__(self, node):
        folder = f"/proc/{node.process.pid}/task"
        found = []
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/comm", encoding="utf-8") as comm:
                if comm.read().strip() == "lh-client":
                    found.append(f"{folder}/{task}")
        check(len(found) == 1, f"{len(found)} threads of the name lh-client")
        self._folder = found[0]

    def worked(self):
        """Seconds of processor time."""
        with open(f"{self._folder}/schedstat", encoding="utf-8") as times:
            return int(times.read().split()[0]) / 1e9

    def sleeps(self):
        """How often it has waited. To give way to other processes does not count."""
        with open(f"{self._folder}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))


def run(options):
    with Cluster(options.binary, size=1, flags=["--busy-poll", f"{BUSY_S * 1000:g}ms"], keep=options.keep) as cluster:
        cluster.start()
        node = cluster.nodes[0]
        with node.client(60) as client:
            check(client.call("SET", "key", "value") == "OK", "a write")
            thread = Thread(node)
            before = thread.sleeps()
            for _ in range(REQUESTS):
                check(client.call("GET", "key") == b"value", "a read of it")
                time.sleep(BETWEEN_S)  # a thread that does not poll sleeps now
            sleeps = thread.sleeps() - before
            before = thread.worked()
            time.sleep(REST_S)
            rest = thread.worked() - before
        # On a busy machine some requests come late.
        check(sleeps < REQUESTS / 2, f"the thread slept {sleeps} times between {REQUESTS} requests")
        check(rest < 5 * BUSY_S, f"the thread worked for {rest:.3f} of {REST_S:g} s at rest")
        check(node.terminate() == 0, "a clean end")
    print(f"{REQUESTS} requests: the thread slept {sleeps} times; at rest it worked for {rest:.3f} s of {REST_S:g}")


if __name__ == "__main__":
    main(__doc__, run, arguments)
