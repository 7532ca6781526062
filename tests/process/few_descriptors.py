#!/usr/bin/env python3
"""With fewer descriptors than --clients-max a node takes fewer clients, and keeps what its log needs: idle connections
of strangers do not end it."""

import re
import socket

from cluster import Cluster, check, main, wait_for

LIMIT = 300
CONNECTIONS = 2 * LIMIT
VALUE = b"x" * (1 << 20)
# More than the files that the log has made before.
VALUES = 80


def arguments(_parser):
    pass


def limited(node):
    """The node, with LIMIT descriptors at most."""
    whole = node.command
    node.command = lambda: ["prlimit", f"--nofile={LIMIT}:{LIMIT}", *whole()]


def info(client, name):
    return int(re.search(rf"^{name}:(\d+)", client.call("INFO").decode(), re.M)[1])


def connect_many(node):
    idle = []
    for _ in range(CONNECTIONS):
        one = socket.create_connection((node.host, node.port), timeout=10)
        idle.append(one)
    return idle


def run(options):
    with Cluster(options.binary, size=1, keep=options.keep) as cluster:
        node = cluster.nodes[0]
        limited(node)
        cluster.start()
        with node.client(60) as client:
            most = info(client, "maxclients")
            check(0 < most < LIMIT, f"{most} clients with {LIMIT} descriptors")
            said = node.log_text()
            check(f"takes {most} clients at a time, not 10000" in said and "ulimit" in said,
                  f"the log does not say so: {said}")
            idle = connect_many(node)
            for number in range(VALUES):
                check(client.call("SET", number, VALUE) == "OK", "a write beside idle connections")
            check(node.running, "idle connections ended the node")
            # One that is refused counts until it has its answer.
            wait_for(f"{most} clients at most", 10 * options.slack,
                     lambda: info(client, "connected_clients") <= most)
            for one in idle:
                one.close()
        print(f"{CONNECTIONS} connections against {LIMIT} descriptors: {most} clients, "
              f"{VALUES} MiB written beside them")


if __name__ == "__main__":
    main(__doc__, run, arguments)
