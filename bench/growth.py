#!/usr/bin/env python3
"""Measures how costs grow: over connections, writers, members of the group, bytes of a value, keys, entries that a
follower lacks, and leases of clients. See bench/README.md.

Each point is a block of load by `leasehold bench`, or a few, of which the median counts. --results writes the tables;
bench/page.py draws them."""

import argparse
import datetime
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile
import time

import cluster as c
import load_blocks
from lease_load import Leases, RenewalLoad
from scene import Bench
from stats import Histogram
from sweeps import Noise, say

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import results  # noqa: E402  pylint: disable=wrong-import-position

KEYS = 1000
VALUE_BYTES = 256
# A follower that lacks entries holds everything again within this, or the run is worthless.
CATCH_UP_S = 300.0
# Of a lease: it is renewed three times in it.
LEASE_S = 9.0
RENEWALS_IN_BURST = 100

# What each curve is drawn over.
POINTS = {
    "connections": [1, 4, 16, 64, 256],
    "writers": [1, 8, 64, 512, 4096],
    "members": [3, 5, 7],
    "values": [64, 1024, 16 << 10, 128 << 10, 1 << 20],
    "keys": [1000, 10_000, 100_000, 1_000_000],
    "behind": [1000, 10_000, 100_000, 1_000_000],
    "leases": [1000, 10_000, 100_000],
}
QUICK = {
    "connections": [1, 16, 64], "writers": [1, 64, 512], "members": [3, 5, 7], "values": [64, 1024, 16 << 10],
    "keys": [1000, 10_000], "behind": [1000, 10_000], "leases": [300, 3000],
}
TITLES = {"connections": "Connections", "writers": "Writers", "members": "Members", "values": "Values", "keys": "Keys",
          "behind": "Entries behind", "leases": "Leases"}


def measured(options, address, *flags):
    """The blocks of one point: (requests a second, us of the median request), each the median of the blocks; None where
    the client was the bottleneck in all of them."""
    rates, medians = [], []
    for _ in range(options.blocks):
        result = load_blocks.block(options.program, options.work, address, flags, options.seconds)
        if result["discarded"]:
            continue
        rates.append(result["operations"] / (result["elapsed_ns"] / 1e9))
        latency = Histogram.merged(Histogram(one["slots"]) for one in result["latency"].values())
        medians.append(latency.quantile(0.5) / 1000)
    if not rates:
        return None, None
    return round(statistics.median(rates)), round(statistics.median(medians), 1)


def reads(keys=KEYS, value_bytes=VALUE_BYTES, connections=1):
    return "--keys", keys, "--value-size", value_bytes, "--connections", connections


def writes(keys=KEYS, value_bytes=VALUE_BYTES, under_way=1):
    return "--keys", keys, "--value-size", value_bytes, "--workload", "set", "--in-flight", under_way


def over_connections(options, points):
    with Bench(options, "connections") as bench:
        bench.fill()
        redis = bench.redis()
        if redis:
            bench.fill(port=redis)
        for count in points:
            row = {"connections": count}
            load = reads(connections=count)
            row["lease reads a second"], row["lease read us"] = measured(options, bench.address, *load)
            if redis:
                row["Redis, reads a second"], _ = measured(options, f"127.0.0.1:{redis}", *load)
            yield row


def over_writers(options, points):
    with Bench(options, "writers") as bench:
        floor = bench.floor(VALUE_BYTES)
        for count in points:
            row = {"writers": count}
            row["writes a second"], row["write us"] = measured(options, bench.address, *writes(under_way=count))
            row["without consensus, writes a second"], _ = measured(options, floor, *writes(under_way=count))
            yield row


def over_members(options, points):
    for count in points:
        with Bench(options, f"members-{count}", members=count) as bench:
            bench.fill()
            row = {"members": count}
            _, row["lease read us"] = measured(options, bench.address, *reads())
            _, row["write us"] = measured(options, bench.address, *writes())
            row["writes a second, 64"], row["write of 64 us"] = measured(options, bench.address, *writes(under_way=64))
        yield row


def over_values(options, points):
    for size in points:
        with Bench(options, f"values-{size}") as bench:
            keys = max(16, min(KEYS, (16 << 20) // size))
            bench.fill(keys, size)
            row = {"bytes": size}
            _, row["lease read us"] = measured(options, bench.address, *reads(keys, size))
            _, row["write us"] = measured(options, bench.address, *writes(keys, size))
            redis = bench.redis()
            if redis:
                bench.fill(keys, size, redis)
                _, row["Redis, read us"] = measured(options, f"127.0.0.1:{redis}", *reads(keys, size))
            _, row["without consensus, write us"] = measured(options, bench.floor(size), *writes(keys, size))
        yield row


def over_keys(options, points):
    for keys in points:
        with Bench(options, f"keys-{keys}") as bench:
            bench.fill(keys)
            row = {"keys": keys}
            _, row["lease read us"] = measured(options, bench.address, *reads(keys))
            _, row["write us"] = measured(options, bench.address, *writes(keys))
            row["memory of the leader, MiB"] = round(
                c.resident_kib(bench.cluster.processes[bench.leader].pid) / 1024)
        yield row


def over_behind(options, points):
    """A follower ends, entries are written, it starts again: until it has applied all of them."""
    for entries in points:
        with Bench(options, f"behind-{entries}") as bench:
            away = next(node for node in bench.cluster.processes if node != bench.leader)
            bench.cluster.processes[away].stop(signal.SIGKILL)
            bench.fill(entries)
            wanted = bench.cluster.status(bench.leader)["last"]
            began = time.monotonic()
            bench.cluster.start_node(away)
            while not applied(bench.cluster, away, wanted):
                if time.monotonic() - began > CATCH_UP_S:
                    raise c.MeasureError(f"{entries} entries behind: not there after {CATCH_UP_S:g} s")
                time.sleep(0.005)
            row = {"entries": entries, "seconds": round(time.monotonic() - began, 3)}
        yield row


def applied(cluster, node, wanted):
    try:
        return cluster.status(node)["applied"] >= wanted
    except OSError:
        return False  # not listening yet


def over_leases(options, points):
    with Bench(options, "leases") as bench:
        for count in points:
            leases = Leases(bench.port, count, LEASE_S)
            leases.grant()
            leases.renew()
            load = RenewalLoad(options.programs, bench.port, leases, 1, RENEWALS_IN_BURST, options.renew_s + 1)
            try:
                time.sleep(1)
                yield {"leases": count, **renewing(options, bench)}
                load.result()
            finally:
                load.stop()
                leases.close()
            # Those of the next point have the same ids.
            time.sleep(LEASE_S + 2)


def renewing(options, bench):
    """The processors of the leader and of a follower, over a while."""
    pids = {"leader": [bench.cluster.processes[bench.leader].pid],
            "follower": [p.pid for node, p in bench.cluster.processes.items() if node != bench.leader][:1]}
    before, began = {who: c.cpu_ns(each) for who, each in pids.items()}, time.monotonic()
    time.sleep(options.renew_s)
    elapsed_ns = (time.monotonic() - began) * 1e9
    return {f"{who}, % of a core": round(100 * (c.cpu_ns(each) - before[who]) / elapsed_ns, 2)
            for who, each in pids.items()}


CURVES = {"connections": over_connections, "writers": over_writers, "members": over_members, "values": over_values,
          "keys": over_keys, "behind": over_behind, "leases": over_leases}


def run(options):
    noise = Noise()
    tables = []
    began = time.monotonic()
    for name in options.curves:
        say(f"{TITLES[name]}:")
        rows = []
        for row in CURVES[name](options, (QUICK if options.quick else POINTS)[name]):
            say("  " + ", ".join(f"{column} {results.text_of(value)}" for column, value in row.items()))
            rows.append(row)
        tables.append((TITLES[name], rows))
    say(f"{time.monotonic() - began:.0f} s, processor time stolen: {noise.stolen_percent():.2f} %")
    if not options.results:
        return
    facts = c.machine()
    notes = [f"{facts['cores']} cores ({facts['processor']}), Linux {facts['kernel']}; all nodes, their client and "
             "what they are held against on loopback and one disk; processor time stolen: "
             f"{noise.stolen_percent():.2f} %",
             f"values of {VALUE_BYTES} bytes and {KEYS:,} keys, where the curve is not over them; a read and a write "
             "wait for the one before, where nothing else is said; what the client was the bottleneck of is left out"]
    if options.quick:
        notes.append("quick: short blocks at few points, which show that the tool works and the rough shape, no more")
    words = " --quick" if options.quick else ""
    results.write(str(options.results), "how costs grow", datetime.date.today().isoformat(),
                  f"bench/growth.py{words} --results results/growth.json", notes, tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="an optimised build (default: build/release)")
    parser.add_argument("--work-dir", type=pathlib.Path, help="where data and logs go, on the disk to measure "
                        "(default: a new folder in the build folder, removed after a run without errors)")
    parser.add_argument("--results", type=pathlib.Path, help="write the tables as JSON, as results/growth.json is; "
                        "needs all curves")
    parser.add_argument("--curves", default=",".join(CURVES), help=f"some of {', '.join(CURVES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="two minutes, at few and small points: shows that the "
                        "tool works")
    options = parser.parse_args()
    options.curves = options.curves.split(",")
    unknown = [name for name in options.curves if name not in CURVES]
    if unknown:
        parser.error(f"--curves takes {', '.join(CURVES)}, not {', '.join(unknown)}")
    if options.results and options.curves != list(CURVES):
        parser.error("--results needs all curves: leave --curves out")
    options.programs = options.build_dir.resolve() / "bench"
    options.program = options.build_dir.resolve() / "server" / "leasehold"
    for program in (options.program, options.programs / "bench_client", options.programs / "floor_null_replicate"):
        if not program.exists():
            parser.error(f"there is no {program}: run `cmake --preset release && cmake --build --preset release`")
    options.blocks, options.seconds, options.renew_s = (1, 0.5, 2) if options.quick else (5, 2, 20)
    if options.work_dir:
        options.work_dir.mkdir(parents=True, exist_ok=True)
    options.work = options.work_dir or pathlib.Path(tempfile.mkdtemp(prefix="growth-", dir=options.build_dir))
    try:
        run(options)
    except c.MeasureError as error:
        print(f"growth: {error}\ngrowth: logs and data are in {options.work}", file=sys.stderr)
        return 2
    if not options.work_dir:
        shutil.rmtree(options.work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
