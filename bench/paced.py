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


def start(options, port, rate, seconds, writes=False, setup=None, alone=True):
    """`alone`: on the last core."""
    words = [options.programs / "bench_client", "--keys", KEYS, "--value-bytes", VALUE_BYTES, "open", "--address",
             f"127.0.0.1:{port}", "--rate", rate, "--writes", 100 if writes else 0, "--connections", CONNECTIONS,
             "--duration-ms", int(1000 * seconds), *(["--setup", setup] if setup else [])]
    output = tempfile.TemporaryFile("w+")  # a pipe would be full before anybody reads it
    process = subprocess.Popen([str(word) for word in words], stdout=output, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: hurry(alone))
    process.output = output
    return process


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


def late(found, kind, q):
    """Why quantile q of a run shows the client and not the servers; empty: it does not."""
    if found["overflows"]:
        return f"{found['overflows']} requests could not be sent"
    own, whole = (Histogram(found[name]["slots"]).quantile(q) for name in ("late", kind))
    if own <= LATE_SHARE * whole:
        return ""
    return f"at p{100 * q:g} the client itself was {own / 1000:.1f} us late of {whole / 1000:.1f} us"
