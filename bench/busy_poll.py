"""Lease reads at nodes with --busy-poll and without, on two cores: there each request wakes a sleeping thread."""

import os

import cluster as c
from judge import Judge
from scene import KEYS, VALUE_BYTES, Bench
from sweeps import WARMUP, Sweeps, say

POLL = "50us"
AT = "two cores"


def measure(options, report):
    if os.cpu_count() < 2:
        say("busy poll: left out: the client and the nodes need a core each")
        return
    say(f"reads with --busy-poll {POLL}, {AT}: closed loop, one connection, {VALUE_BYTES}-byte values")
    with Bench(options, "busy-poll", flags=lambda node: ["--busy-poll", POLL]) as busy, \
            Bench(options, "no-busy-poll") as plain:
        for bench in (busy, plain):
            bench.fill()
        echo = plain.start_floor("floor_echo", "--value-bytes", VALUE_BYTES)
        targets = {"echo": ("get", echo.port), "plain": ("get", plain.port), "busy": ("get", busy.port)}
        pids = {"echo": echo.tree(), "plain": [plain.leader_pid], "busy": [busy.leader_pid]}
        setups = {name: "LEASEHOLD READMODE lease" for name in ("plain", "busy")}
        judges = {name: Judge(options, report, title, bench.port, VALUE_BYTES) for name, title, bench in (
            ("busy", f"lease reads, --busy-poll {POLL}", busy), ("plain", "lease reads, without --busy-poll", plain))}
        client = c.Client(options.programs / "bench_client", targets, setups, KEYS, VALUE_BYTES, WARMUP, options.work,
                          judges=judges)
        sweeps = Sweeps("busy poll ", client, list(targets), pids, {name: options.reads for name in targets})
        sweeps.run_pinned(options.pairs, [0], [1])
        client.close()
        for judge in judges.values():
            judge.conclude()
    series = sweeps.series
    report.series("echo beside a busy poll", series["echo"])
    report.series(f"lease read, --busy-poll {POLL}", series["busy"], "echo", series["echo"])
    report.series(f"lease read, --busy-poll {POLL} / without", series["busy"], "lease read", series["plain"])
