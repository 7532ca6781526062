#!/usr/bin/env python3
"""Measures one build of the program against another, by turns in one run: lease reads on one core and on two,
writes one by one and under full load, and the longest waits while the leadership is transferred by plan.

  compare.py OLD [NEW]     programs; NEW is build/release/server/leasehold unless it is named

Each has three nodes on loopback with its defaults and its data on this disk. Blocks alternate A B B A. A ratio is
new / old, of medians, with the 95 % interval of a bootstrap that draws whole pairs of blocks. Status 0: no interval
lies above 1 as a whole. 1: one does, and the last line names it. 2: the run was worthless.
"""

import argparse
import contextlib
import os
import pathlib
import signal
import sys
import tempfile

import cluster as c
import transfers
from report import Report
from stats import Histogram, compared
from sweeps import WARMUP, Sweeps, say

KEYS = 1000
VALUE_BYTES = 256
TRANSFER_INTERVAL_S = 0.005
LOADED_KEYS = 10000


class Named(transfers.Leasehold):
    """A cluster whose figures are counted under the name of its build."""

    def __init__(self, name, running):
        self.name = name
        self.members = [1, 2, 3]
        self._cluster = running


def sweep(options, report, title, clusters, leaders, operation, operations, cores=None):
    """Blocks of one operation at both leaders."""
    targets = {name: (operation, clusters[name].client_ports[leaders[name]]) for name in clusters}
    pids = {name: [process.pid for process in clusters[name].processes.values()] for name in clusters}
    setups = {name: "LEASEHOLD READMODE lease" for name in clusters} if operation == "get" else {}
    say(f"{title}: closed loop, one connection, {VALUE_BYTES}-byte values")
    client = c.Client(options.client, targets, setups, KEYS, VALUE_BYTES, WARMUP, options.work)
    sweeps = Sweeps(title, client, list(targets), pids, {name: operations for name in targets})
    before = {name: clusters[name].leader_counters(leaders[name]) for name in clusters}
    if cores:
        sweeps.run_pinned(options.pairs, *cores)
    else:
        sweeps.run(options.pairs)
    for name in clusters:
        if clusters[name].leader_counters(leaders[name])["term"] != before[name]["term"]:
            raise c.MeasureError(f"the leader of the {name} build changed during the run; measure again")
    client.close()
    report.series(f"{title}, old", sweeps.series["old"])
    report.series(f"{title}, new", sweeps.series["new"], "old", sweeps.series["old"])


def loaded(options, rows, clusters, leaders):
    """Full load: how long a block of pipelined writes takes, in ms. The store has every key from the first block on,
    which nobody counts."""
    say(f"writes under load: {LOADED_KEYS} keys, pipelined, {VALUE_BYTES}-byte values")
    blocks = {name: [] for name in clusters}
    for pair in range(options.loads + 1):
        for name in sorted(clusters, reverse=pair % 2 == 1):
            port = clusters[name].client_ports[leaders[name]]
            took_ms = c.load(options.client.parent, "load", port, LOADED_KEYS, VALUE_BYTES) * 1000
            if pair > 0:
                blocks[name].append(Histogram([(took_ms, 1)]))
    rows.append(row(f"{LOADED_KEYS} writes under load", blocks["old"], blocks["new"]))


def row(what, old, new):
    return (what, Histogram.merged(old).quantile(0.5), Histogram.merged(new).quantile(0.5), *compared(new, old))


def waits(options, rows, clusters):
    """The longest waits of clients around each transfer, in ms."""
    systems = [Named(name, clusters[name]) for name in clusters]
    found = {}
    order = [system for _ in range((options.blocks + 1) // 2) for system in systems + systems[::-1]]
    for at, system in enumerate(order, 1):
        transfers.block(system, max(options.transfers // options.blocks, 1), TRANSFER_INTERVAL_S, found)
        say(f"  transfers: block {at}/{len(order)}")
    for kind in ("read", "write"):
        blocks = {name: [Histogram([(ms, 1)]) for ms in found[f"{name}, {kind}"]] for name in clusters}
        pairs = min(map(len, blocks.values()))
        rows.append(row(f"longest {kind} at a transfer", blocks["old"][:pairs], blocks["new"][:pairs]))


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path, help="a program")
    parser.add_argument("new", type=pathlib.Path, nargs="?", default=root / "build/release/server/leasehold")
    parser.add_argument("--client", type=pathlib.Path, default=root / "build/release/bench/bench_client")
    parser.add_argument("--pairs", type=int, default=20, help="of blocks (default: 20)")
    parser.add_argument("--reads", type=int, default=2000, help="of a block (default: 2000)")
    parser.add_argument("--writes", type=int, default=200, help="of a block (default: 200)")
    parser.add_argument("--loads", type=int, default=20, help="pairs of blocks under load (default: 20)")
    parser.add_argument("--transfers", type=int, default=60, help="of each build (default: 60)")
    parser.add_argument("--blocks", type=int, default=4, help="of transfers (default: 4)")
    options = parser.parse_args()
    for program in (options.old, options.new, options.client):
        if not program.exists():
            parser.error(f"there is no {program}")
    sys.setswitchinterval(0.0002)
    report, rows = Report(), []
    with tempfile.TemporaryDirectory(prefix="leasehold-compare-") as folder, contextlib.ExitStack() as stack:
        options.work = pathlib.Path(folder)
        clusters, leaders = {}, {}
        for name in ("old", "new"):
            (options.work / name).mkdir()
            clusters[name] = c.Cluster(getattr(options, name), options.work / name)
            stack.callback(clusters[name].stop, signal.SIGKILL)
            leaders[name] = clusters[name].start()
            c.load(options.client.parent, "load", clusters[name].client_ports[leaders[name]], KEYS, VALUE_BYTES)
        sweep(options, report, "lease read, one core", clusters, leaders, "get", options.reads, ([0], [0]))
        if os.cpu_count() > 1:
            sweep(options, report, "lease read, two cores", clusters, leaders, "get", options.reads, ([0], [1]))
        sweep(options, report, "write", clusters, leaders, "set", options.writes)
        loaded(options, rows, clusters, leaders)
        waits(options, rows, clusters)
    say("\n" + report.table())
    worse = [name for name, entry in report.results.items() if "ratio" in entry and entry["ratio"]["p50"]["low"] > 1]
    for what, old, new, value, low, high in rows:
        say(f"- {what}: {old:.2f} ms old, {new:.2f} ms new, {value:.2f} [{low:.2f}, {high:.2f}]")
        if low > 1:
            worse.append(what)
    if worse:
        say("slower: " + ", ".join(worse))
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except c.MeasureError as error:
        print(f"compare.py: {error}", file=sys.stderr)
        sys.exit(2)
