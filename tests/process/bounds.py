#!/usr/bin/env python3
"""A leader with a dead follower takes a million entries within its memory, and the disk of a node
that is written to all the time stays within twice the live data and what the log may keep."""

import os
import subprocess
import time

from cluster import Background, Cluster, built, check, main, snapshot_files, wait_for

VALUE_BYTES = 1024
KEY_BYTES = 12
TAIL = 64 << 20
CUT = 64 << 20
SEGMENT_BYTES = 16 << 20
# What may stand in the log: tail and cut, a file that they begin in, two that are made ahead, and
# the log's mark, old and new.
LOG_MAX = TAIL + CUT + 3 * SEGMENT_BYTES + 2 * 4096
MEMORY_MAX = 64 << 20
SAMPLE_SECONDS = 0.1


def arguments(parser):
    parser.add_argument("--client", required=True, type=built, help="the bench_client program")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=400_000,
                        help="the live data: so many KiB. With much less of it what the log has "
                             "beside its tail is not covered by the live data")


def resident(node):
    with open(f"/proc/{node.process.pid}/status", encoding="ascii", errors="replace") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def disk_use(folder):
    """Bytes of the blocks of all files; a file under two names counts once."""
    seen = {}
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(path, name))
            except FileNotFoundError:
                continue  # removed meanwhile
            seen[found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


class Watch:
    """The largest memory and disk use of some nodes, sampled by step() on a thread of its own."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.memory = {node: 0 for node in nodes}
        self.log = {node: 0 for node in nodes}
        self.state = {node: 0 for node in nodes}
        self.all = {node: 0 for node in nodes}

    def step(self):
        for node in self.nodes:
            self.memory[node] = max(self.memory[node], resident(node))
            log = disk_use(os.path.join(node.data_dir, "log"))
            self.log[node] = max(self.log[node], log)
            together = disk_use(node.data_dir)
            self.state[node] = max(self.state[node], together - log)
            self.all[node] = max(self.all[node], together)
        time.sleep(SAMPLE_SECONDS)

    def report(self, when):
        for node in self.nodes:
            print(f"{when}: {node}: at most {self.memory[node] >> 20} MiB of memory, "
                  f"{self.log[node] >> 20} MiB of log, {self.state[node] >> 20} MiB of store, "
                  f"{self.all[node] >> 20} MiB together", flush=True)


def write_every_key(options, node):
    done = subprocess.run(
        [options.client, "--keys", str(options.keys), "--value-bytes", str(VALUE_BYTES), "load",
         "--address", f"127.0.0.1:{node.port}", "--depth", "64"], capture_output=True, text=True,
        timeout=600 * options.slack)
    check(done.returncode == 0, f"the load client failed: {done.stderr.strip()}")
    check('"failures":0' in done.stdout, f"writes failed: {done.stdout.strip()}")


def run(options):
    live = options.keys * (KEY_BYTES + VALUE_BYTES)
    flags = ["--log-tail", str(TAIL), "--log-cut", str(CUT)]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        leader = cluster.start()
        dead = cluster.others(leader)[0]
        dead.kill()
        print(f"{leader} leads and rests at {resident(leader) >> 20} MiB; {dead} is dead",
              flush=True)
        first = leader.status()["last"]
        watch = Watch([node for node in cluster.nodes if node is not dead])
        with Background(watch.step):
            for number in range(-(-options.entries // options.keys)):
                write_every_key(options, leader)
                watch.report(f"{leader.status()['last'] - first} entries")
        check(leader.status()["last"] - first >= options.entries,
              f"{leader} appended only {leader.status()['last'] - first} entries")
        check(leader.status()["role"] == "leader", f"{leader} does not lead any more")
        for node in watch.nodes:
            check(watch.memory[node] <= MEMORY_MAX or options.no_memory_limit,
                  f"{node} took {watch.memory[node]} bytes of memory, at most {MEMORY_MAX}")
            check(watch.log[node] <= LOG_MAX, f"the log of {node} took {watch.log[node]} bytes")
            check(watch.state[node] <= 2 * live,
                  f"the store of {node} took {watch.state[node]} bytes, for {live} of live data")
            check(watch.all[node] <= 2 * live + TAIL or live < 2 * LOG_MAX,
                  f"{node} took {watch.all[node]} bytes of its disk, for {live} of live data")
        dead.start()
        cluster.wait_caught_up(dead, 120 * options.slack)
        wait_for("the snapshot's files to be gone", 10 * options.slack,
                 lambda: not snapshot_files(dead))


if __name__ == "__main__":
    main(__doc__, run, arguments)
