"""GETs of ten thousand connections at once, beside Redis. `leasehold bench` has 4,096 connections at most, so several
processes of it are the client."""

import contextlib
import json
import pathlib
import resource
import subprocess
import tempfile

import cluster as c
import load_blocks
from judge import Judge
from scene import KEYS, VALUE_BYTES, Bench
from stats import Histogram
from sweeps import say

CONNECTIONS = 10_000
CLIENTS = 3
# For the questions of the measurement itself, and for files.
SPARE = 200
# New connections are served behind those that are there, until each has asked 16 times.
WARM_UP_S = 12.0
BLOCK_S = 3.0
# `leasehold bench` waits so long for what is under way at the end. What is not answered then counts as answered
# after it, which is too early.
UNANSWERED = "no reply at the end"
UNANSWERED_NS = 2_000_000_000
# Exit status of `leasehold bench` when nobody answered its first question.
NO_SERVER = 4
# The client tries again.
NOT_CONNECTED = "cannot connect"


def shares(connections, clients):
    """Nearly equal ones."""
    return [connections // clients + (number < connections % clients) for number in range(clients)]


def merged(results):
    """As one run of `leasehold bench`."""
    unanswered = sum(result["errors"].get(UNANSWERED, 0) for result in results)
    slots = Histogram.merged([Histogram([(UNANSWERED_NS, unanswered)] if unanswered else []),
                              *(Histogram(one["slots"]) for result in results for one in result["latency"].values())])
    return {"discarded": next((result["discarded"] for result in results if result["discarded"]), ""),
            "latency": {"all": {"slots": slots.slots()}}, "operations": sum(result["operations"] for result in results),
            "elapsed_ns": max(result["elapsed_ns"] for result in results), "unanswered": unanswered,
            "not_connected": sum(result["errors"].get(NOT_CONNECTED, 0) for result in results)}


def crowd(connections, counts, judges):
    """A block for load_blocks.measure(), of so many connections. Adds what failed to `counts`, by (kind, address).
    `judges`: by address."""
    def run(program, _work, address, flags, seconds):
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crowd-")))
            clients = []
            for number, share in enumerate(shares(connections, CLIENTS)):
                out = folder / f"{number}.json"
                recorded = judges[address].flags() if address in judges else []
                clients.append((out, subprocess.Popen(
                    [str(word) for word in (program, "bench", *load_blocks.servers(address), "--no-load", "--quiet",
                                            "--warm-up", f"{WARM_UP_S:g}s", "--duration", f"{int(seconds * 1000)}ms",
                                            "--connections", share, "--seed", number + 1, "--json", out, *flags,
                                            *recorded)],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)))
                stack.callback(clients[-1][1].kill)
            results = []
            for out, client in clients:
                _, errors = client.communicate()
                if client.returncode == NO_SERVER:
                    return {"discarded": errors.strip()}
                if client.returncode not in (0, 1) or not out.exists():
                    raise c.MeasureError(f"leasehold bench at {address}: {errors.strip()}")
                results.append(json.loads(out.read_text()))
                if set(results[-1]["errors"]) - {UNANSWERED, NOT_CONNECTED}:
                    raise c.MeasureError(f"leasehold bench at {address}: {results[-1]['errors']}")
        one = merged(results)
        for kind in ("unanswered", "not_connected"):
            counts[(kind, address)] = counts.get((kind, address), 0) + one[kind]
        return one
    return run


def enough_files(wanted):
    """Raises the soft limit of descriptors, which children inherit. False: the hard one is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        return False
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return True


def measure(options, report):
    name = f"GET at {CONNECTIONS} connections"
    if not enough_files(CONNECTIONS + 2 * SPARE):
        say(f"{name}: left out: a process may have fewer files than that (ulimit -Hn)")
        return
    flags = ["--clients-max", CONNECTIONS + SPARE, "--connection-rate", 0]
    with Bench(options, "connections", flags=lambda node: flags) as bench:
        redis = bench.start_redis("--maxclients", CONNECTIONS + SPARE, "--tcp-backlog", 4096)
        if redis is None:
            say(f"{name}: left out: redis-server is not installed")
            return
        bench.fill()
        bench.fill(port=redis.port)
        say(f"{name}: closed loop, {CLIENTS} clients, blocks of {BLOCK_S:g} s, {VALUE_BYTES}-byte values")
        counts = {}
        judge = Judge(options, report, name, bench.port, VALUE_BYTES)
        before = bench.counters()
        found = load_blocks.measure(
            options.program, options.work, name,
            {"Redis": (f"127.0.0.1:{redis.port}", redis.tree()), name: (bench.address, [bench.leader_pid])},
            ["--keys", KEYS, "--value-size", VALUE_BYTES], max(1, options.pairs // 2), BLOCK_S,
            crowd(CONNECTIONS, counts, {bench.address: judge}))
        after = bench.counters()
        if after["term"] != before["term"] or after["lease_fallbacks"] != before["lease_fallbacks"]:
            raise c.MeasureError("the lease was lost during the run; measure again on a quieter machine")
        judge.conclude()
        load_blocks.report_pair(report, name, found[name], "Redis", found["Redis"])
        for what, address in (("", bench.address), (" of Redis", f"127.0.0.1:{redis.port}")):
            report.value(f"{name}{what}: without an answer {UNANSWERED_NS / 1e9:g} s after the end of a block",
                         counts.get(("unanswered", address), 0), "requests")
            report.value(f"{name}{what}: could not connect at first",
                         counts.get(("not_connected", address), 0), "times")
