"""How long reads and writes wait around planned transfers of the leadership. The client is one thread of bench_client,
which asks all three nodes on a schedule and lists each wait; the longest one in the span of a transfer counts."""

import random
import time

import cluster as c
import paced
import transfers
from judge import Judge
from scene import VALUE_BYTES, Bench
from stats import bootstrap
from sweeps import say

NAME = "planned transfers"
BLOCK_S = 8.0
WARMUP_S = 0.5  # of the client: what is due in it is in no list
MARGIN_S = 1.0  # the last span ends before the client does
# Of reads, and as many writes, at each node.
RATE = 200
REST_S = 0.01
APART_S = 0.1
KINDS = ("read", "write")


def p99(values):
    """(value, low, high), over the transfers."""
    return bootstrap(len(values), lambda chosen: transfers.quantile([values[i] for i in chosen], 0.99), 1000, 1)


def transfer(bench):
    """(when it began, why the leader still leads)."""
    leader = bench.cluster.wait_for_lease()
    to = random.choice([node for node in bench.cluster.client_ports if node != leader])
    connection = c.Resp(bench.cluster.client_ports[leader])
    try:
        began = time.monotonic_ns()
        connection.command("LEASEHOLD", "TRANSFER", to)
        return began, ""
    except c.MeasureError as error:
        return began, str(error)
    finally:
        connection.close()


def span_from(began):
    return began, time.monotonic_ns() + int(1e9 * transfers.TAIL_S)


def block(options, bench, judge, count):
    """(spans of at most `count` transfers, spans at rest, why transfers failed, what the client found)."""
    ports = list(bench.cluster.client_ports.values())
    rate = RATE * len(ports)
    moved, rests, failed = [], [], []
    client = paced.start(options, ports, rate, BLOCK_S + MARGIN_S, write_rate=rate, connections=5 * len(ports),
                         judge=judge, flags=["--list-waits"])
    end = time.monotonic() + BLOCK_S
    try:
        time.sleep(WARMUP_S + APART_S)
        while time.monotonic() < end and len(moved) < count:
            began = time.monotonic_ns()
            time.sleep(REST_S)
            rests.append(span_from(began))
            time.sleep(APART_S)
            began, why = transfer(bench)
            moved.append(span_from(began))  # requests wait in it all the same
            failed += [why] if why else []
            time.sleep(APART_S)
        if client.poll() is not None:
            raise c.MeasureError(f"{NAME}: a transfer has outlasted the client")
        return moved, rests, failed, paced.result(client, NAME, may_fail=True)
    finally:
        paced.end(client)


def longest(waits, span):
    """By kind: the longest wait, in ms, of what was under way in the span."""
    began, ended = span
    found = {}
    for due, _, wait, write in waits:
        if due <= ended and due + wait >= began:
            found[KINDS[write]] = max(found.get(KINDS[write], 0.0), wait / 1e6)
    return found


def add(found, thrown_away, waits, spans, suffix):
    """A span in which the client itself stood still does not count, with a transfer and without."""
    stood = paced.standstills(waits)
    for span in spans:
        for kind, wait in longest(waits, span).items():
            if paced.overlaps(stood, *span):
                thrown_away[kind + suffix] = thrown_away.get(kind + suffix, 0) + 1
            else:
                found.setdefault(kind + suffix, []).append(wait)


def tell(report, found, thrown_away, name, title):
    """A row, if most of the spans count."""
    values, lost = found.get(name, []), thrown_away.get(name, 0)
    report.value(f"{title}: spans that were thrown away", lost, f"of {lost + len(values)}")
    if lost > len(values):
        report.results[f"{title}, p99"] = {
            "discarded": f"in {lost} of {lost + len(values)} spans the client itself stood still"}
        return
    report.interval(f"{title}, p99", p99(values), "ms")
    report.value(f"{title}, p50", round(transfers.quantile(values, 0.5), 2), "ms")


def measure(options, report):
    found, thrown_away, failed, refused, done = {}, {}, [], 0, 0
    say(f"{NAME}: {options.transfers}, {RATE} reads and {RATE} writes a second at each of three nodes")
    with Bench(options, "transfers") as bench:
        bench.fill()
        judge = Judge(options, report, NAME, bench.port, VALUE_BYTES)
        while done < options.transfers:
            moved, rests, why, client = block(options, bench, judge, options.transfers - done)
            add(found, thrown_away, client["waits"], moved, "")
            add(found, thrown_away, client["waits"], rests, " at rest")
            refused += client["failures"] + client["overflows"]
            failed += why
            done += len(moved)
            told = [f"{name} {max(values):.1f}" for name, values in sorted(found.items())]
            say(f"  {NAME} {done}/{options.transfers}  longest wait, ms: " +
                "; ".join([", ".join(told), *(f"failed: {one}" for one in why)]))
        judge.conclude()
    for kind in KINDS:
        tell(report, found, thrown_away, kind, f"{NAME}: the longest wait of a {kind}")
        tell(report, found, thrown_away, f"{kind} at rest",
             f"{NAME}: the longest wait of a {kind} in as long a time at rest")
    report.value(f"{NAME}: the leader still led", len(failed), f"of {done}")
    report.value(f"{NAME}: refused or failed", refused, "requests")
