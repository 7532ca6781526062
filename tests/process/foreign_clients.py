#!/usr/bin/env python3
"""Client libraries of other projects, unmodified: redis-py, node-redis and hiredis of Debian,
against every node, and their cluster clients."""

import os
import subprocess

from cluster import Cluster, built, check, main

SECONDS = 90
HERE = os.path.dirname(os.path.abspath(__file__))


def arguments(parser):
    parser.add_argument("--hiredis", required=True, type=built,
                        help="the program of clients/hiredis_client.cc")


def client(*command):
    # Debian's node looks for modules there; so does a node of another origin then.
    environment = dict(os.environ, NODE_PATH="/usr/share/nodejs")
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False,
                         env=environment)
    check(run.returncode == 0, f"{command[0:2]}: {(run.stdout + run.stderr)[-2000:]}")
    print(run.stdout.strip(), flush=True)


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        ports = [str(node.port) for node in cluster.nodes]
        addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in cluster.nodes)
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
        cluster.start()
        client("/usr/bin/python3", "-B", f"{HERE}/clients/redis_py.py", *ports)
        client(options.hiredis, *ports)
        client("nodejs", f"{HERE}/clients/node_redis.js", *ports)
        for node in cluster.nodes:
            check(node.status()["clients"]["protocol_errors"] == 0, f"{node} saw a protocol error")


if __name__ == "__main__":
    main(__doc__, run, arguments)
