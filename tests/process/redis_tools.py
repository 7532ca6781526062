#!/usr/bin/env python3
"""The real redis-cli and redis-benchmark against every node."""

import shutil
import subprocess

from cluster import Cluster, check, main

COMMAND_SECONDS = 60


def arguments(parser):
    parser.add_argument("--requests", type=int, default=20000, help="per benchmark")


def tool(*command, status=0):
    run = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS,
                         check=False)
    text = run.stdout + run.stderr
    check(run.returncode == status, f"{' '.join(command)}: status {run.returncode}: {text[-2000:]}")
    return text


def cli(node, *words, status=0):
    return tool("redis-cli", "-p", str(node.port), *words, status=status).rstrip("\n")


def expect(node, words, answer, status=0):
    got = cli(node, *words, status=status)
    check(got == answer, f"redis-cli {' '.join(words)} at {node} printed {got!r}, not {answer!r}")


def speak(cluster, node):
    key = f"cli:{node.id}"
    expect(node, ["PING"], "PONG")
    expect(node, ["ECHO", "hello"], "hello")
    expect(node, ["SET", key, "1"], "OK")
    for reader in cluster.nodes:
        expect(reader, ["GET", key], "1")
    expect(node, ["INCR", key], "2")
    expect(node, ["SET", key, "x", "NX"], "")
    expect(node, ["SET", key, "x", "XX"], "OK")
    expect(node, ["EXISTS", key, "nothing"], "1")
    expect(node, ["DEL", key], "1")
    expect(node, ["GET", key], "")
    expect(node, ["SELECT", "0"], "OK")
    expect(node, ["-3", "SET", key, "resp3"], "OK")
    expect(node, ["-3", "GET", key], "resp3")
    check("# Replication" in cli(node, "INFO"), "INFO lacks a section")
    check("not supported" in cli(node, "FLUSHALL"), "FLUSHALL was not refused")


def follow_cluster(cluster):
    """redis-cli in cluster mode: it finds every key from any node."""
    for node in cluster.nodes:
        for i in range(5):
            check(cli(node, "-c", "SET", f"cluster:{i}", str(node.id)) == "OK", "SET with -c")
            check(cli(node, "-c", "GET", f"cluster:{i}") == str(node.id), "GET with -c")
        slots = cli(node, "CLUSTER", "SLOTS").split()
        check(slots[:2] == ["0", "16383"] and len(slots) >= 5, f"CLUSTER SLOTS: {slots}")
        scanned = cli(node, "--scan", "--pattern", "cluster:?").split()
        check(sorted(scanned) == [f"cluster:{i}" for i in range(5)], f"--scan found {scanned}")


def benchmark(node, requests, *flags):
    text = tool("redis-benchmark", "-p", str(node.port), "-t", "ping,get,set,incr,mset", "-n", str(requests),
                "-c", "20", "-q", *flags)
    lines = [line.strip() for line in text.replace("\r", "\n").split("\n")
             if "requests per second" in line]
    lower = text.lower()
    for word in ("error", "warning", "noleader", "tryagain", "unknownoutcome"):
        check(word not in lower, f"redis-benchmark at {node} complains: {text[-2000:]}")
    check(len(lines) == 6, f"redis-benchmark at {node} ran {len(lines)} of 6 tests: {text[-2000:]}")
    for line in lines:
        print(f"{node} {' '.join(flags) or '-P 1'}: {line}", flush=True)


def run(options):
    for name in ("redis-cli", "redis-benchmark"):
        check(shutil.which(name), f"{name} is not installed: see packages-develop.txt")
    with Cluster(options.binary, keep=options.keep) as cluster:
        leader = cluster.start()
        print(f"{leader} leads")
        for node in cluster.nodes:
            speak(cluster, node)
        follow_cluster(cluster)
        before = {node.id: node.status() for node in cluster.nodes}
        for node in cluster.nodes:
            benchmark(node, options.requests)
            benchmark(node, options.requests, "-P", "16")
        for node in cluster.nodes:
            status = node.status()
            for kind, name in (("clients", "commands_refused"), ("clients", "protocol_errors"),
                               ("writes", "dropped"), ("writes", "unknown"), ("reads", "refused")):
                more = status[kind][name] - before[node.id][kind][name]
                check(more == 0, f"{node}: {kind} {name} rose by {more}")
            check(status["term"] == before[node.id]["term"], "the leader changed meanwhile")


if __name__ == "__main__":
    main(__doc__, run, arguments)
