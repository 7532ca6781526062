"""Reads and writes on a schedule, at rising rates, beside their floors. The client has the last core for itself."""

import paced
from judge import Judge
from scene import VALUE_BYTES
from stats import Histogram
from sweeps import say

RATES = {"reads": (2_000, 10_000, 30_000), "writes": (100, 500, 1_000)}
BLOCK_S = 1.0
# How often a run is measured in which the client itself was late, before it is given up.
TRIALS = 3


def block(options, kind, target, port, rate, judge):
    """One second of load."""
    client = paced.start(options, port, rate, BLOCK_S, judge=judge,
                         flags=["--list-waits", "--writes", 100 if kind == "writes" else 0])
    try:
        return paced.steady(paced.result(client, f"{target} at {rate}/s"))
    finally:
        paced.end(client)


def late(found, kind):
    """Why a run shows the client. A request that could not be sent shows the server."""
    reasons = [paced.late({**found, "overflows": 0}, kind, q) for q in (0.5, 0.99)]
    return next(filter(None, reasons), "")


def measure_rate(options, report, kind, rate, ports, judge):
    """The floor and the subject in the order A B B A. A run in which the client was late is measured again, and a
    target whose runs all were is not quoted."""
    floor, subject = ports
    found, reasons = {floor: [], subject: []}, {}
    lateness, overflows = [], 0
    for target in (floor, subject, subject, floor):
        for _ in range(TRIALS):
            result = block(options, kind, target, ports[target], rate, judge if target == subject else None)
            lateness.append(Histogram(result["late"]["slots"]))
            overflows += result["overflows"]
            reasons[target] = late(result, kind)
            if not reasons[target]:
                found[target].append(Histogram(result[kind]["slots"]))
                break
    for target, histograms in found.items():
        if histograms:
            report.open_row(kind, rate, target, Histogram.merged(histograms))
        else:
            report.discarded(kind, rate, target, reasons[target])
    report.open_row(kind, rate, "(client late)", Histogram.merged(lateness))
    thrown_away = len(lateness) - sum(map(len, found.values()))
    say(f"  open {kind} {rate:6}/s  overflows {overflows}, thrown away {thrown_away} of {len(lateness)} runs")
    report.value(f"runs of {kind} at {rate}/s that were thrown away", thrown_away, f"of {len(lateness)}")
    if overflows:
        report.value(f"overflows of {kind} at {rate}/s", overflows, "requests")


def measure(options, report, cluster, leader, floors):
    say(f"open loop, {paced.CONNECTIONS} connections")
    servers = [*(process.pid for process in cluster.processes.values()), *floors["echo"].tree(),
               *floors["null"].tree()]
    port = cluster.client_ports[leader]
    judge = Judge(options, report, "open loop", port, VALUE_BYTES)
    try:
        paced.apart(servers)
        for rate in RATES["reads"]:
            measure_rate(options, report, "reads", rate, {"echo": floors["echo"].port, "lease read": port}, judge)
        # Three members that write keep more than one core busy.
        paced.together(servers)
        for rate in RATES["writes"]:
            measure_rate(options, report, "writes", rate, {"null-replicate": floors["null"].port, "write": port}, judge)
    finally:
        paced.together(servers)
    judge.conclude()
