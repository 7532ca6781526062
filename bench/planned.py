"""How long reads and writes wait around planned transfers of the leadership: transfers.py, of Leasehold alone."""

import sys

import transfers
from stats import bootstrap
from sweeps import say

NAME = "planned transfers"
BLOCK = 20
INTERVAL_S = 0.005
# Threads of this process are the clients: they take turns this often.
SWITCH_S = 0.0002


def p99(values):
    """(value, low, high), over the transfers."""
    return bootstrap(len(values), lambda chosen: transfers.quantile([values[i] for i in chosen], 0.99), 1000, 1)


def measure(options, report):
    folder = options.work / "transfers"
    folder.mkdir()
    system = transfers.Leasehold(options.program, folder)
    found = {}
    switched = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    say(f"{NAME}: {options.transfers}, a read and a write every {INTERVAL_S * 1000:g} ms at each of three nodes")
    try:
        system.start()
        for done in range(0, options.transfers, BLOCK):
            transfers.block(system, min(BLOCK, options.transfers - done), INTERVAL_S, found)
            say(f"  {NAME} {min(done + BLOCK, options.transfers)}/{options.transfers}  longest wait of a read, ms: "
                f"{max(found['Leasehold, read'][done:]):.1f}")
    finally:
        system.stop()
        sys.setswitchinterval(switched)
    for kind in ("read", "write"):
        report.interval(f"{NAME}: the longest wait of a {kind}, p99", p99(found[f"Leasehold, {kind}"]), "ms")
        report.interval(f"{NAME}: the longest wait of a {kind} in as long a time at rest, p99",
                        p99(found[f"Leasehold, {kind} at rest"]), "ms")
    report.value(f"{NAME}: refused or failed", sum(found["Leasehold, failed attempts"]), "requests")
