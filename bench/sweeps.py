"""Things that are compared are measured in turn, in blocks, by one process of the load client."""

import os
import pathlib

import cluster as c
from stats import Histogram

WARMUP = 50


def say(text):
    print(text, flush=True)


class Series:
    """All blocks of one target, one for each sweep."""

    def __init__(self):
        self.blocks = []
        self.cpu = []  # (nanoseconds of the servers' processors, operations) of each block
        self.rates = []  # (operations, seconds) of each block, where the rate is what counts

    @property
    def operations(self):
        return sum(operations for _, operations in self.cpu)

    @property
    def all(self):
        return Histogram.merged(self.blocks)


class Sweeps:
    """Targets measured in turn, forwards and backwards."""

    def __init__(self, title, client, order, pids, operations):
        self.title = title
        self.client = client
        self.order = order
        self.pids = pids
        self.operations = operations
        self.series = {name: Series() for name in order}

    def run(self, pairs):
        for sweep in range(pairs):
            order = self.order if sweep % 2 == 0 else list(reversed(self.order))
            for name in order:
                self.block(name)
            shown = "  ".join(f"{name} {self.series[name].blocks[-1].quantile(0.5) / 1000:.1f}"
                              for name in self.order)
            say(f"  {self.title} {sweep + 1:2}/{pairs}  p50 us: {shown}")

    def run_pinned(self, pairs, client_cores, server_cores):
        """A request costs several times as much when it has to wake another core, and the
        scheduler's choice of the cores lasts for whole blocks."""
        c.pin([self.client.child.pid], client_cores)
        for pids in self.pids.values():
            c.pin(pids, server_cores)
        self.run(pairs)
        for pids in self.pids.values():
            c.pin(pids, range(os.cpu_count()))

    def block(self, name):
        operations = self.operations[name]
        before = c.cpu_ns(self.pids[name])
        result = self.client.block(name, operations)
        series = self.series[name]
        series.cpu.append((c.cpu_ns(self.pids[name]) - before, operations + WARMUP))
        series.blocks.append(Histogram(result["latency"]["slots"]))


class Noise:
    """How much of the machine others used meanwhile; the harness's check of itself."""

    def __init__(self):
        self.before = self.sample()

    @staticmethod
    def sample():
        fields = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        user, nice, system, idle, iowait, irq, softirq, steal = (int(field) for field in fields)
        return {"all": user + nice + system + idle + iowait + irq + softirq + steal,
                "steal": steal}

    def stolen_percent(self):
        now = self.sample()
        passed = max(1, now["all"] - self.before["all"])
        return 100.0 * (now["steal"] - self.before["steal"]) / passed
