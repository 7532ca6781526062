"""Reads beside as many writes (YCSB A, keys drawn evenly), on a schedule at half of the top rate, held against the echo
beside the writes of the floor, both busy at the same time and at the same rates."""

import statistics

import cluster as c
import load_blocks
import paced
from judge import Judge
from scene import KEYS, VALUE_BYTES, Bench
from stats import Histogram, share
from sweeps import Series, say

NAME = "read beside writes"
FLOOR = "echo beside the floor's writes"
TOP_CONNECTIONS = 64
TOP_BLOCKS = 3
BLOCK_S = 1.0
LEASE = "LEASEHOLD READMODE lease"


def top_rate(options, bench, judge):
    """Operations a second, half of them writes, that the group answers in a closed loop."""
    rates = []
    for block in range(TOP_BLOCKS + 1):
        result = load_blocks.block(options.program, options.work, bench.address, [
            "--workload", "ycsb-a", "--distribution", "uniform", "--keys", KEYS, "--value-size", VALUE_BYTES,
            "--connections", TOP_CONNECTIONS, *judge.flags()], 2 * BLOCK_S)
        if block > 0:
            rates.append(result["operations"] / (result["elapsed_ns"] / 1e9))
    return statistics.median(rates)


def both(options, rate, read_port, write_port, setup, judge):
    """Reads and writes at the same time, each at half of the rate: (histogram of the reads, the share of the requests
    that count, why it does not count)."""
    client = paced.start(options, read_port, rate // 2, BLOCK_S, write_rate=rate // 2, write_port=write_port,
                         setup=setup, judge=judge, flags=["--list-waits"])
    try:
        found = paced.steady(paced.result(client, NAME))
    finally:
        paced.end(client)
    reason = paced.late(found, "reads", 0.99)
    return Histogram(found["reads"]["slots"]), found["left"], reason


def measure(options, report):
    with Bench(options, "beside-writes") as bench:
        bench.fill()
        judge = Judge(options, report, NAME, bench.port, VALUE_BYTES)
        echo = bench.start_floor("floor_echo", "--value-bytes", VALUE_BYTES)
        null = bench.start_floor("floor_null_replicate", "--dir", bench.folder, "--value-bytes", VALUE_BYTES)
        paced.apart([*bench.pids, *echo.tree(), *null.tree()])
        top = top_rate(options, bench, judge)
        rate = int(top / 2)
        say(f"{NAME}: {top:.0f} operations a second at most; {rate // 2} reads and {rate // 2} writes a second, on a "
            f"schedule, blocks of {BLOCK_S:g} s")
        report.value(f"{NAME}: operations a second at most, half of them writes", round(top), "")
        report.value(f"{NAME}: operations due a second", rate, "")
        targets = {FLOOR: (echo.port, null.port, None, None), NAME: (bench.port, bench.port, LEASE, judge)}
        found = {name: Series() for name in targets}
        waits, left, thrown_away = [], [], []
        for sweep in range(options.pairs):
            pair, reasons = {}, {}
            for name in list(targets) if sweep % 2 == 0 else reversed(targets):
                before = bench.counters()
                pair[name], share_left, reasons[name] = both(options, rate, *targets[name])
                left.append(share_left)
                if name == NAME:
                    waits.append(waited(before, bench.counters()))
            say(f"  {NAME} {sweep + 1}/{options.pairs}  p99 us: " + "  ".join(
                f"{name} {pair[name].quantile(0.99) / 1000:.0f}{' thrown away: ' if reason else ''}{reason}"
                for name, reason in reasons.items()))
            if any(reasons.values()):
                thrown_away.append(next(filter(None, reasons.values())))
                continue
            for name, histogram in pair.items():
                found[name].blocks.append(histogram)
        judge.conclude()
        report.interval(f"{NAME}: waited for apply", share(waits), "%")
        report.value(f"{NAME}: requests that count", round(100 * statistics.mean(left), 1), "%")
        report.value(f"{NAME}: pairs of blocks that were thrown away", len(thrown_away), f"of {options.pairs}")
        if 2 * len(thrown_away) > options.pairs:
            report.results[NAME] = {"discarded": thrown_away[-1]}
            return
        report.series(FLOOR, found[FLOOR])
        report.series(NAME, found[NAME], FLOOR, found[FLOOR])


def waited(before, after):
    """(how many of a hundred lease reads waited, times the reads; the reads), for share()."""
    rise = {key: after[key] - before[key] for key in ("term", "lease_hits", "lease_waits", "lease_fallbacks")}
    if rise["term"] or rise["lease_fallbacks"]:
        raise c.MeasureError("the lease was lost during the run; measure again on a quieter machine")
    return 100 * rise["lease_waits"], rise["lease_hits"] + rise["lease_waits"]
