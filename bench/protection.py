#!/usr/bin/env python3
"""Measures what protection costs: lease reads and writes of a plain group, of one with a key and of one
with certificates whose clients speak TLS, in turn; see bench/README.md.

A second plain group shows how far two equal groups differ. Redis, plain and by TLS, stands beside the
reads where it is installed with TLS.
"""

import argparse
import contextlib
import datetime
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import cluster as c
import goals
from report import Report
from sweeps import WARMUP, Noise, Sweeps, say

KEYS = 1000
VALUE_BYTES = 256


def make_credentials(program, folder):
    """A key and certificates. Returns the flags of a node for each kind of group."""
    def cert(*words):
        subprocess.run([program, "cert", *words], check=True, stdout=subprocess.DEVNULL)

    cert("key", folder / "group.key")
    cert("init", "--cluster", "default", "--dir", folder, "--nodes", "1=127.0.0.1,2=127.0.0.1,3=127.0.0.1")
    return {
        "plain": lambda node: [],
        "plain-again": lambda node: [],
        "key": lambda node: ["--peer-key", folder / "group.key"],
        # The harness's own questions are plain.
        "tls": lambda node: ["--tls-cert", folder / f"node-{node}.pem", "--tls-key", folder / f"node-{node}-key.pem",
                             "--tls-ca", folder / "ca.pem", "--client-tls", "optional"]}


def address(kind, port):
    return f"tls:127.0.0.1:{port}" if kind.endswith("tls") else f"127.0.0.1:{port}"


def measure_reads(options, report, groups, leaders, redis):
    targets = {kind: ("get", address(kind, group.client_ports[leaders[kind]]))
               for kind, group in groups.items()}
    pids = {kind: [group.processes[leaders[kind]].pid] for kind, group in groups.items()}
    for kind, (process, port) in redis.items():
        targets[kind] = ("get", address(kind, port))
        pids[kind] = process.tree()
    say("lease reads: closed loop, one connection, one core")
    client = c.Client(options.programs / "bench_client", targets, {}, KEYS, VALUE_BYTES, WARMUP, options.work,
                      ["--tls-ca", options.authority])
    sweeps = Sweeps("reads ", client, list(targets), pids, {kind: options.reads for kind in targets})
    before = {kind: group.leader_counters(leaders[kind]) for kind, group in groups.items()}
    sweeps.run_pinned(options.pairs, [0], [0])
    for kind, group in groups.items():
        rise = group.leader_counters(leaders[kind])["lease_hits"] - before[kind]["lease_hits"]
        if rise != sweeps.series[kind].operations:
            raise c.MeasureError(f"{kind}: {sweeps.series[kind].operations} reads raised the counter of lease reads "
                                 f"by {rise}; measure again on a quieter machine")
    client.close()
    series = sweeps.series
    report.series("lease read, plain", series["plain"])
    for kind in groups:
        if kind != "plain":
            report.series(f"lease read, {kind}", series[kind], "plain", series["plain"])
            report.difference(f"lease read, {kind} - plain", series[kind], series["plain"])
    if redis:
        report.series("Redis GET", series["redis"], "plain", series["plain"])
        report.series("Redis GET, tls", series["redis-tls"], "Redis GET", series["redis"])
        report.difference("Redis GET, tls - plain", series["redis-tls"], series["redis"])


def measure_writes(options, report, groups, leaders):
    targets = {kind: ("set", address(kind, group.client_ports[leaders[kind]]))
               for kind, group in groups.items()}
    pids = {kind: [process.pid for process in group.processes.values()] for kind, group in groups.items()}
    say(f"writes: closed loop, one connection, {VALUE_BYTES}-byte values")
    client = c.Client(options.programs / "bench_client", targets, {}, KEYS, VALUE_BYTES, WARMUP, options.work,
                      ["--tls-ca", options.authority])
    sweeps = Sweeps("writes", client, list(targets), pids, {kind: options.writes for kind in targets})
    before = {kind: group.leader_counters(leaders[kind])["term"] for kind, group in groups.items()}
    sweeps.run(options.pairs)
    client.close()
    for kind, group in groups.items():
        if group.leader_counters(leaders[kind])["term"] != before[kind]:
            raise c.MeasureError("a leader changed during the writes; measure again")
    series = sweeps.series
    report.series("write, plain", series["plain"])
    for kind in groups:
        if kind != "plain":
            report.series(f"write, {kind}", series[kind], "plain", series["plain"])


def run(options):
    report, noise, facts = Report(goals.load("protection")), Noise(), c.machine()
    started = datetime.datetime.now(datetime.timezone.utc)
    program = options.programs.parent / "server" / "leasehold"
    folder = options.work / "certificates"
    folder.mkdir(mode=0o700)
    options.authority = folder / "ca.pem"
    with contextlib.ExitStack() as stack:
        groups, leaders = {}, {}
        for kind, flags in make_credentials(program, folder).items():
            directory = options.work / kind
            directory.mkdir()
            groups[kind] = c.Cluster(program, directory, flags)
            stack.callback(groups[kind].stop, signal.SIGKILL)
            leaders[kind] = groups[kind].start()
            c.load(options.programs, "load", groups[kind].client_ports[leaders[kind]], KEYS, VALUE_BYTES)
        redis = {}
        plain = c.start_redis(options.work)
        protected = plain and c.start_redis(
            options.work, (folder / "node-1.pem", folder / "node-1-key.pem", options.authority))
        if protected:
            redis = {"redis": (plain, plain.port), "redis-tls": (protected, protected.tls_port)}
        for process in filter(None, (plain, protected)):
            stack.callback(process.stop)
            c.load(options.programs, "load", process.port, KEYS, VALUE_BYTES)
        measure_reads(options, report, groups, leaders, redis)
        measure_writes(options, report, groups, leaders)
    facts["processor_time_stolen_percent"] = round(noise.stolen_percent(), 2)
    say("")
    say(report.table())
    say("")
    say(report.goals_table())
    return report.conclude(options.out, {
        "format": 1, "started": started.isoformat(timespec="seconds"), "machine": facts,
        "options": {"pairs": options.pairs, "reads_per_block": options.reads, "writes_per_block": options.writes,
                    "value_bytes": VALUE_BYTES, "warmup_per_block": WARMUP},
        "loop": "closed, one connection"})


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=root / "build" / "release",
                        help="an optimised build (default: build/release)")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON (default: BUILD_DIR/protection.json)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of blocks (default: 20)")
    parser.add_argument("--reads", type=int, default=2000, help="reads of a block (default: 2000)")
    parser.add_argument("--writes", type=int, default=400, help="writes of a block (default: 400)")
    options = parser.parse_args()
    options.programs = options.build_dir.resolve() / "bench"
    if not (options.programs / "bench_client").exists():
        parser.error(f"{options.build_dir} holds no build: run `cmake --preset release && "
                     "cmake --build --preset release` first")
    options.out = options.out or options.build_dir / "protection.json"
    options.work = pathlib.Path(tempfile.mkdtemp(prefix="protection-", dir=options.build_dir)).resolve()
    try:
        status = run(options)
    except c.MeasureError as error:
        print(f"protection: {error}\nprotection: logs and data are in {options.work}", file=sys.stderr)
        return 2
    shutil.rmtree(options.work)
    return status


if __name__ == "__main__":
    sys.exit(main())
