"""Very many keys: how fast they are loaded, how much memory the nodes take, and how long a restart takes. Every key is
read back."""

import signal
import time

import cluster as c
from scene import VALUE_BYTES, Bench
from sweeps import say

NAME = "very many keys"


def resident_mib(bench):
    """Of the node that has most."""
    return max(c.resident_kib(pid) for pid in bench.pids) / 1024


def measure(options, report):
    keys = options.many_keys
    with Bench(options, "many-keys") as bench:
        say(f"{NAME}: {keys} of {VALUE_BYTES} bytes")
        seconds = c.load(options.programs, "load", bench.port, keys, VALUE_BYTES)
        memory = [resident_mib(bench)]
        say(f"  loaded in {seconds:.1f} s, {keys / seconds:.0f} a second; {memory[0]:.0f} MiB")
        restarts = []
        for how in (signal.SIGTERM, signal.SIGKILL):
            bench.cluster.stop(how)
            began = time.monotonic()
            bench.leader = bench.cluster.start()
            restarts.append(time.monotonic() - began)
            say(f"  restart after {how.name}: a lease in {restarts[-1]:.2f} s")
            report.value(f"{NAME}: restart after {how.name}, until a lease", round(restarts[-1], 2), "s")
        read = c.load(options.programs, "verify", bench.port, keys, VALUE_BYTES)
        memory.append(resident_mib(bench))
        say(f"  read back in {read:.1f} s; {memory[1]:.0f} MiB")
    report.value(f"{NAME}: keys", keys, "")
    report.value(f"{NAME}: load, a second", round(keys / seconds), "keys")
    report.value(f"{NAME}: read back, a second", round(keys / read), "keys")
    report.value(f"{NAME}: longest restart, until a lease", round(max(restarts), 2), "s")
    report.value(f"{NAME}: memory of a node after the load", round(memory[0]), "MiB")
    report.value(f"{NAME}: memory of a node after all were read", round(memory[1]), "MiB")
    report.value(f"{NAME}: memory of a node", round(max(memory)), "MiB")
    if keys >= 10_000_000:
        for what in ("load, a second", "longest restart, until a lease", "memory of a node"):
            report.results[f"ten million keys: {what}"] = report.results[f"{NAME}: {what}"]
    else:
        say(f"{NAME}: {keys} are fewer than ten million: no goal is held against them")
