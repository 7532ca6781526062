#!/usr/bin/env python3
"""Client libraries of other projects, unmodified: redis-py, hiredis, node-redis, ioredis and go-redis,
against every node, and their cluster clients. With --tls by TLS and as a user of a group that takes no
others, and what that user is refused, in the exceptions of each library.

A client that is not installed is skipped, and the test says so. npm fetches ioredis, and Go go-redis, into
the folder of the test, unless a flag names them."""

import os
import subprocess

from cluster import SKIPPED_STATUS, Skipped, built, check, main
from foreign_programs import go_program, ioredis_modules
from secured import SecuredCluster

SECONDS = 90
HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = ("redis-py", "hiredis", "node-redis", "ioredis", "go-redis")
RIGHTS = "+@read +@write +@connection +@transaction +info +cluster +acl|whoami"
# The user of each client in a secured group: what its program here needs, and no more.
USERS = {
    "redis-py": f"~py:* &__keyevent@0__:expired &__keyspace@0__:py:heard* &news {RIGHTS} +@pubsub +config +command "
                "+slowlog +role +client|list +lease.grant",
    "hiredis": f"~h:* {RIGHTS}",
    "node-redis": f"~node:* &__keyspace@0__:node:heard &__keyevent@*__:del {RIGHTS} +@pubsub",
    "ioredis": f"~io:* {RIGHTS}",
    "go-redis": f"~go:* {RIGHTS}",
}


def arguments(parser):
    parser.add_argument("--tls", action="store_true", help="by TLS and as a user")
    parser.add_argument("--clients", default=",".join(CLIENTS), help=f"of {', '.join(CLIENTS)}")
    parser.add_argument("--hiredis", type=built, help="the program of clients/hiredis_client.cc")
    parser.add_argument("--ioredis", metavar="FOLDER", help="a node_modules folder that has ioredis")
    parser.add_argument("--go-redis", metavar="PROGRAM", type=built, help="the program of clients/go_redis.go")


def command(name, options, folder):
    """The program that uses the client, and what it needs of the environment."""
    if name == "redis-py":
        # Debian's redis-py is there for Debian's Python.
        return ["/usr/bin/python3", "-B", f"{HERE}/clients/redis_py.py"], {}
    if name == "hiredis":
        check(options.hiredis, "--hiredis has to name the program of clients/hiredis_client.cc")
        return [options.hiredis], {}
    if name == "go-redis":
        return [go_program(options.go_redis, "go_redis", folder)], {}
    if name == "ioredis":
        return ["nodejs", f"{HERE}/clients/ioredis.js"], {"NODE_PATH": ioredis_modules(options.ioredis, folder)}
    # Debian's node looks for modules there; so does a node of another origin then.
    return ["nodejs", f"{HERE}/clients/node_redis.js"], {"NODE_PATH": os.environ.get("NODE_PATH", "/usr/share/nodejs")}


def run_client(name, options, cluster):
    words, environment = command(name, options, cluster.folder)
    words += [str(node.port) for node in cluster.nodes]
    run = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False,
                         env={**os.environ, **environment, **cluster.environment(name)})
    if run.returncode == SKIPPED_STATUS:
        raise Skipped(run.stdout.strip())
    check(run.returncode == 0, f"{name}: {(run.stdout + run.stderr)[-2000:]}")
    print(run.stdout.strip(), flush=True)


def run(options):
    skipped = []
    names = options.clients.split(",")
    with SecuredCluster(options.binary, USERS if options.tls else None, keep=options.keep) as cluster:
        addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in cluster.nodes)
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
        cluster.start()
        for name in names:
            check(name in CLIENTS, f"{name} is none of {CLIENTS}")
            try:
                run_client(name, options, cluster)
            except Skipped as reason:
                skipped.append(str(reason))
                print(f"skipped: {reason}", flush=True)
        for node in cluster.nodes:
            check(node.status()["clients"]["protocol_errors"] == 0, f"{node} saw a protocol error")
    if len(skipped) == len(names):
        raise Skipped("; ".join(skipped))


if __name__ == "__main__":
    main(__doc__, run, arguments)
