#!/usr/bin/env python3
"""Lease reads while a large snapshot travels, beside lease reads while a plain program copies a file
of that size over the same loopback interface to the same disk; and there is no election meanwhile."""

import json
import os
import subprocess
import sys

from cluster import PATIENT, Cluster, built, check, main, snapshot_files, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
from stats import Histogram  # noqa: E402

VALUE_BYTES = 4096
COPY_BYTES = 1 << 20
TAIL = 1 << 20
CUT = 1 << 20
ARRIVAL_SECONDS = 120


def arguments(parser):
    parser.add_argument("--client", required=True, type=built, help="the bench_client program")
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=2000, help="reads a second")
    parser.add_argument("--block-ms", type=int, default=500, help="what is measured at a time")
    parser.add_argument("--limit", type=float, default=1.25,
                        help="largest p99 beside the snapshot over that beside the copy")


def client(options, *words):
    done = subprocess.run(
        [options.client, "--keys", str(keys(options)), "--value-bytes", str(VALUE_BYTES),
         *(str(word) for word in words)], capture_output=True, text=True, timeout=900)
    check(done.returncode == 0, f"bench_client {words[0]}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def keys(options):
    return (options.mebibytes << 20) // VALUE_BYTES


def read_block(options, leader):
    """Latencies of the reads of one block, counted from when each was due."""
    result = client(options, "open", "--address", f"127.0.0.1:{leader.port}", "--rate",
                    options.rate, "--warmup-ms", 50, "--duration-ms", options.block_ms,
                    "--connections", 4)
    check(result["failures"] == 0, f"a read was answered {result.get('first_failure')!r}")
    return Histogram(result["reads"]["slots"])


def read_while(options, leader, busy):
    """The blocks of reads at whose ends busy() was still true."""
    blocks = []
    while True:
        block = read_block(options, leader)
        if not busy():
            return blocks
        blocks.append(block)


class Copy:
    """Sends a file over loopback and writes it to another, synced at the end: what `nc` and `dd`
    would do, in a process of its own."""

    PROGRAM = """
import os, socket, sys, threading
source, target = sys.argv[1:]
server = socket.create_server(("127.0.0.1", 0))
def send():
    with socket.create_connection(server.getsockname()) as out, open(source, "rb") as file:
        out.sendfile(file)
threading.Thread(target=send).start()
connection = server.accept()[0]
buffer = bytearray(1 << 20)
with open(target, "wb", buffering=0) as file:
    while count := connection.recv_into(buffer):
        file.write(memoryview(buffer)[:count])
    os.fsync(file.fileno())
"""

    def __init__(self, folder, mebibytes):
        self.source = os.path.join(folder, "copy.source")
        self.target = os.path.join(folder, "copy.target")
        with open(self.source, "wb") as file:
            for _ in range(mebibytes):
                file.write(os.urandom(COPY_BYTES))
            os.fsync(file.fileno())

    def start(self):
        if os.path.exists(self.target):
            os.unlink(self.target)
        return subprocess.Popen([sys.executable, "-c", self.PROGRAM, self.source, self.target])


def leave_behind(options, leader, away):
    """Kills `away` and writes until the leader has cut off what it needs."""
    last = away.status()["last"]
    away.kill()

    def cut():
        if leader.status()["first"] > last + 1:
            return True
        with leader.client(timeout=30) as connection:
            connection.pipeline([("SET", f"later:{n}", b"x" * VALUE_BYTES) for n in range(1000)])
        return False
    wait_for("the leader to cut its log", 60 * options.slack, cut, pause=0.2)


def beside_snapshot(options, cluster, leader, away):
    leave_behind(options, leader, away)
    read_block(options, leader)
    away.start()
    wait_for(f"a snapshot to {away}", 30, lambda: "is sent a snapshot" in leader.log_text())

    def arriving():
        status = away.try_status()
        return status is None or status["node"]["snapshots_installed"] == 0
    wait_for("the first chunk", 30, lambda: snapshot_files(away))
    blocks = read_while(options, leader, arriving)
    cluster.wait_caught_up(away, ARRIVAL_SECONDS * options.slack)
    return blocks


def beside_copy(options, leader, copy, wanted):
    """As many blocks as the snapshot had; a file is copied again when the last one has ended."""
    blocks = []
    while len(blocks) < wanted:
        process = copy.start()
        blocks += read_while(options, leader, lambda p=process: p.poll() is None)
        check(process.wait() == 0, "the copy failed")
    return blocks[:wanted]


def tell(name, blocks):
    merged = Histogram.merged(blocks)
    p50, p99, p999 = (value / 1000 for value in merged.quantiles([0.5, 0.99, 0.999]))
    print(f"{name}: {len(blocks)} blocks, {merged.count} reads, p50 {p50:.0f} us, p99 {p99:.0f} us, "
          f"p99.9 {p999:.0f} us", flush=True)
    return p99


def run(options):
    flags = [*PATIENT, "--log-tail", str(TAIL), "--log-cut", str(CUT)]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        leader = cluster.start()
        term = leader.status()["term"]
        away = cluster.others(leader)[0]
        client(options, "load", "--address", f"127.0.0.1:{leader.port}", "--depth", 64)
        print(f"{options.mebibytes} MiB loaded", flush=True)
        cluster.wait_caught_up(away, 60 * options.slack)
        copy = Copy(cluster.folder, options.mebibytes)
        snapshots, copies, resting = [], [], []
        for number in range(1, options.rounds + 1):
            resting.append(read_block(options, leader))
            mine = beside_snapshot(options, cluster, leader, away)
            check(mine, "the snapshot was over before one block of reads was: use more --mebibytes")
            snapshots += mine
            copies += beside_copy(options, leader, copy, len(mine))
            print(f"round {number}: {len(mine)} blocks", flush=True)
        tell("at rest", resting)
        copied = tell("beside a plain copy", copies)
        sent = tell("beside a snapshot", snapshots)
        print(f"p99 beside a snapshot over p99 beside a copy: {sent / copied:.2f}", flush=True)
        check(leader.status()["term"] == term and leader.status()["role"] == "leader",
              "somebody was elected though the leader never failed")
        check(sent <= options.limit * copied * options.slack,
              f"the p99 beside a snapshot is {sent / copied:.2f} times that beside a copy, at most "
              f"{options.limit}")


if __name__ == "__main__":
    main(__doc__, run, arguments)
