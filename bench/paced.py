"""Clients on a schedule (bench_client open) that run beside each other. On few cores they wait for the processor as the
servers do, and are late; so they have a higher priority than the servers, where the system allows it."""

import contextlib
import json
import os
import subprocess

import cluster as c
from scene import KEYS, VALUE_BYTES
from stats import Histogram

CONNECTIONS = 16
PRIORITY = -10
# At the quantile that is quoted, so much of a latency may be the client's own lateness.
LATE_SHARE = 0.25


def hurry():
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


def start(options, port, rate, seconds, writes=False, setup=None):
    words = [options.programs / "bench_client", "--keys", KEYS, "--value-bytes", VALUE_BYTES, "open", "--address",
             f"127.0.0.1:{port}", "--rate", rate, "--writes", 100 if writes else 0, "--connections", CONNECTIONS,
             "--duration-ms", int(1000 * seconds), *(["--setup", setup] if setup else [])]
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=hurry)


def result(process, what, may_fail=False):
    """What the client found; a request that failed makes the run worthless, unless it may fail."""
    output, errors = process.communicate()
    if process.returncode != 0:
        raise c.MeasureError(f"{what}: {errors.strip()}")
    found = json.loads(output)
    if found["failures"] and not may_fail:
        raise c.MeasureError(f"{what}: {found['failures']} failed, the first with {found['first_failure']!r}")
    return found


def end(*processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def late(found, kind, q):
    """Why quantile q of a run shows the client and not the servers; empty: it does not."""
    if found["overflows"]:
        return f"{found['overflows']} requests could not be sent"
    own, whole = (Histogram(found[name]["slots"]).quantile(q) for name in ("late", kind))
    if own <= LATE_SHARE * whole:
        return ""
    return f"at p{100 * q:g} the client itself was {own / 1000:.1f} us late of {whole / 1000:.1f} us"
