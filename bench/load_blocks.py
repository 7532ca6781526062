"""Blocks of `leasehold bench` at several targets in turn, as sweeps.py has them of one connection."""

import json
import subprocess

import cluster as c
from stats import Histogram
from sweeps import Series, say

# How often a block is measured in which the client was the bottleneck, before its target is given up.
TRIALS = 3


# Before the addresses of members of etcd, which are spoken to in its own protocol.
ETCD = "etcd="


def servers(address):
    if address.startswith(ETCD):
        return "--etcd", address[len(ETCD):]
    return "--servers", address


def block(program, work, address, flags, seconds):
    """One run: (what it wrote as JSON)."""
    out = work / "load.json"
    out.unlink(missing_ok=True)
    done = subprocess.run(
        [str(word) for word in (program, "bench", *servers(address), "--no-load", "--warm-up", "0s", "--duration",
                                f"{int(seconds * 1000)}ms", "--quiet", "--json", out, *flags)],
        capture_output=True, text=True)
    if done.returncode not in (0, 1) or not out.exists():
        raise c.MeasureError(f"leasehold bench at {address}: {done.stderr.strip()}")
    result = json.loads(out.read_text())
    if result["errors"]:
        raise c.MeasureError(f"leasehold bench at {address}: {result['errors']}")
    return result


def measure(program, work, title, targets, flags, pairs, seconds=1.0, run=block, judges=None):
    """`targets`: an address and the processes of its servers, by name. Forwards and backwards, as Sweeps; the first
    block of each does not count. `judges`: of targets, by name. Returns the series by name, or in the place of one the
    reason for which it is not to be quoted."""
    found = {name: Series() for name in targets}
    for sweep in range(pairs + 1):
        for name in list(targets) if sweep % 2 == 0 else reversed(targets):
            address, pids = targets[name]
            if isinstance(found[name], str):
                continue
            for _ in range(TRIALS):
                before = c.cpu_ns(pids)
                judge = (judges or {}).get(name)
                result = run(program, work, address, [*flags, *(judge.flags() if judge else [])], seconds)
                used = c.cpu_ns(pids) - before
                if not result["discarded"]:
                    break
            if result["discarded"]:
                found[name] = result["discarded"]
                say(f"  {title}, {name}: thrown away: {result['discarded']}")
            elif sweep > 0:
                series = found[name]
                series.blocks.append(Histogram.merged(
                    Histogram(one["slots"]) for one in result["latency"].values()))
                series.cpu.append((used, result["operations"]))
                series.rates.append((result["operations"], result["elapsed_ns"] / 1e9))
        shown = "  ".join(f"{name} {series.rates[-1][0] / series.rates[-1][1]:.0f}/s" for name, series in found.items()
                          if not isinstance(series, str) and series.rates)
        say(f"  {title} {sweep}/{pairs}  {shown}")
    return found


def report_pair(report, name, subject, floor_name, floor):
    """Rows of both, if both stand."""
    for what, series in ((name, subject), (floor_name, floor)):
        if isinstance(series, str):
            report.results[f"{what} ({name})"] = {"discarded": series}
    if isinstance(subject, str) or isinstance(floor, str):
        return
    report.series(f"{floor_name} ({name})", floor)
    report.series(name, subject, floor_name, floor)
