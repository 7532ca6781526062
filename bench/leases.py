#!/usr/bin/env python3
"""Measures what the leases of clients cost, and how late they end; see bench/README.md.

Three nodes on loopback hold many leases, which are renewed in every third of their time to live. Measured
are the processor time of the leader, what comes to the logs meanwhile (nothing should), the memory of a
lease, one renewal beside one lease read, and how late a lease ends that nobody renews, one after the other
and all at once."""

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

import cluster as c
import goals
from lease_load import FIRST_ID, LOOK_S, Leases, RenewalLoad
from report import Report
from stats import Histogram
from sweeps import WARMUP, Noise, Sweeps, say

KEYS = 1000
VALUE_BYTES = 256
# Values of the writes before the grants, about as long as the entry of a grant.
SMALL_VALUE_BYTES = 64
# No time to live is over by itself.
HOUR_S = 3600.0
SETTLE_S = 1.0
# Of the leases whose end is timed one by one: below all others.
STAGGERED_FIRST_ID = FIRST_ID - 1_000_000
COMMITS = 300
OPEN_RATE = 1000
OPEN_WARMUP_S = 0.5
CHECK_MS = 200.0
# A watcher that looks less often says more about itself than about the leases.
LOOK_MS_MAX = 10.0
# Leases that a leader ends between two checks (docs/leases.md).
ROUND_LEASES = 4096

# How renewals are sent: leases in a command, and commands in a pipeline.
LOADS = {"pipelined": (1, 100), "in batches": (1000, 1), "one by one": (1, 1)}
BACKGROUND = "pipelined"

GOALS = goals.limits("leases")

# What is written for good, and what travels to be written.
GROWTH = {"entries": ("last",), "log bytes": ("log_bytes",), "syncs": ("node", "log_syncs"),
          "appends sent": ("node", "appends_sent")}


def wait_until_applied(cluster):
    deadline = time.monotonic() + c.START_DEADLINE_S
    while time.monotonic() < deadline:
        states = [cluster.status(node) for node in cluster.processes]
        if len({state["last"] for state in states}) == 1 and all(state["applied"] == state["last"] for state in states):
            return
        time.sleep(0.02)
    raise c.MeasureError("the nodes do not catch up with each other")


def resident(cluster):
    return {node: c.resident_kib(process.pid) * 1024 for node, process in cluster.processes.items()}


def log_state(cluster):
    """By node: what must stand still while leases are renewed at the leader."""
    found = {}
    for node in cluster.processes:
        status = cluster.status(node)
        found[node] = {"term": status["term"]}
        for name, path in GROWTH.items():
            value = status
            for key in path:
                value = value[key]
            found[node][name] = value
    return found


def growth(before, after):
    """By name, over all nodes."""
    if any(after[node]["term"] != before[node]["term"] for node in before):
        raise c.MeasureError("there was an election during the renewals; measure again on a quieter machine")
    return {name: sum(after[node][name] - before[node][name] for node in before) for name in GROWTH}


def report_growth(report, name, grown):
    name = f"log growth at the three nodes, {name}"
    report.value(name, sum(grown.values()), "entries, bytes, syncs and appends", 0)
    report.results[name]["parts"] = grown


def measure_memory(options, report, named):
    """On a cluster of its own, so that nothing else has used memory. It has taken as many writes before, since
    the log, the store and the connections keep buffers for any write, leases or not."""
    kind = "with a name and a holder" if named else "without a name"
    say(f"memory of {options.leases} leases {kind}")
    folder = options.work / ("memory-named" if named else "memory")
    folder.mkdir(parents=True)
    cluster = c.Cluster(options.program, folder)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: cluster.stop(signal.SIGKILL))
        leader = cluster.start()
        at_start = resident(cluster)
        c.load(options.programs, "load", cluster.client_ports[leader], options.leases, SMALL_VALUE_BYTES)
        wait_until_applied(cluster)
        time.sleep(SETTLE_S)
        before = resident(cluster)
        leases = Leases(cluster.client_ports[leader], options.leases, HOUR_S, named=named)
        stack.callback(leases.close)
        leases.grant()
        leases.renew()
        wait_until_applied(cluster)
        time.sleep(SETTLE_S)
        after = resident(cluster)
    followers = [node for node in before if node != leader]
    for who, nodes in (("leader", [leader]), ("followers", followers)):
        most = max(after[node] - before[node] for node in nodes) / options.leases
        from_start = max(after[node] - at_start[node] for node in nodes) / options.leases
        report.value(f"memory of a lease {kind}, {who}", round(most), "bytes", options.judged(GOALS["lease_bytes"]))
        report.value(f"the same, the writes before it counted, {kind}, {who}", round(from_start), "bytes")
        say(f"  {who}: {most:.0f} bytes each; the writes before it counted, {from_start:.0f}")


def measure_renewing(options, report, cluster, leader, leases):
    """A renewal in every third of the time to live, for a while, in each way."""
    followers = [process.pid for node, process in cluster.processes.items() if node != leader]
    memory = resident(cluster)[leader]
    for name, (ids, burst) in LOADS.items():
        leases.renew()
        load = RenewalLoad(options.programs, cluster.client_ports[leader], leases, ids, burst,
                           options.seconds + SETTLE_S)
        try:
            time.sleep(SETTLE_S)
            before = log_state(cluster)
            cpu = c.cpu_ns([cluster.processes[leader].pid]), c.cpu_ns(followers)
            began = time.monotonic()
            time.sleep(options.seconds)
            elapsed_ns = (time.monotonic() - began) * 1e9
            used = c.cpu_ns([cluster.processes[leader].pid]) - cpu[0]
            used_by_followers = c.cpu_ns(followers) - cpu[1]
            grown = growth(before, log_state(cluster))
            result = load.result()
        finally:
            load.stop()
        leases.renew()
        share = used / elapsed_ns
        late_ms = Histogram(result["late"]["slots"]).quantile(0.99) / 1e6
        if result["discarded"]:
            report.discarded("renew", load.rate, name, result["discarded"])
        else:
            report.open_row("renew", load.rate, name, Histogram(result["renewals"]["slots"]))
        report.value(f"processor of the leader, {name}", round(share, 4), "of a core", options.judged(GOALS["core"]))
        report.value(f"processor of one follower, {name}", round(used_by_followers / elapsed_ns / 2, 4), "of a core")
        report.value(f"client late at p99, {name}", round(late_ms, 3), "ms")
        report_growth(report, name, grown)
        say(f"  {name}, {load.rate} commands/s of {ids}, {burst} at once: {share:.3f} of a core; "
            + ", ".join(f"{what} {rise}" for what, rise in grown.items()))
    report.value("memory of the leader, grown while renewing", round((resident(cluster)[leader] - memory) / 2**20, 1),
                 "MiB")


def commit_p99_ms(options, cluster, leader):
    """Of one write: what an expiry waits for once it is found."""
    client = c.Client(options.programs / "bench_client", {"write": ("set", cluster.client_ports[leader])}, {}, KEYS,
                      VALUE_BYTES, WARMUP, options.work)
    try:
        return Histogram(client.block("write", COMMITS)["latency"]["slots"]).quantile(0.99) / 1e6
    finally:
        client.close()


def report_lateness(report, name, leases, seen, goal):
    early = sum(end < sent + leases.ttl_s for end, sent in zip(seen, leases.sent))
    # A tenth of a millisecond is finer than what is seen.
    late = Histogram([(round((end - answered - leases.ttl_s) * 1000, 1), 1)
                      for end, answered in zip(seen, leases.answered)])
    p50, p99, most = late.quantiles([0.5, 0.99, 1.0])
    report.value(f"{name}, p50", p50, "ms")
    report.value(f"{name}, p99", p99, "ms", goal)
    report.value(f"{name}, max", most, "ms")
    report.value(f"{name}, ended early", early, "leases", 0)
    report.results[f"{name}, all"] = {"unit": "ms", "count": late.count, "slots": late.slots()}
    say(f"  {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {most:.1f} ms, {early} early")


def measure_expiry(options, report, cluster, leader, others):
    """Leases end one after the other, while all others are renewed."""
    count = options.staggered
    say(f"{count} leases end one after the other, {others.count} are renewed meanwhile")
    port = cluster.client_ports[leader]
    spread = 0.8 * options.ttl
    others.renew()
    ids, burst = LOADS[BACKGROUND]
    load = RenewalLoad(options.programs, port, others, ids, burst, spread + options.ttl + 3 * SETTLE_S)
    leases = Leases(port, count, options.ttl, first=STAGGERED_FIRST_ID)
    try:
        commit_ms = commit_p99_ms(options, cluster, leader)
        leases.grant()
        begun = time.monotonic()
        for lease in range(count):
            time.sleep(max(0.0, begun + spread * lease / count - time.monotonic()))
            leases.renew_one(lease)
        seen, looks = leases.watch(leases.answered[-1] + options.ttl + c.START_DEADLINE_S)
        load.result()
    finally:
        load.stop()
        leases.close()
    look_ms = sorted(looks)[int(0.99 * len(looks))] * 1000
    if look_ms > LOOK_MS_MAX and not options.quick:
        raise c.MeasureError(f"the watcher of the leases had pauses of {look_ms:.1f} ms; measure again on a quieter "
                             "machine")
    report.value("a commit, p99", round(commit_ms, 3), "ms")
    report.value("between two looks of the watcher, p99", round(look_ms, 3), "ms")
    report_lateness(report, "a lease ends late, one after the other", leases, seen,
                    options.judged(round(CHECK_MS + commit_ms + look_ms, 1)))


class Reads:
    """GETs of another client on a schedule, each a lease read."""

    def __init__(self, options, port, seconds):
        self.child = subprocess.Popen(
            [str(word) for word in (
                options.programs / "bench_client", "--keys", KEYS, "--value-bytes", VALUE_BYTES, "open", "--address",
                f"127.0.0.1:{port}", "--rate", OPEN_RATE, "--warmup-ms", int(OPEN_WARMUP_S * 1000),
                "--duration-ms", int(seconds * 1000), "--connections", 4)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def result(self):
        out, err = self.child.communicate()
        if self.child.returncode != 0:
            raise c.MeasureError(f"reads: {err.strip()}")
        result = json.loads(out)
        if result["failures"]:
            raise c.MeasureError(f"{result['failures']} reads failed, the first with {result['first_failure']!r}")
        return Histogram(result["reads"]["slots"]), result["discarded"]


def measure_end_of_all(options, report, cluster, leader, leases):
    """Every lease ends at once, and another client reads."""
    say(f"{leases.count} leases end at once")
    port = cluster.client_ports[leader]
    # About as long as it takes: a round of them at each check.
    seconds = max(1.0, leases.count / ROUND_LEASES * CHECK_MS / 1000)
    leases.renew()
    at_rest = Reads(options, port, min(seconds, leases.ttl_s / 2)).result()
    over = leases.answered[-1] + leases.ttl_s
    time.sleep(max(0.0, over - OPEN_WARMUP_S - time.monotonic()))
    before, began = cluster.leader_counters(leader), time.monotonic()
    reads = Reads(options, port, seconds)
    seen, _ = leases.watch(over + leases.ttl_s + c.START_DEADLINE_S)
    meanwhile = reads.result()
    after, ended = cluster.leader_counters(leader), time.monotonic()
    p99s = []
    for target, (histogram, discarded) in (("at rest", at_rest), ("all ending", meanwhile)):
        if discarded:
            report.discarded("reads", OPEN_RATE, target, discarded)
        else:
            report.open_row("reads", OPEN_RATE, target, histogram)
            p99s.append(histogram.quantile(0.99) / 1000)
    report_lateness(report, "a lease ends late, all at once", leases, seen, None)
    report.value("all at once: until the last has ended", round(max(seen) - over, 3), "s")
    if len(p99s) == 2:
        report.value("p99 of reads, while all end / at rest", round(p99s[1] / max(p99s[0], 0.001), 2), "")
    report.value("elections while all end", after["term"] - before["term"], "", 0)
    report.value("reads without the leader lease while all end",
                 after["lease_fallbacks"] - before["lease_fallbacks"], "", 0)
    report.value("heartbeats while all end",
                 round((after["heartbeats_sent"] - before["heartbeats_sent"]) / (ended - began), 1), "a second")
    shown = f"{p99s[1]:.0f} us, at rest {p99s[0]:.0f} us" if len(p99s) == 2 else "not quoted, since the client was late"
    say(f"  the last after {max(seen) - over:.2f} s; p99 of reads {shown}; "
        f"elections {after['term'] - before['term']}")


def measure_one_renewal(options, report, cluster, leader, placement, cores):
    """Closed loop, one connection, as measure.py does it."""
    say(f"renewals beside lease reads, {placement}: closed loop, one connection")
    port = cluster.client_ports[leader]
    targets = {"read": ("get", port), "renewal": ("renew", port)}
    client = c.Client(options.programs / "bench_client", targets, {"read": "LEASEHOLD READMODE lease"}, KEYS,
                      VALUE_BYTES, WARMUP, options.work,
                      ["--leases", options.leases, "--ttl-ms", int(HOUR_S * 1000)])
    pid = [cluster.processes[leader].pid]
    sweeps = Sweeps("renewals", client, list(targets), {name: pid for name in targets},
                    {name: options.operations for name in targets})
    logs, before = log_state(cluster), cluster.leader_counters(leader)
    sweeps.run_pinned(options.pairs, *cores)
    after = cluster.leader_counters(leader)
    client.close()
    grown = growth(logs, log_state(cluster))
    reads = sweeps.series["read"].operations
    if after["lease_hits"] - before["lease_hits"] != reads:
        raise c.MeasureError(f"{reads} lease reads raised the counter of lease reads by "
                             f"{after['lease_hits'] - before['lease_hits']}: the lease was lost during the run; "
                             "measure again on a quieter machine")
    report.series(f"lease read, {placement}", sweeps.series["read"])
    report.series(f"renewal, {placement}", sweeps.series["renewal"], "lease read", sweeps.series["read"],
                  options.judged(GOALS["renewal"]))
    report_growth(report, f"closed loop, {placement}", grown)


def run(options):
    report = Report()
    facts = c.machine()
    noise = Noise()
    started = datetime.datetime.now(datetime.timezone.utc)
    for named in (False, True):
        measure_memory(options, report, named)
    with contextlib.ExitStack() as stack:
        cluster = c.Cluster(options.program, options.work)
        stack.callback(lambda: cluster.stop(signal.SIGKILL))
        leader = cluster.start()
        port = cluster.client_ports[leader]
        c.load(options.programs, "load", port, KEYS, VALUE_BYTES)
        say(f"{options.leases} leases of {options.ttl:g} s, renewed every third of it for {options.seconds:g} s")
        leases = Leases(port, options.leases, options.ttl)
        stack.callback(leases.close)
        leases.grant()
        measure_renewing(options, report, cluster, leader, leases)
        measure_expiry(options, report, cluster, leader, leases)
        measure_end_of_all(options, report, cluster, leader, leases)
        lasting = Leases(port, options.leases, HOUR_S)
        stack.callback(lasting.close)
        lasting.grant()
        wait_until_applied(cluster)
        measure_one_renewal(options, report, cluster, leader, "one core", ([0], [0]))
        if os.cpu_count() > 1:
            measure_one_renewal(options, report, cluster, leader, "two cores", ([0], [1]))
    facts["processor_time_stolen_percent"] = round(noise.stolen_percent(), 2)
    report.tell()
    return report.conclude(options.out, {
        "format": 1, "started": started.isoformat(timespec="seconds"), "machine": facts,
        "options": {"leases": options.leases, "ttl_s": options.ttl, "seconds": options.seconds,
                    "staggered": options.staggered, "pairs": options.pairs,
                    "operations_per_block": options.operations, "quick": options.quick, "keys": KEYS,
                    "value_bytes": VALUE_BYTES, "warmup_per_block": WARMUP, "look_s": LOOK_S}})


def parse():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=root / "build" / "release",
                        help="an optimised build (default: build/release)")
    parser.add_argument("--work-dir", type=pathlib.Path,
                        help="where data and logs go (default: a new folder in the build folder, removed after a run "
                             "without errors)")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON (default: BUILD_DIR/leases.json)")
    parser.add_argument("--quick", action="store_true",
                        help="few leases for a few seconds: shows that the tool works and that renewals write nothing; "
                             "times and memory are printed and held against no goal")
    parser.add_argument("--leases", type=int, help="how many are renewed (default: 100000)")
    parser.add_argument("--ttl", type=float, help="their time to live in seconds (default: 10)")
    parser.add_argument("--seconds", type=float, help="of renewing, in each way (default: 30)")
    parser.add_argument("--staggered", type=int, help="leases whose end is timed one by one (default: 2000)")
    parser.add_argument("--pairs", type=int, help="pairs of blocks, 10 at least (default: 20)")
    parser.add_argument("--operations", type=int, help="renewals, and reads, of a block (default: 2000)")
    options = parser.parse_args()
    full = {"leases": 100_000, "ttl": 10.0, "seconds": 30.0, "staggered": 2000, "pairs": 20, "operations": 2000}
    quick = {"leases": 2000, "ttl": 3.0, "seconds": 1.0, "staggered": 40, "pairs": 2, "operations": 200}
    for name, value in (quick if options.quick else full).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.ttl < 3:
        parser.error("--ttl must be 3 at least: some parts of the run renew nothing for a second")
    if options.pairs < 10 and not options.quick:
        parser.error("--pairs must be 10 at least: fewer say nothing about the noise")
    options.programs = options.build_dir.resolve() / "bench"
    options.program = options.build_dir.resolve() / "server" / "leasehold"
    if not (options.programs / "bench_client").exists() or not options.program.exists():
        parser.error(f"{options.build_dir} holds no build: run `cmake --preset release && "
                     "cmake --build --preset release` first")
    options.judged = lambda goal: None if options.quick else goal
    options.out = options.out or options.build_dir / "leases.json"
    return options


def main():
    options = parse()
    if options.work_dir:
        options.work_dir.mkdir(parents=True, exist_ok=True)
    options.work = options.work_dir or pathlib.Path(tempfile.mkdtemp(prefix="leases-", dir=options.build_dir))
    try:
        status = run(options)
    except (c.MeasureError, OSError) as error:
        print(f"leases: {error}\nleases: logs and data are in {options.work}", file=sys.stderr)
        return 2
    if not options.work_dir:
        shutil.rmtree(options.work)
    return status


if __name__ == "__main__":
    sys.exit(main())
