"""Lease reads on a schedule while the nodes' disks stall, a follower gets a snapshot, tables are compacted and logs are
cut, beside the same reads at rest; and then for --minutes at a rate that keeps most of the processors busy. A few
writes run beside all of them."""

import contextlib
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import cluster as c
import paced
from judge import Judge
from scene import VALUE_BYTES, Bench
from stats import Histogram, compared
from sweeps import Noise, say

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from disk_control import DiskControl  # noqa: E402  pylint: disable=wrong-import-position

NAME = "reads beside"
RATE, WRITE_RATE = 2000, 50
BLOCK_S = 4.0
STALL_S = 1.0
# The event begins when so many reads were answered, behind the client's warm-up.
READS_BEFORE = int(0.8 * RATE)
# Written before each event: tables and log that it has to deal with.
KEYS = 20_000
# An explicit snapshot cuts the log, and nothing else does.
LOG_FLAGS = ["--log-tail", "1M", "--log-cut", "1G"]
EVENT_DEADLINE_S = 60.0
LEASE = "LEASEHOLD READMODE lease"
# Of all processors, in the long part.
BUSY = 0.8
PROBE_S = 2.0
RATE_MAX = 100_000
TOLD_EVERY_S = 10.0


def until(what, holds):
    deadline = time.monotonic() + EVENT_DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise c.MeasureError(f"{NAME} {what}: it has not happened in {EVENT_DEADLINE_S:g} s")
        time.sleep(0.01)


def shim_of(options):
    """The library that stalls disks, or None."""
    places = [options.shim] if options.shim else [options.build_dir / "tests" / "process" / "disk_shim.so"]
    return next((place.resolve() for place in places if place.exists()), None)


class Disturber:
    """What happens to a running cluster. Each kind has something before the block, and the event, which returns when it
    has ended."""

    def __init__(self, options, shim):
        self.options = options
        self.shim = shim
        self.stalls = {}
        self.fallbacks = 0  # of reads at any node, beside all events
        self.failures = 0  # reads that were refused
        self.left = []  # of each block, the share of the requests that no standstill of the client takes away
        self.judge = None  # of all reads and writes, from the first one on
        self.bench = Bench(options, "disturbed", flags=lambda node: LOG_FLAGS, environment=self.environment)

    def environment(self, node):
        if not self.shim:
            return {}
        if node not in self.stalls:
            self.stalls[node] = DiskControl(self.bench.folder / f"node{node}.disk")
        return self.stalls[node].environment(self.shim, self.bench.folder / f"n{node}")

    @property
    def follower(self):
        return min(node for node in self.bench.cluster.client_ports if node != self.bench.leader)

    def kinds(self):
        every = {"a stall of all disks": (lambda: None, self.stall), "a snapshot": (self.leave_behind, self.install),
                 "a compaction": (self.fill_tables, self.compact), "a cut of the log": (self.fill, self.cut)}
        if not self.shim:
            say(f"{NAME} a stall of all disks: left out: there is no disk_shim.so (see --shim)")
            del every["a stall of all disks"]
        return every

    def fill(self):
        self.judge.ask("load", KEYS, self.bench.port)

    def snapshot(self, *nodes):
        """LEASEHOLD SNAPSHOT: a node makes its store durable and cuts its log."""
        found = []
        for node in nodes:
            connection = c.Resp(self.bench.cluster.client_ports[node], EVENT_DEADLINE_S)
            try:
                found.append(json.loads(connection.command("LEASEHOLD", "SNAPSHOT")))
            finally:
                connection.close()
        return found

    def stall(self):
        def stands():
            before = {node: one.get("stalled") for node, one in self.stalls.items()}
            for one in self.stalls.values():
                one.stall(STALL_S)
            until("a stall", lambda: all(one.get("stalled") > before[node] for node, one in self.stalls.items()))
            began = time.monotonic()
            time.sleep(STALL_S / 10)
            commit = self.commit()
            time.sleep(STALL_S / 10)
            # Else it was a file that a log makes ahead, and entries go on beside it.
            stood = commit == self.commit()
            time.sleep(max(0.0, began + STALL_S - time.monotonic()))  # which is what the stalled syncs do
            return stood
        until("a stall", stands)

    def commit(self):
        return max(self.bench.cluster.status(node)["commit"] for node in self.stalls)

    def lease_fallbacks(self):
        found = {}
        for node in self.bench.cluster.client_ports:
            with contextlib.suppress(OSError):  # one that is away has none
                found[node] = self.bench.cluster.status(node)["reads"]["lease_fallbacks"]
        return found

    def cut(self):
        for one in self.snapshot(*self.bench.cluster.client_ports):
            if one["first"] <= one["first_before"]:
                raise c.MeasureError(f"{NAME} a cut of the log: nothing was cut: {one}")

    def leave_behind(self):
        follower = self.follower
        self.bench.cluster.processes[follower].stop(signal.SIGKILL)
        self.fill()
        self.snapshot(*(node for node in self.bench.cluster.client_ports if node != follower))

    def install(self):
        cluster, follower = self.bench.cluster, self.follower
        wanted = cluster.status(self.bench.leader)["last"]
        cluster.start_node(follower)
        paced.apart([cluster.processes[follower].pid])

        def caught_up():
            try:
                status = cluster.status(follower)
            except OSError:
                return False  # not listening yet
            return status["applied"] >= wanted and status["node"]["snapshots_installed"] > 0
        until("a snapshot", caught_up)

    def tables(self):
        """Of the leader's store."""
        return {table.name for table in (self.bench.folder / f"n{self.bench.leader}" / "state").glob("db-*/*.sst")}

    def fill_tables(self):
        for _ in range(3):
            self.fill()
            self.snapshot(*self.bench.cluster.client_ports)
        self.fill()

    def compact(self):
        """Each snapshot adds a table, until those that are there become one."""
        before = self.tables()

        def compacted():
            self.snapshot(*self.bench.cluster.client_ports)
            return not before <= self.tables()
        until("a compaction", compacted)


def block(disturber, event):
    """(histogram of the reads, why it does not count)."""
    bench, options = disturber.bench, disturber.options
    before, fallbacks = bench.counters(), disturber.lease_fallbacks()
    client = paced.start(options, bench.port, RATE, BLOCK_S, write_rate=WRITE_RATE, setup=LEASE, judge=disturber.judge,
                         flags=["--list-waits"])
    try:
        until("nothing", lambda: bench.counters()["lease_hits"] - before["lease_hits"] >= READS_BEFORE)
        began = time.monotonic_ns()
        event()
        span = (began, time.monotonic_ns())
        outlasted = client.poll() is not None
        found = paced.steady(paced.result(client, f"{NAME} an event", may_fail=True), span)
    finally:
        paced.end(client)
    bench.leader = bench.cluster.wait_for_lease()
    disturber.failures += found["failures"]
    disturber.fallbacks += sum(max(0, now - fallbacks.get(node, 0)) for node, now in
                               disturber.lease_fallbacks().items())
    reason = "the event has outlasted the block" if outlasted else paced.late(found, "reads", 0.999)
    disturber.left.append(found["left"])
    return Histogram(found["reads"]["slots"]), reason


def disturb(report, disturber, kind, prepare, event, rounds):
    """A row: p99.9 beside the events / at rest."""
    blocks, thrown_away, fallbacks = {"rest": [], "event": []}, [], disturber.fallbacks
    for turn in range(rounds):
        pair, reasons = {}, []
        for name in ("rest", "event") if turn % 2 == 0 else ("event", "rest"):
            if name == "event":
                prepare()
            pair[name], reason = block(disturber, event if name == "event" else lambda: None)
            reasons.append(reason)
        say(f"  {NAME} {kind} {turn + 1}/{rounds}  p99.9 us: rest {pair['rest'].quantile(0.999) / 1000:.0f}, beside it "
            f"{pair['event'].quantile(0.999) / 1000:.0f}" + "".join(f"; thrown away: {one}" for one in reasons if one))
        if any(reasons):
            thrown_away.append(max(reasons))
            continue
        for name, histogram in pair.items():
            blocks[name].append(histogram)
    name = f"{NAME} {kind}: p99.9 / at rest"
    report.value(f"{NAME} {kind}: fallbacks", disturber.fallbacks - fallbacks, "reads")
    report.value(f"{NAME} {kind}: pairs of blocks that were thrown away", len(thrown_away), f"of {rounds}")
    if 2 * len(thrown_away) > rounds:
        report.results[name] = {"discarded": thrown_away[-1]}
        return
    report.interval(name, compared(blocks["event"], blocks["rest"], 0.999), "")
    for which, of in blocks.items():
        report.value(f"{NAME} {kind}: p99.9, {'at rest' if which == 'rest' else 'beside it'}",
                     round(Histogram.merged(of).quantile(0.999) / 1000, 1), "us")


def busy(run):
    """(what it returns, the share of all processors that was busy meanwhile)."""
    def sample():
        idle = sum(int(field) for field in open("/proc/stat", encoding="ascii").readline().split()[4:6])
        return idle, Noise.sample()["all"]
    before = sample()
    found = run()
    idle, whole = (after - was for after, was in zip(sample(), before))
    return found, 1 - idle / max(1, whole)


def busy_rate(options, bench):
    """Reads a second that keep BUSY of the processors busy, from a few short runs."""
    rate = RATE
    while True:
        probe = paced.start(options, bench.port, rate, PROBE_S, setup=LEASE, alone=False)
        found, share = busy(lambda: paced.result(probe, "reads, to find their rate"))
        paced.end(probe)
        say(f"  {rate} reads a second keep {100 * share:.0f} % of the processors busy")
        if found["overflows"] or share >= BUSY or rate >= RATE_MAX:
            return max(RATE, round(rate * min(1.0, BUSY / share)))
        rate = round(rate * min(2.0, max(1.1, BUSY / max(share, 0.01))))


def hold(options, report, bench, judge):
    """The long part. Returns how many reads fell back."""
    paced.together(bench.pids)
    rate = busy_rate(options, bench)
    say(f"lease reads for {options.minutes:g} minutes, {rate} a second")
    start = bench.cluster.status(bench.leader)

    def run():
        client = paced.start(options, bench.port, rate, 60 * options.minutes, write_rate=WRITE_RATE, setup=LEASE,
                             alone=False, judge=judge)
        try:
            while client.poll() is None:
                try:
                    client.wait(TOLD_EVERY_S)
                except subprocess.TimeoutExpired:
                    of = bench.cluster.status(bench.leader)["reads"]
                    say(f"  {of['lease_hits']} reads under the lease at once, {of['lease_fallbacks']} fallbacks")
            return paced.result(client, "the long part")
        finally:
            paced.end(client)
    found, share = busy(run)
    end = bench.cluster.status(bench.leader)
    rise = {key: end["reads"][key] - start["reads"][key] for key in ("lease_hits", "lease_waits", "lease_fallbacks")}
    reads = sum(rise.values())
    report.value("lease reads for long: minutes", options.minutes, "")
    report.value("lease reads for long: a second", rate, "reads")
    report.value("lease reads for long: processors busy", round(100 * share, 1), "%")
    report.value("lease reads for long: could not be sent", found["overflows"], "reads")
    report.value("lease reads for long: the term rose by", end["term"] - start["term"], "")
    report.value("lease reads for long: without a valid lease", round(100 * rise["lease_fallbacks"] / reads, 6),
                 "% of the time, by the reads")
    report.value("lease reads for long: fallbacks", rise["lease_fallbacks"], "reads")
    return rise["lease_fallbacks"]


def measure(options, report):
    disturber = Disturber(options, shim_of(options))
    with disturber.bench as bench:
        disturber.judge = Judge(options, report, "lease reads beside events", bench.port, VALUE_BYTES)
        disturber.fill()
        paced.apart(bench.pids)
        rounds = max(3, options.pairs // 3)
        say(f"lease reads, {RATE} a second, and {WRITE_RATE} writes, blocks of {BLOCK_S:g} s")
        for kind, (prepare, event) in disturber.kinds().items():
            disturb(report, disturber, kind, prepare, event, rounds)
        report.value("lease reads beside events: fallbacks", disturber.fallbacks, "reads")
        report.value("lease reads beside events: requests that count", round(100 * statistics.mean(disturber.left), 1),
                     "%")
        report.value("lease reads beside events: refused", disturber.failures, "reads")
        report.value("lease reads, beside events and for long: fallbacks",
                     disturber.fallbacks + disturber.failures + hold(options, report, bench, disturber.judge),
                     "reads")
        disturber.judge.port = bench.port
        disturber.judge.conclude()
