"""Groups of the program whose flags differ, measured in turn: what an option costs. One of them is "plain"."""

import argparse
import contextlib
import datetime
import pathlib
import shutil
import signal
import sys
import tempfile

import cluster as c
import goals
from report import Report
from sweeps import WARMUP, Noise, Sweeps, say

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import results  # noqa: E402  pylint: disable=wrong-import-position

KEYS = 1000
VALUE_BYTES = 256


class Variants:
    """`flags`: those of a node by its number, for each name of a group. `address` gives the address of a name's port,
    `client_flags` are those of bench_client. All groups end with `stack`."""

    def __init__(self, options, stack, flags, address=lambda name, port: f"127.0.0.1:{port}", client_flags=()):
        self.options = options
        self.address = address
        self.client_flags = client_flags
        self.groups, self.leaders = {}, {}
        for name, of_node in flags.items():
            directory = options.work / name
            directory.mkdir()
            group = self.groups[name] = c.Cluster(options.programs.parent / "server" / "leasehold", directory, of_node)
            stack.callback(group.stop, signal.SIGKILL)
            self.leaders[name] = group.start()
            c.load(options.programs, "load", self.port(name), KEYS, VALUE_BYTES)

    def port(self, name):
        return self.groups[name].client_ports[self.leaders[name]]

    def _counters(self):
        return {name: group.leader_counters(self.leaders[name]) for name, group in self.groups.items()}

    def _client(self, targets):
        return c.Client(self.options.programs / "bench_client", targets, {}, KEYS, VALUE_BYTES, WARMUP,
                        self.options.work, self.client_flags)

    def reads(self, report, others=None):
        """`others`: processes beside them, (process, port) by their names. Returns the series by the names of all."""
        targets = {name: ("get", self.address(name, self.port(name))) for name in self.groups}
        pids = {name: [group.processes[self.leaders[name]].pid] for name, group in self.groups.items()}
        for name, (process, port) in (others or {}).items():
            targets[name] = ("get", self.address(name, port))
            pids[name] = process.tree()
        say("lease reads: closed loop, one connection, one core")
        client = self._client(targets)
        sweeps = Sweeps("reads ", client, list(targets), pids, {name: self.options.reads for name in targets})
        before = self._counters()
        sweeps.run_pinned(self.options.pairs, [0], [0])
        after = self._counters()
        client.close()
        for name in self.groups:
            rise = after[name]["lease_hits"] - before[name]["lease_hits"]
            if rise != sweeps.series[name].operations:
                raise c.MeasureError(f"{name}: {sweeps.series[name].operations} reads raised the counter of lease "
                                     f"reads by {rise}; measure again on a quieter machine")
        self._report(report, "lease read", sweeps.series)
        return sweeps.series

    def writes(self, report):
        targets = {name: ("set", self.address(name, self.port(name))) for name in self.groups}
        pids = {name: [process.pid for process in group.processes.values()] for name, group in self.groups.items()}
        say(f"writes: closed loop, one connection, {VALUE_BYTES}-byte values")
        client = self._client(targets)
        sweeps = Sweeps("writes", client, list(targets), pids, {name: self.options.writes for name in targets})
        before = self._counters()
        sweeps.run(self.options.pairs)
        after = self._counters()
        client.close()
        if any(after[name]["term"] != before[name]["term"] for name in self.groups):
            raise c.MeasureError("a leader changed during the writes; measure again")
        self._report(report, "write", sweeps.series)

    def _report(self, report, what, series):
        report.series(f"{what}, plain", series["plain"])
        for name in self.groups:
            if name != "plain":
                report.series(f"{what}, {name}", series[name], "plain", series["plain"])
                report.difference(f"{what}, {name} - plain", series[name], series["plain"])


def run(name, options, measure):
    report, noise, facts = Report(goals.load(name)), Noise(), c.machine()
    started = datetime.datetime.now(datetime.timezone.utc)
    with contextlib.ExitStack() as stack:
        measure(options, stack, report)
    facts["processor_time_stolen_percent"] = round(noise.stolen_percent(), 2)
    report.tell()
    if options.results:
        notes = [f"{facts['cores']} cores ({facts['processor']}), Linux {facts['kernel']}; three nodes of each group "
                 f"on loopback, one connection, {VALUE_BYTES}-byte values; processor time stolen: "
                 f"{facts['processor_time_stolen_percent']} %",
                 "a ratio is of medians, with its 95 % interval, from blocks in turn, forwards and backwards"]
        results.write(str(options.results), measure.__doc__, datetime.date.today().isoformat(),
                      f"bench/{name}.py --pairs {options.pairs} --results results/{name}.json", notes,
                      [("Goals", goals.rows(report.verdicts())), ("What was measured", report.measured())])
    return report.conclude(options.out, {
        "format": 1, "started": started.isoformat(timespec="seconds"), "machine": facts,
        "options": {"pairs": options.pairs, "reads_per_block": options.reads, "writes_per_block": options.writes,
                    "value_bytes": VALUE_BYTES, "warmup_per_block": WARMUP},
        "loop": "closed, one connection"})


def main(name, doc, measure):
    """All of the program `name`.py. Its goals have that name; measure(options, stack, report) fills the report, and its
    docstring says what it compares."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="an optimised build (default: build/release)")
    parser.add_argument("--out", type=pathlib.Path, help=f"the JSON (default: BUILD_DIR/{name}.json)")
    parser.add_argument("--results", type=pathlib.Path, help="write the goals and the rows as JSON, as the files of "
                        "results/ are")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of blocks (default: 20)")
    parser.add_argument("--reads", type=int, default=2000, help="reads of a block (default: 2000)")
    parser.add_argument("--writes", type=int, default=400, help="writes of a block (default: 400)")
    options = parser.parse_args()
    options.programs = options.build_dir.resolve() / "bench"
    if not (options.programs / "bench_client").exists():
        parser.error(f"{options.build_dir} holds no build: run `cmake --preset release && "
                     "cmake --build --preset release` first")
    options.out = options.out or options.build_dir / f"{name}.json"
    options.work = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=options.build_dir)).resolve()
    try:
        status = run(name, options, measure)
    except c.MeasureError as error:
        print(f"{name}: {error}\n{name}: logs and data are in {options.work}", file=sys.stderr)
        return 2
    shutil.rmtree(options.work)
    return status
