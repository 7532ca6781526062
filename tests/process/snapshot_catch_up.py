#!/usr/bin/env python3
"""A member that was away while the log was cut comes back by a snapshot, also when it is killed in
the middle of one, and the others are not disturbed."""

import os
import random
import time

from cluster import PATIENT, Cluster, check, main, snapshot_files, wait_for

BATCH = 200
VALUE_BYTES = 4096
TAIL = 1 << 20
CUT = 1 << 20
# The tail and what waits to be cut stand in one segment or across two; two more are made ahead. The
# log's mark takes a block.
SEGMENT_BYTES = 16 << 20
LOG_FILES_MAX = 4 * SEGMENT_BYTES + 4096
CATCH_UP_SECONDS = 60
CUT_SECONDS = 10


def arguments(parser):
    parser.add_argument("--keys", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=10, help="kills in the middle of a transfer")
    parser.add_argument("--seed", type=int, default=1)


def value(number, generation):
    return f"{number}.{generation}:".encode().ljust(VALUE_BYTES, b"x")


def write_all(node, keys, generation):
    with node.client(timeout=60) as client:
        for begin in range(0, keys, BATCH):
            numbers = range(begin, min(begin + BATCH, keys))
            for reply in client.pipeline([("SET", n, value(n, generation)) for n in numbers]):
                check(reply == "OK", f"SET was answered {reply!r}")


def read_all(node, keys, generation):
    with node.client(timeout=60) as client:
        size = client.call("DBSIZE")
        check(size == keys, f"{node} counts {size} keys, not {keys}")
        for begin in range(0, keys, BATCH):
            numbers = range(begin, min(begin + BATCH, keys))
            replies = client.pipeline([("GET", n) for n in numbers])
            for number, reply in zip(numbers, replies):
                check(reply == value(number, generation),
                      f"{number} at {node} reads {reply[:20]!r}, not generation {generation}")


def leave_behind(leader, away, keys, generation):
    """Kills `away` and writes until the leader has cut off what it needs."""
    last = away.status()["last"]
    away.kill()
    while leader.status()["first"] <= last + 1:
        generation += 1
        write_all(leader, keys, generation)
    return generation


def installed(node):
    return node.status()["node"]["snapshots_installed"]


def log_files(node):
    folder = os.path.join(node.data_dir, "log")
    return sum(os.stat(os.path.join(folder, name)).st_blocks * 512 for name in os.listdir(folder))


def run(options):
    source = random.Random(options.seed)
    flags = [*PATIENT, "--log-tail", str(TAIL), "--log-cut", str(CUT)]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        leader = cluster.start()
        term = leader.status()["term"]
        away = cluster.others(leader)[0]
        generation = 1
        write_all(leader, options.keys, generation)

        generation = leave_behind(leader, away, options.keys, generation)
        begun = time.monotonic()
        away.start()
        cluster.wait_caught_up(away, CATCH_UP_SECONDS * options.slack)
        check(installed(away) == 1, f"{away} caught up with {installed(away)} snapshots, not one")
        print(f"{away} came back by a snapshot of {options.keys * VALUE_BYTES >> 20} MiB after "
              f"{time.monotonic() - begun:.2f} s", flush=True)
        read_all(away, options.keys, generation)

        for number in range(1, options.rounds + 1):
            generation = leave_behind(leader, away, options.keys, generation)
            away.start()
            time.sleep(source.uniform(0.0, 0.6) * options.slack)
            away.kill()
            away.start()
            cluster.wait_caught_up(away, CATCH_UP_SECONDS * options.slack)
            read_all(away, options.keys, generation)
            print(f"round {number}: killed while it was brought up to date; it has every key after "
                  f"{installed(away)} more", flush=True)

        for node in cluster.nodes:
            wait_for(f"the log of {node} to be cut to {LOG_FILES_MAX} bytes of its disk",
                     CUT_SECONDS * options.slack, lambda: log_files(node) <= LOG_FILES_MAX)
            print(f"{node}: the files of its log take {log_files(node) >> 20} MiB", flush=True)
            check(not snapshot_files(node), f"{node} has kept what arrived of a snapshot")
        check(leader.status()["term"] == term or options.slack > 1,
              "somebody was elected though the leader never failed")
        for node in cluster.nodes:
            read_all(node, options.keys, generation)


if __name__ == "__main__":
    main(__doc__, run, arguments)
