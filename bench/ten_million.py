"""Very many keys: how fast they are loaded, how much memory the nodes take, and how long a restart takes. Every key is
read back."""

import signal
import time

import cluster as c
from judge import KEYS as JUDGED_KEYS
from judge import Judge
from scene import VALUE_BYTES, Bench
from sweeps import say

GOAL_KEYS = 10_000_000


def resident_gib(bench):
    """Of the node that has most."""
    return max(c.resident_kib(pid) for pid in bench.pids) / (1 << 20)


def measure(options, report):
    keys = options.many_keys
    with Bench(options, "many-keys") as bench:
        say(f"{keys} keys of {VALUE_BYTES} bytes")
        judge = Judge(options, report, f"{keys} keys, two restarts", bench.port, VALUE_BYTES)
        seconds = c.load(options.programs, "load", bench.port, keys, VALUE_BYTES, judge.file(), JUDGED_KEYS)
        memory = [resident_gib(bench)]
        say(f"  loaded in {seconds:.1f} s, {keys / seconds:.0f} a second; {memory[0]:.3f} GiB")
        restarts = []
        for how in (signal.SIGTERM, signal.SIGKILL):
            bench.cluster.stop(how)
            began = time.monotonic()
            bench.leader = bench.cluster.start()
            restarts.append(time.monotonic() - began)
            say(f"  restart after {how.name}: a lease in {restarts[-1]:.2f} s")
        read = c.load(options.programs, "verify", bench.port, keys, VALUE_BYTES, judge.file(), JUDGED_KEYS)
        memory.append(resident_gib(bench))
        judge.port = bench.port
        judge.conclude()
        say(f"  read back in {read:.1f} s; {memory[1]:.3f} GiB")
    found = {"thousands loaded in a second": (round(keys / seconds / 1000, 1), ""),
             "thousands read back in a second": (round(keys / read / 1000, 1), ""),
             "longest restart, until a lease": (round(max(restarts), 2), "s"),
             "memory of a node after the load": (round(memory[0], 3), "GiB"),
             "memory of a node after all were read": (round(memory[1], 3), "GiB"),
             "memory of a node": (round(max(memory), 3), "GiB")}
    # No goal is held against fewer.
    name = "ten million keys" if keys == GOAL_KEYS else f"{keys} keys"
    for what, (value, unit) in found.items():
        report.value(f"{name}: {what}", value, unit)
