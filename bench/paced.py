"""Clients on a schedule (bench_client open) that run beside each other. Where they wait for the processor as the
servers do, they are late; so they have the last core for themselves, the servers have the others, and nothing else goes
before the clients there (a real-time priority), where the system allows it."""

import contextlib
import json
import os
import subprocess
import tempfile

import cluster as c
from scene import KEYS, VALUE_BYTES
from stats import Histogram

CONNECTIONS = 16
REAL_TIME = 1
# An idle virtual processor takes about 20 us to wake up, so the client does not sleep before a request is due. No more
# than that: what it spins is taken from what the hypervisor gives to the servers.
SPIN_US = 50
# The hypervisor stops the processors of a virtual machine for milliseconds, above all while it keeps them all busy. A
# client that only waits for its next request sees that: it is late by more than this.
STANDSTILL_NS = 300_000
# So long before such an instant and after it nothing counts: what is under way when it begins, and what then waits
# behind that.
GUARD_NS = 10_000_000
# That much of a run has to be left, and of each span of it that matters.
LEFT = 0.5
# At the quantile that is quoted, so much of a latency may be the client's own lateness.
LATE_SHARE = 0.25


def apart(pids):
    """Leaves the last core to the clients."""
    c.pin(pids, range(max(1, os.cpu_count() - 1)))


def together(pids):
    c.pin(pids, range(os.cpu_count()))


def hurry(alone):
    if alone:
        os.sched_setaffinity(0, [os.cpu_count() - 1])
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME))


def start(options, port, rate, seconds, write_rate=0, write_port=None, setup=None, alone=True,
          connections=CONNECTIONS, flags=(), judge=None):
    """Reads, and `write_rate` writes a second at the same time, which may go to another port. Both come from one
    thread: two clients at a real-time priority would keep each other waiting. `alone`: on the last core."""
    judged, recorded = ([], []) if judge is None else (["--judged-keys", judge.keys], ["--history", judge.file()])
    words = [options.programs / "bench_client", "--keys", KEYS, "--value-bytes", VALUE_BYTES, *judged, "open",
             *recorded, "--address", addresses(port), "--rate", rate, "--connections", connections,
             "--duration-ms", int(1000 * seconds), "--write-rate", write_rate, *flags]
    if write_port:
        words += ["--write-address", addresses(write_port)]
    if setup:
        words += ["--setup", setup]
    if alone:
        words += ["--spin-us", SPIN_US]
    output = tempfile.TemporaryFile("w+")  # a pipe would be full before anybody reads it
    process = subprocess.Popen([str(word) for word in words], stdout=output, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: hurry(alone))
    process.output = output
    return process


def addresses(ports):
    """One port, or several, which the connections go round."""
    return ",".join(f"127.0.0.1:{port}" for port in ([ports] if isinstance(ports, int) else ports))


def result(process, what, may_fail=False):
    """What the client found; a request that failed makes the run worthless, unless it may fail."""
    _, errors = process.communicate()
    if process.returncode != 0:
        raise c.MeasureError(f"{what}: {errors.strip()}")
    process.output.seek(0)
    found = json.load(process.output)
    if found["failures"] and not may_fail:
        raise c.MeasureError(f"{what}: {found['failures']} failed, the first with {found['first_failure']!r}")
    return found


def end(*processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()
        process.output.close()


def standstills(waits):
    """(from, to) of each time around an instant at which the client was late, in ns on CLOCK_MONOTONIC."""
    found = []
    for due, own in sorted((due, own) for due, own, _, _ in waits if own > STANDSTILL_NS):
        began, ended = due - GUARD_NS, due + own + GUARD_NS
        if found and began <= found[-1][1]:
            found[-1][1] = max(found[-1][1], ended)
        else:
            found.append([began, ended])
    return found


def overlaps(found, began, ended):
    return any(began <= to and ended >= since for since, to in found)


def steady(found, span=None):
    """The same run without the requests around a standstill, however long they took: their lateness alone decides. It
    listed its waits. `span`: (from, to) of an event, of which enough has to be left too."""
    stood = standstills(found["waits"])
    kept = [one for one in found["waits"] if not overlaps(stood, one[0], one[0])]
    shares = [len(kept) / max(1, len(found["waits"]))]
    if span:
        within = [[one for one in some if span[0] <= one[0] <= span[1]] for some in (kept, found["waits"])]
        shares += [len(within[0]) / len(within[1])] if within[1] else []
    return {**found, "left": min(shares), "late": slots(own for _, own, _, _ in kept),
            "reads": slots(wait for _, _, wait, write in kept if not write),
            "writes": slots(wait for _, _, wait, write in kept if write)}


def slots(values):
    return {"slots": [(value, 1) for value in values]}


def late(found, kind, q):
    """Why quantile q of a run shows the client and not the servers; empty: it does not."""
    if found["overflows"]:
        return f"{found['overflows']} requests could not be sent"
    if found.get("left", 1) < LEFT:
        return f"the client itself stood still around {100 * (1 - found['left']):.0f} % of the requests"
    own, whole = (Histogram(found[name]["slots"]).quantile(q) for name in ("late", kind))
    if own <= LATE_SHARE * whole:
        return ""
    return f"at p{100 * q:g} the client itself was {own / 1000:.1f} us late of {whole / 1000:.1f} us"
