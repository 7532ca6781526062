"""Instructions of user space that a server takes for a GET, ours beside Redis's: by the processor's counter where perf
has one, else by callgrind. Each server answers N GETs and, started again, 2N: the difference is theirs, without the
start. What happens by time (a beat, a flush of what was loaded) adds to a count, so of several counts the least
counts."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess

import cluster as c
from sweeps import say

NAME = "instructions of a GET"
READS = 20_000
ROUNDS = 3
KEYS = 1000
VALUE_BYTES = 256
UNDER_CALLGRIND = 10.0
# Under callgrind a program starts for half a minute on a busy machine.
START_DEADLINE_S = 300.0


class Perf:
    name = "perf"
    slower = 1.0

    @staticmethod
    def works():
        if shutil.which("perf") is None:
            return False
        done = subprocess.run(["perf", "stat", "-x", ",", "-e", "instructions:u", "true"], capture_output=True,
                              text=True, check=False)
        return done.returncode == 0 and re.search(r"^\d+,", done.stderr, re.MULTILINE) is not None

    @staticmethod
    def words(folder):
        return ["perf", "stat", "-x", ",", "-e", "instructions:u", "-o", folder / "count"]

    @staticmethod
    def count(folder):
        found = re.search(r"^(\d+),", (folder / "count").read_text(), re.MULTILINE)
        return found and int(found[1])


class Callgrind:
    name = "callgrind"
    slower = UNDER_CALLGRIND

    @staticmethod
    def works():
        return shutil.which("valgrind") is not None

    @staticmethod
    def words(folder):
        return ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={folder}/count"]

    @staticmethod
    def count(folder):
        found = re.search(r"^(?:totals|summary): (\d+)", (folder / "count").read_text(), re.MULTILINE)
        return found and int(found[1])


def child_of(process):
    """The server itself: perf has it as a child, valgrind becomes it."""
    return process.tree()[-1]


def end(process):
    """As a user ends it: then the counter writes what it has."""
    os.kill(child_of(process), signal.SIGTERM)
    process.child.wait(60)
    process.stop()


@contextlib.contextmanager
def ours(options, counter, folder):
    """A group of one member leads itself."""
    flags = ["--deputy", "off", "--election-timeout", f"{int(300 * counter.slower)}ms"]
    cluster = c.Cluster(options.program, folder, flags=lambda node: flags, members=1, before=counter.words(folder))
    try:
        leader = cluster.start(START_DEADLINE_S)
        yield cluster.client_ports[leader], lambda: cluster.leader_counters(leader)["lease_hits"]
        end(cluster.processes[leader])
    finally:
        cluster.stop(signal.SIGKILL)


@contextlib.contextmanager
def redis(_options, counter, folder):
    process = c.start_redis(folder, before=counter.words(folder))
    try:
        yield process.port, None
        end(process)
    finally:
        process.stop(signal.SIGKILL)


def instructions(options, counter, server, name, reads):
    """Of a server's whole life with so many GETs."""
    folder = pathlib.Path(options.work) / f"instructions-{name}-{reads}"
    folder.mkdir()
    with server(options, counter, folder) as (port, hits):
        c.load(options.programs, "load", port, KEYS, VALUE_BYTES)
        client = c.Client(options.programs / "bench_client", {"get": ("get", port)}, {}, KEYS, VALUE_BYTES, 0, folder)
        before = hits and hits()
        client.block("get", reads)
        client.close()
        if hits and hits() - before != reads:
            raise c.MeasureError(f"{NAME}: {hits() - before} of {reads} reads were under the lease")
    count = counter.count(folder)
    if not count:
        raise c.MeasureError(f"{NAME}: {counter.name} has counted nothing: see {folder}")
    shutil.rmtree(folder)
    return count


def measure(options, report):
    counter = next((one for one in (Perf, Callgrind) if one.works()), None)
    if counter is None or shutil.which("redis-server") is None:
        say(f"{NAME}: left out: " + ("redis-server is not installed" if counter else
                                     "perf has no counter of instructions here, and valgrind is not installed"))
        return
    found = {}
    for name, server in (("Leasehold", ours), ("Redis", redis)):
        least = [min(instructions(options, counter, server, name, reads) for _ in range(ROUNDS))
                 for reads in (READS, 2 * READS)]
        found[name] = round((least[1] - least[0]) / READS)
        say(f"  {NAME}, {name}: {found[name]}, by {counter.name}, {READS} GETs")
        report.value(f"{NAME}, {name}", found[name], f"by {counter.name}")
    report.value(f"{NAME} / Redis", round(found["Leasehold"] / found["Redis"], 4), "")
