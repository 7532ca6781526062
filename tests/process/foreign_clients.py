#!/usr/bin/env python3
"""Client libraries of other projects, unmodified: redis-py, node-redis and hiredis of Debian,
against every node, and their cluster clients."""

import os
import subprocess

from cluster import SKIPPED_STATUS, built, check, main
from secured import SecuredCluster

SECONDS = 90
RIGHTS = "+@read +@write +@connection +@transaction +info +acl|whoami +cluster"
# What each client needs in a secured group, and no more.
USERS = {
    "py": f"~py:* &__keyevent@0__:expired &__keyspace@0__:py:heard* &news {RIGHTS} +@pubsub +config +command "
          "+slowlog +role +client|list +lease.grant",
    "hiredis": f"~h:* {RIGHTS}",
    "node": f"~node:* &__keyspace@0__:node:heard &__keyevent@*__:del {RIGHTS} +@pubsub",
}
HERE = os.path.dirname(os.path.abspath(__file__))


def arguments(parser):
    parser.add_argument("--tls", action="store_true", help="by TLS and as a user")
    parser.add_argument("--hiredis", required=True, type=built,
                        help="the program of clients/hiredis_client.cc")


def client(cluster, user, *command):
    # Debian's node looks for modules there; so does a node of another origin then.
    environment = {"NODE_PATH": "/usr/share/nodejs", **os.environ, **cluster.environment(user)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False,
                         env=environment)
    if run.returncode == SKIPPED_STATUS:
        print(f"skipped: {run.stdout.strip()}", flush=True)
        return
    check(run.returncode == 0, f"{command[0:2]}: {(run.stdout + run.stderr)[-2000:]}")
    print(run.stdout.strip(), flush=True)


def run(options):
    with SecuredCluster(options.binary, USERS if options.tls else None, keep=options.keep) as cluster:
        ports = [str(node.port) for node in cluster.nodes]
        addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in cluster.nodes)
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
        cluster.start()
        client(cluster, "py", "/usr/bin/python3", "-B", f"{HERE}/clients/redis_py.py", *ports)
        client(cluster, "hiredis", options.hiredis, *ports)
        client(cluster, "node", "nodejs", f"{HERE}/clients/node_redis.js", *ports)
        for node in cluster.nodes:
            check(node.status()["clients"]["protocol_errors"] == 0, f"{node} saw a protocol error")


if __name__ == "__main__":
    main(__doc__, run, arguments)
