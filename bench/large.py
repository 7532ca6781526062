"""SETs of large values beside what disk and loopback can carry, in the same run and in turn."""

import multiprocessing
import os
import socket
import time

import cluster as c
import load_blocks
from judge import Judge
from report import interval_json
from scene import Bench
from stats import Histogram, bootstrap, ratio, share_of
from sweeps import Series, say

VALUE_BYTES = 1 << 20
NAME = "values of 1 MiB"
KEYS = 64
IN_FLIGHT = 8
BLOCK_S = 2.0
# How much of the file the bare writes go round in.
FILE_BLOCKS = 64
# Values of the judged keys are written before each block and read behind it.
JUDGED_KEYS = 2
# The log of each node is on this disk.
COPIES = 3


class Disk:
    """Synced writes of one writer, one after the other, over a file of zeroes."""

    def __init__(self, folder):
        self.file = os.open(folder / "bare", os.O_RDWR | os.O_CREAT, 0o600)
        self.block = os.urandom(VALUE_BYTES)
        for number in range(FILE_BLOCKS):
            os.pwrite(self.file, bytes(VALUE_BYTES), number * VALUE_BYTES)
        os.fsync(self.file)

    def run(self, seconds):
        """(bytes, seconds, the nanoseconds of each write)."""
        took = []
        began = now = time.monotonic_ns()
        while now < began + seconds * 1e9:
            os.pwrite(self.file, self.block, len(took) % FILE_BLOCKS * VALUE_BYTES)
            os.fdatasync(self.file)
            before, now = now, time.monotonic_ns()
            took.append(now - before)
        return len(took) * VALUE_BYTES, (now - began) / 1e9, took

    def close(self):
        os.close(self.file)


def drain(listener):
    """Takes whatever comes, in a process of its own."""
    buffer = bytearray(VALUE_BYTES)
    connection, _ = listener.accept()
    while connection.recv_into(buffer):
        pass


class Loopback:
    """One stream of TCP to another process."""

    def __init__(self):
        self.block = os.urandom(VALUE_BYTES)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.child = multiprocessing.get_context("fork").Process(target=drain, args=(listener,), daemon=True)
            self.child.start()
            self.socket = socket.create_connection(listener.getsockname())

    def run(self, seconds):
        took = []
        began = now = time.monotonic_ns()
        while now < began + seconds * 1e9:
            self.socket.sendall(self.block)
            before, now = now, time.monotonic_ns()
            took.append(now - before)
        return len(took) * VALUE_BYTES, (now - began) / 1e9, took

    def close(self):
        self.socket.close()
        self.child.join(10)


def sets(options, bench, judge, seconds):
    """The same of the group, by `leasehold bench`."""
    for _ in range(load_blocks.TRIALS):
        result = load_blocks.block(options.program, options.work, bench.address, [
            "--workload", "set", "--keys", KEYS, "--value-size", VALUE_BYTES, "--in-flight", IN_FLIGHT,
            *judge.flags()], seconds)
        if not result["discarded"]:
            return result
    raise c.MeasureError(f"{NAME}: {result['discarded']}")


def add(series, amount, seconds, histogram):
    series.rates.append((amount, seconds))
    series.blocks.append(histogram)


def measure(options, report):
    with Bench(options, "large") as bench:
        disk, loopback = Disk(bench.folder), Loopback()
        bench.stack.callback(disk.close)
        bench.stack.callback(loopback.close)
        found = {name: Series() for name in ("disk", "loopback", NAME)}
        say(f"{NAME}: {IN_FLIGHT} SETs in flight, blocks of {BLOCK_S:g} s, beside synced writes and a stream of TCP")
        judge = Judge(options, report, NAME, bench.port, VALUE_BYTES, JUDGED_KEYS)
        pairs = options.pairs
        for sweep in range(pairs + 1):
            for name in list(found) if sweep % 2 == 0 else reversed(found):
                if name == NAME:
                    before = c.cpu_ns(bench.pids)
                    result = sets(options, bench, judge, BLOCK_S)
                    used = c.cpu_ns(bench.pids) - before
                    amount, seconds = result["operations"] * VALUE_BYTES, result["elapsed_ns"] / 1e9
                    histogram = Histogram.merged(Histogram(one["slots"]) for one in result["latency"].values())
                else:
                    amount, seconds, took = (disk if name == "disk" else loopback).run(BLOCK_S / 2)
                    histogram = Histogram((ns // 1000 * 1000, 1) for ns in took)
                if sweep == 0:
                    continue  # the first blocks do not count
                add(found[name], amount, seconds, histogram)
                if name == NAME:
                    found[name].cpu.append((used, result["operations"]))
            if sweep:
                say(f"  {NAME} {sweep}/{pairs}  MiB/s: " + "  ".join(
                    f"{name} {series.rates[-1][0] / series.rates[-1][1] / (1 << 20):.0f}"
                    for name, series in found.items()))
        judge.conclude()
    tell(report, found)


def tell(report, found):
    for name, series in found.items():
        report.series(name if name == NAME else f"{name}, 1 MiB", series)
        low_high = bootstrap(len(series.rates), lambda chosen, rates=series.rates: share_of(rates, chosen), 1000, 1)
        report.interval(f"{name}: bandwidth", [value / (1 << 20) for value in low_high], "MiB/s")

    def against(copies):
        def statistic(chosen):
            disk, loopback = (share_of(found[name].rates, chosen) for name in ("disk", "loopback"))
            return ratio(share_of(found[NAME].rates, chosen), min(disk / copies, loopback))
        return bootstrap(len(found[NAME].rates), statistic, 1000, 1)

    report.results[NAME]["ratio"] = {"rate": interval_json(against(1))}
    report.interval(f"{NAME} / the slower of disk and loopback", against(1), "")
    report.interval(f"{NAME} / the slower of a third of the disk, which has three logs, and loopback",
                    against(COPIES), "")
