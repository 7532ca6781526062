#!/usr/bin/env python3
"""Measures Leasehold beside its floors and prints a table; see bench/README.md.

Everything that is compared runs in one process of the load client, in turn: a sweep over all
targets and then the same sweep backwards (A B B A), so that a change of the machine's mood hits all
of them alike. The table quotes ratios of medians with the 95 % interval of a bootstrap.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import beside_writes
import busy_poll
import cluster as c
import crowd
import disturbed
import goals
import instructions
import large
import loads
import open_rates
import planned
import ten_million
from judge import KEYS as JUDGED_KEYS
from judge import Judge
from report import Report
from stats import Histogram
from sweeps import WARMUP, Noise, Series, Sweeps, say

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import results  # noqa: E402  pylint: disable=wrong-import-position

KEYS = 1000
VALUE_BYTES = 256
PROOF_READS = 10_000
REST_S = 3.0


def measure_lease_check(options, report):
    """In one process: the check of the lease beside one clock read."""
    say("lease check")
    text = subprocess.run([options.programs / "lease_check", "--json"], check=True,
                          capture_output=True, text=True).stdout
    rows = json.loads(text)
    # Picoseconds there, nanoseconds here; each value is the mean of one block, hence a block.
    series = {}
    for name, histogram in rows.items():
        series[name] = Series()
        series[name].blocks = [Histogram([(value / 1000, 1)])
                               for value, count in histogram["slots"] for _ in range(count)]
    for suffix in ("", ", beside a writer"):
        floor, check = series["clock read" + suffix], series["lease check" + suffix]
        pairs = min(len(floor.blocks), len(check.blocks))
        floor.blocks, check.blocks = floor.blocks[:pairs], check.blocks[:pairs]
        report.series("clock read" + suffix, floor)
        report.series("lease check" + suffix, check, "clock read", floor)


def measure_reads(options, report, cluster, leader, floors, placement, cores):
    """`cores` says where the client and where the servers run."""
    port = cluster.client_ports[leader]
    echo, redis = floors["echo"], floors.get("redis")
    targets = {"echo": ("get", echo.port), "lease": ("get", port), "quorum": ("get", port)}
    pids = {"echo": echo.tree(), "lease": [cluster.processes[leader].pid],
            "quorum": [cluster.processes[leader].pid]}
    if redis:
        targets["redis"] = ("get", redis.port)
        pids["redis"] = redis.tree()
    setups = {name: f"LEASEHOLD READMODE {name}" for name in ("lease", "quorum")}
    say(f"reads, {placement}: closed loop, one connection, {VALUE_BYTES}-byte values")
    judge = Judge(options, report, f"reads, {placement}", port, VALUE_BYTES, modes=list(setups))
    client = c.Client(options.programs / "bench_client", targets, setups, KEYS, VALUE_BYTES, WARMUP,
                      options.work, judges={name: judge for name in setups})
    sweeps = Sweeps("reads ", client, list(targets), pids,
                    {name: options.reads for name in targets})
    before = cluster.leader_counters(leader)
    sweeps.run_pinned(options.pairs, *cores)
    after = cluster.leader_counters(leader)
    client.close()
    reads = sweeps.series["lease"].operations
    if after["lease_hits"] - before["lease_hits"] != reads or after["term"] != before["term"]:
        raise c.MeasureError(f"{reads} lease reads raised the counter of lease reads by "
                             f"{after['lease_hits'] - before['lease_hits']}: the lease was lost "
                             "during the run; measure again on a quieter machine")
    judge.conclude()
    series = sweeps.series
    at = f", {placement}"
    report.series("echo" + at, series["echo"])
    report.series("lease read" + at, series["lease"], "echo", series["echo"])
    report.series("quorum read" + at, series["quorum"], "echo", series["echo"])
    if redis:
        report.series("Redis GET" + at, series["redis"], "echo", series["echo"])
        report.series("lease read / Redis" + at, series["lease"], "Redis GET", series["redis"])


def prove_lease_reads(options, report, cluster, leader):
    """Ten thousand reads cost the cluster nothing: no log entry, no sync, no message."""
    judge = Judge(options, report, f"{PROOF_READS} lease reads", cluster.client_ports[leader], VALUE_BYTES)
    client = c.Client(options.programs / "bench_client",
                      {"lease": ("get", cluster.client_ports[leader])},
                      {"lease": "LEASEHOLD READMODE lease"}, KEYS, VALUE_BYTES, 0, options.work,
                      judges={"lease": judge})
    before = cluster.leader_counters(leader)
    began = time.monotonic()
    client.block("lease", PROOF_READS)
    elapsed = time.monotonic() - began
    after = cluster.leader_counters(leader)
    client.close()
    rise = {name: after[name] - before[name] for name in after}
    say(f"  proof: {PROOF_READS} GETs, {elapsed:.2f} s; of these lease hits {rise['lease_hits']}, "
        f"fallbacks {rise['lease_fallbacks']}; meanwhile log entries {rise['last']}, syncs "
        f"{rise['log_syncs']}, appends {rise['appends_sent']}, heartbeats "
        f"{rise['heartbeats_sent']}")
    expected = {"lease_hits": PROOF_READS, "lease_fallbacks": 0, "last": 0, "log_syncs": 0,
                "appends_sent": 0}
    for name, wanted in expected.items():
        report.value(f"rise of {name} over {PROOF_READS} lease reads", rise[name], "")
        if rise[name] != wanted:
            raise c.MeasureError(f"{name} rose by {rise[name]} instead of {wanted}: these are no "
                                 "lease reads")
    report.value(f"rise of heartbeats_sent over {PROOF_READS} lease reads",
                 rise["heartbeats_sent"], f"in {elapsed:.2f} s")
    judge.conclude()


def measure_writes(options, report, cluster, leader, floors):
    port = cluster.client_ports[leader]
    null = floors["null"]
    targets = {"null": ("set", null.port), "write": ("set", port), "log": ("get", port)}
    pids = {"null": null.tree(), "write": [p.pid for p in cluster.processes.values()],
            "log": [p.pid for p in cluster.processes.values()]}
    judge = Judge(options, report, "writes", port, VALUE_BYTES, modes=("lease", "log"))
    client = c.Client(options.programs / "bench_client", targets, {"log": "LEASEHOLD READMODE log"},
                      KEYS, VALUE_BYTES, WARMUP, options.work, judges={name: judge for name in ("write", "log")})
    sweeps = Sweeps("writes", client, list(targets), pids,
                    {name: options.writes for name in targets})
    before = cluster.leader_counters(leader)
    sweeps.run(options.pairs)
    after = cluster.leader_counters(leader)
    client.close()
    if after["term"] != before["term"]:
        raise c.MeasureError("the leader changed during the writes; measure again")
    judge.conclude()
    series = sweeps.series
    report.series("null-replicate", series["null"])
    report.series("write", series["write"], "null-replicate", series["null"])
    report.series("log read", series["log"], "null-replicate", series["null"])


def measure_disk(options, report):
    say("disk")
    text = subprocess.run([options.programs / "floor_wal", "--json", "--dir", options.work],
                          check=True, capture_output=True, text=True).stdout
    for name, histogram in json.loads(text).items():
        series = Series()
        series.blocks = [Histogram(histogram["slots"])]
        report.series(f"disk, {name}", series)


def measure_rest(report, cluster):
    say(f"resting for {REST_S:g} s")
    before = {node: c.cpu_ns([p.pid]) for node, p in cluster.processes.items()}
    time.sleep(REST_S)
    largest = 0.0
    for node, process in cluster.processes.items():
        used = c.cpu_ns([process.pid]) - before[node]
        resident = round(c.resident_kib(process.pid) / 1024, 1)
        largest = max(largest, resident)
        report.value(f"resting node {node}: memory", resident, "MiB")
        report.value(f"resting node {node}: processor", round(used / REST_S / 1e7, 2), "%")
    report.value("resting node: memory", largest, "MiB")


def measure_many_keys(options, report, cluster, leader):
    """Loads many keys, restarts all nodes, and reads every key back."""
    keys = options.keys
    say(f"{keys} keys")
    judge = Judge(options, report, "keys", cluster.client_ports[leader], VALUE_BYTES)
    seconds = c.load(options.programs, "load", judge.port, keys, VALUE_BYTES, judge.file(), JUDGED_KEYS)
    report.value(f"load of {keys} keys, pipelined", round(seconds, 2), "s")
    for node, process in cluster.processes.items():
        report.value(f"node {node} after the load: memory",
                     round(c.resident_kib(process.pid) / 1024, 1), "MiB")
    for name, how in (("SIGTERM", signal.SIGTERM), ("SIGKILL", signal.SIGKILL)):
        cluster.stop(how)
        began = time.monotonic()
        leader = cluster.start()
        report.value(f"restart after {name}, until a lease", round(time.monotonic() - began, 2),
                     "s")
        judge.port = cluster.client_ports[leader]
        seconds = c.load(options.programs, "verify", judge.port, keys, VALUE_BYTES, judge.file(), JUDGED_KEYS)
        report.value(f"read back of {keys} keys after {name}", round(seconds, 2), "s")
        say(f"  read back after {name}")
    judge.conclude()
    return leader


def measure_one_group(options, report):
    """The parts that share a cluster and the floors."""
    parts = options.parts
    with contextlib.ExitStack() as stack:
        cluster = c.Cluster(options.program, options.work)
        stack.callback(lambda: cluster.stop(signal.SIGKILL))
        leader = cluster.start()
        if "rest" in parts:
            measure_rest(report, cluster)
        floors = {
            "echo": c.Process("echo", [options.programs / "floor_echo", "--value-bytes",
                                       VALUE_BYTES, "serve"], options.work, True),
            "null": c.Process("null", [options.programs / "floor_null_replicate", "--dir",
                                       options.work, "--value-bytes", VALUE_BYTES, "serve"],
                              options.work, True)}
        redis = c.start_redis(options.work)
        if redis:
            floors["redis"] = redis
        for process in floors.values():
            stack.callback(process.stop)
        for port in [cluster.client_ports[leader], *([redis.port] if redis else [])]:
            c.load(options.programs, "load", port, KEYS, VALUE_BYTES)
        if "reads" in parts:
            measure_reads(options, report, cluster, leader, floors, "one core", ([0], [0]))
            if os.cpu_count() > 1:
                measure_reads(options, report, cluster, leader, floors, "two cores", ([0], [1]))
            prove_lease_reads(options, report, cluster, leader)
        if "writes" in parts:
            measure_writes(options, report, cluster, leader, floors)
        if "loads" in parts:
            loads.measure(options, report, cluster, leader, floors)
        if "etcd" in parts:
            loads.measure_beside_etcd(options, report, cluster, leader)
        if "open" in parts:
            open_rates.measure(options, report, cluster, leader, floors)
        if "keys" in parts and options.keys:
            measure_many_keys(options, report, cluster, leader)


# Those of one cluster, which measure_one_group() goes through, and those that have clusters of their own.
SHARED_PARTS = ("rest", "reads", "writes", "loads", "etcd", "open", "keys")
OWN_PARTS = {"check": measure_lease_check, "disk": measure_disk, "connections": crowd.measure,
             "busy-poll": busy_poll.measure, "large": large.measure, "instructions": instructions.measure,
             "beside-writes": beside_writes.measure, "disturbed": disturbed.measure,
             "transfers": planned.measure, "ten-million": ten_million.measure}
PARTS = {
    "check": "the lease check beside a clock read",
    "disk": "one durable write of the disk",
    "rest": "memory and processor of resting nodes",
    "reads": "reads, one after the other, beside the echo and Redis",
    "writes": "writes, one after the other, beside replication without consensus",
    "loads": "many requests at once, beside Redis and the floor",
    "etcd": "writes beside etcd",
    "open": "reads and writes on a schedule",
    "keys": "--keys keys are there after a restart",
    "busy-poll": "lease reads with --busy-poll",
    "connections": "GETs at 10,000 connections, beside Redis",
    "large": "SETs of 1 MiB, beside disk and loopback",
    "instructions": "instructions of a GET, beside Redis's",
    "beside-writes": "reads beside writes, on a schedule, beside both floors",
    "disturbed": "lease reads beside a stalled disk, a snapshot, a compaction, a cut; and for --minutes",
    "transfers": "waits around planned transfers",
    "ten-million": "--many-keys keys: load, restart, memory",
}


def run(options):
    report = Report(goals.load("measure"))
    facts = c.machine()
    noise = Noise()
    started = datetime.datetime.now(datetime.timezone.utc)
    failed = []
    earlier = options.before
    if earlier:
        report.take(earlier["results"])
    steps = [(name, OWN_PARTS[name]) for name in ("check", "disk") if name in options.parts]
    if set(SHARED_PARTS) & set(options.parts):
        steps.append(("one-group", measure_one_group))
    steps += [(name, OWN_PARTS[name]) for name in list(OWN_PARTS)[2:] if name in options.parts]
    for name, measure in steps:
        try:
            measure(options, report)
        except c.MeasureError as error:
            failed.append((name, error))
            say(f"measure: {name}: {error}\nmeasure: the other parts go on; logs and data are in {options.work}")
    facts["processor_time_stolen_percent"] = round(noise.stolen_percent(), 2)
    report.tell()
    if options.results:
        write_results(options, report, facts, failed, earlier)
    status = report.conclude(options.out, {
        "format": 1, "started": started.isoformat(timespec="seconds"), "machine": facts,
        "options": {"parts": options.parts, "pairs": options.pairs, "reads_per_block": options.reads,
                    "writes_per_block": options.writes, "keys": options.keys,
                    "minutes": options.minutes, "many_keys": options.many_keys, "transfers": options.transfers,
                    "value_bytes": VALUE_BYTES, "warmup_per_block": WARMUP},
        "failed": [name for name, _ in failed], "loop": "closed, one connection"})
    if failed:
        print(f"measure: worthless: {', '.join(name for name, _ in failed)}; see above", file=sys.stderr)
    return 2 if failed else status


def write_results(options, report, facts, failed, earlier):
    notes = [f"{facts['cores']} cores ({facts['processor']}), Linux {facts['kernel']}; three nodes on loopback, "
             f"{VALUE_BYTES}-byte values, each write synced on two of them before it is answered; processor time "
             f"stolen: {facts['processor_time_stolen_percent']} %",
             "a ratio is of medians, with its 95 % interval, from blocks that alternate (A B B A)"]
    notes += [f"{name}: thrown away: {entry['discarded']}" for name, entry in report.results.items()
              if "discarded" in entry]
    if earlier:
        notes.append(f"with the other parts of a run that began at {earlier['started']}: "
                     f"{', '.join(name for name in earlier['options']['parts'] if name not in options.parts)}")
    stays = "; its rows are of the earlier run" if earlier else ""
    notes += [f"the part {name} came to no end: {error}{stays}" for name, error in failed]
    tables = [("Goals", goals.rows(report.verdicts())), ("What was measured", report.measured()),
              ("Numbers", report.numbers())]
    results.write(str(options.results), "one group beside its floors and Redis", datetime.date.today().isoformat(),
                  command_of(options), notes, [(title, rows) for title, rows in tables if rows])


def command_of(options):
    words = ["bench/measure.py"]
    if options.parts != list(PARTS):
        words.append(f"--parts {','.join(options.parts)}")
    words += [f"--pairs {options.pairs}", f"--minutes {options.minutes:g}", f"--transfers {options.transfers}",
              "--results results/performance.json"]
    return " ".join(words)


def parts_of(text, parser):
    """In the order in which they are measured."""
    wanted = text.split(",")
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        parser.error(f"--parts takes {', '.join(PARTS)}, not {', '.join(unknown)}")
    return [name for name in PARTS if name in wanted]


def earlier_run(path, parser):
    """What a run wrote to its --out."""
    try:
        found = json.loads(path.read_text())
        if found["format"] == 1 and found["results"] and found["started"] and found["options"]["parts"]:
            return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"--before {path}: it is not what a run of this program wrote: {error!r}")
    parser.error(f"--before {path}: it is not what a run of this program wrote")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parts = "\n".join(f"  {name:<16} {what}" for name, what in PARTS.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"parts:\n{parts}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="some of the parts, by commas (default: all)")
    parser.add_argument("--build-dir", type=pathlib.Path, default=root / "build" / "release",
                        help="an optimised build (default: build/release)")
    parser.add_argument("--work-dir", type=pathlib.Path,
                        help="where data and logs go, on the disk to measure (default: a new "
                             "folder in the build folder, removed after a run without errors)")
    parser.add_argument("--out", type=pathlib.Path,
                        help="the JSON (default: BUILD_DIR/measure.json)")
    parser.add_argument("--results", type=pathlib.Path, help="write the goals and the rows as JSON, as "
                        "results/performance.json is")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of blocks, 10 at least "
                        "(default: 20)")
    parser.add_argument("--reads", type=int, default=2000, help="reads of a block (default: 2000)")
    parser.add_argument("--writes", type=int, default=200, help="writes of a block (default: 200)")
    parser.add_argument("--keys", type=int, default=100_000,
                        help="keys to load and read back after a restart; 0: none "
                             "(default: 100000)")
    parser.add_argument("--many-keys", type=int, default=10_000_000,
                        help="keys of the part ten-million, of 256 bytes: about 1 KB of disk each (default: 10000000)")
    parser.add_argument("--minutes", type=float, default=1, help="of the long reads of the part disturbed (default: 1)")
    parser.add_argument("--before", type=pathlib.Path, help="the JSON of an earlier run, on the same machine: what it "
                        "found stands for the parts that this one does not measure")
    parser.add_argument("--shim", type=pathlib.Path, help="disk_shim.so, which stalls disks (default: that of the "
                        "build folder)")
    parser.add_argument("--transfers", type=int, default=200, help="planned transfers (default: 200)")
    options = parser.parse_args()
    if options.before:
        options.before = earlier_run(options.before, parser)
    if options.pairs < 10:
        parser.error("--pairs must be 10 at least: fewer say nothing about the noise")
    options.parts = parts_of(options.parts, parser)
    options.programs = options.build_dir.resolve() / "bench"
    options.program = options.build_dir.resolve() / "server" / "leasehold"
    if not (options.programs / "bench_client").exists():
        parser.error(f"{options.build_dir} holds no build: run `cmake --preset release && "
                     "cmake --build --preset release` first")
    options.out = options.out or options.build_dir / "measure.json"
    if options.work_dir:
        options.work_dir.mkdir(parents=True, exist_ok=True)
    options.work = options.work_dir or pathlib.Path(
        tempfile.mkdtemp(prefix="measure-", dir=options.build_dir))
    status = run(options)
    if not options.work_dir and status != 2:
        shutil.rmtree(options.work)
    return status


if __name__ == "__main__":
    sys.exit(main())
