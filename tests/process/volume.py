#!/usr/bin/env python3
"""A hundred thousand keys: loaded, found again after both kinds of restart, in little memory."""

import time

from cluster import Cluster, check, main, wait_for

BATCH = 1000
VALUE_BYTES = 64
RESTING_BYTES_MAX = 64 << 20
# Memory is read after this time without requests to the nodes.
REST_SECONDS = 2.0


def arguments(parser):
    parser.add_argument("--keys", type=int, default=100000)


def key(number):
    return f"volume:{number}"


def value(number):
    return f"{number}:".encode().ljust(VALUE_BYTES, b"x")


def load(node, keys):
    with node.client(timeout=30) as client:
        for begin in range(0, keys, BATCH):
            numbers = range(begin, min(begin + BATCH, keys))
            for reply in client.pipeline([("SET", key(n), value(n)) for n in numbers]):
                check(reply == "OK", f"SET was answered {reply!r}")


def read_back(cluster, keys, when):
    for node in cluster.nodes:
        begun = time.monotonic()
        with node.client(timeout=30) as client:
            size = client.call("DBSIZE")
            check(size == keys, f"{node} counts {size} keys, not {keys}")
            for begin in range(0, keys, BATCH):
                numbers = range(begin, min(begin + BATCH, keys))
                replies = client.pipeline([("GET", key(n)) for n in numbers])
                for number, reply in zip(numbers, replies):
                    check(reply == value(number), f"{key(number)} at {node} reads {reply!r}")
        print(f"{when}: {node} returned all {keys} keys in {time.monotonic() - begun:.1f} s",
              flush=True)


def resident(node):
    with open(f"/proc/{node.process.pid}/status", encoding="ascii", errors="replace") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def judge_memory(options, cluster, when):
    time.sleep(REST_SECONDS)
    for node in cluster.nodes:
        size = resident(node)
        role = node.status()["role"]
        cache = int(node.info()["read_cache"])
        print(f"{when}: {node} ({role}) rests at {size / (1 << 20):.1f} MiB, with {cache / (1 << 20):.1f} MiB "
              "of values that were read", flush=True)
        check(size - cache < RESTING_BYTES_MAX or options.no_memory_limit,
              f"{node} rests at {size} bytes, with {cache} of values that were read, at most {RESTING_BYTES_MAX}")


def restart(cluster, how):
    for node in cluster.nodes:
        how(node)
    begun = time.monotonic()
    cluster.start(60)
    print(f"all three are back, with a leader, after {time.monotonic() - begun:.1f} s")
    for node in cluster.nodes:
        cluster.wait_caught_up(node, 60)


def end_well(node):
    status = node.terminate()
    check(status == 0, f"{node} ended with status {status} after SIGTERM")


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        leader = cluster.start()
        judge_memory(options, cluster, "empty")
        begun = time.monotonic()
        load(leader, options.keys)
        print(f"{options.keys} keys loaded in {time.monotonic() - begun:.1f} s")
        wait_for("all to have applied everything", 30, lambda: len(
            {node.status()["applied"] for node in cluster.nodes}) == 1)
        judge_memory(options, cluster, "loaded")
        read_back(cluster, options.keys, "loaded")
        restart(cluster, end_well)
        read_back(cluster, options.keys, "after SIGTERM")
        judge_memory(options, cluster, "after SIGTERM")
        restart(cluster, lambda node: node.kill())
        read_back(cluster, options.keys, "after kill -9")
        judge_memory(options, cluster, "after kill -9")


if __name__ == "__main__":
    main(__doc__, run, arguments)
