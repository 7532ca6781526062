#!/usr/bin/env python3
"""The leadership is transferred by plan, under load, again and again: how long does a read or a write
at any node wait for it, is anything refused, and is the history linearizable? Then rolling restarts:
every node in turn is ended by SIGTERM and started again."""

import json
import random
import signal
import subprocess
import time

from cluster import Cluster, built, check, main, wait_for
from history import History

REGISTERS = 64
# Requests count from the request for a transfer until this long after its answer.
TAIL_NS = 30_000_000
# Quantiles of few transfers say too little to be judged.
JUDGED = 50
MS = 1_000_000


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--client", required=True, type=built, help="the gap_client program")
    parser.add_argument("--transfers", type=int, default=200)
    parser.add_argument("--restarts", type=int, default=20, help="rolling restarts of all nodes")
    parser.add_argument("--pause-ms", type=float, default=150, help="between two transfers")
    parser.add_argument("--read-us", type=int, default=2000,
                        help="between two requests of a reader; there is one at each node")
    parser.add_argument("--write-us", type=int, default=4000, help="the same for a writer")
    parser.add_argument("--limit-read-p50-ms", type=float, default=2)
    parser.add_argument("--limit-read-p99-ms", type=float, default=10)
    parser.add_argument("--limit-write-p99-ms", type=float, default=20)
    parser.add_argument("--json", help="write the figures to this file")


class Request:
    __slots__ = ("kind", "node", "sent", "done", "unknown", "refusals", "register", "value",
                 "why")

    def __init__(self, line):
        kind, node, sent, done, outcome, refusals, register, value, *why = line.split(None, 8)
        self.why = "".join(why)
        self.kind, self.node = kind, int(node)
        self.sent, self.done = int(sent), int(done)
        self.unknown, self.refusals = outcome == "unknown", int(refusals)
        self.register, self.value = int(register), int(value)


class Load:
    """The gap_client while the block runs; then `requests`."""

    def __init__(self, options, nodes):
        ports = ",".join(str(node.port) for node in nodes)
        self._process = subprocess.Popen(
            [options.client, ports, str(options.read_us), str(options.write_us),
             str(REGISTERS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.requests = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        said, _ = self._process.communicate(timeout=60)
        check(self._process.returncode == 0, "the client failed")
        self.requests = [Request(line) for line in said.splitlines()]


class Window:
    """From when something was asked for until it had happened, and a little longer."""

    def __init__(self, begun, ended, took_ms=0.0):
        self.begun, self.ended, self.took_ms = begun, ended + TAIL_NS, took_ms
        self.longest = {"r": 0.0, "w": 0.0}
        self.unknown = 0
        self.why_unknown = []
        self.refused = []

    def look(self, requests):
        """`requests` in order of `sent`, those that this window may meet among them."""
        for request in requests:
            if request.sent > self.ended:
                break
            if request.done < self.begun:
                continue
            waited = request.done - request.sent
            self.longest[request.kind] = max(self.longest[request.kind], waited / MS)
            if request.refusals:
                self.refused.append(request.why)
            self.unknown += request.unknown
            if request.unknown:
                self.why_unknown.append(f"{request.why}, {(request.sent - self.begun) / MS:.3f} ms "
                                        f"after the signal, of {self.took_ms:.3f} ms")


def look_at(windows, requests):
    begin = 0
    longest = max((request.done - request.sent for request in requests), default=0)
    for window in windows:
        while begin < len(requests) and requests[begin].sent < window.begun - longest:
            begin += 1
        window.look(requests[begin:begin + 100_000])


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def spread(windows, kind):
    values = [window.longest[kind] for window in windows]
    return {"p50": quantile(values, 0.5), "p90": quantile(values, 0.9),
            "p99": quantile(values, 0.99), "max": max(values)}


def text(figures):
    return ", ".join(f"{name} {value:.1f}" for name, value in figures.items()) + " ms"


def transfer(cluster, leader):
    """Half of them to a node by its number, half to the node that the leader chooses. Returns the window and
    who leads now."""
    words = ["LEASEHOLD", "TRANSFER"]
    if random.random() < 0.5:
        words.append(str(random.choice(cluster.others(leader)).id))
    with leader.client() as client:
        begun = time.monotonic_ns()
        reply = client.call(*words)
        ended = time.monotonic_ns()
    check(isinstance(reply, bytes), f"{' '.join(words)} at {leader} was answered {reply!r}")
    told = json.loads(reply)
    check(len(words) == 2 or told["leader"] == int(words[2]), f"{words} was answered {told}")
    return Window(begun, ended, told["took_us"] / 1000), cluster.node(told["leader"])


def transfers(options, cluster):
    """As many windows without a transfer lie between them: what this machine does by itself."""
    leader = cluster.wait_leader()
    windows, quiet = [], []
    for _ in range(options.transfers):
        time.sleep(options.pause_ms / 2000)
        now = time.monotonic_ns()
        quiet.append(Window(now - 2 * MS, now - TAIL_NS + 10 * MS))
        time.sleep(options.pause_ms / 2000)
        window, leader = transfer(cluster, leader)
        windows.append(window)
    time.sleep(0.2)
    return windows, quiet


def restart(cluster, node):
    begun = time.monotonic_ns()
    node.signal(signal.SIGTERM)
    status = node.wait_exit(15)
    ended = time.monotonic_ns()
    check(status == 0, f"{node} ended with status {status} after SIGTERM")
    node.start()
    wait_for(f"{node} to answer", 20, node.try_status)
    cluster.wait_caught_up(node)
    cluster.wait_leader()
    return Window(begun, time.monotonic_ns(), (ended - begun) / MS)


def rolling_restarts(options, cluster):
    """Windows of the nodes that led, and of those that followed: until each was back."""
    led, followed = [], []
    for _ in range(options.restarts):
        for node in cluster.nodes:
            leads = node.status()["role"] == "leader"
            (led if leads else followed).append(restart(cluster, node))
            time.sleep(options.pause_ms / 1000)
    return led, followed


def judge_history(options, requests):
    history = History()
    for request in requests:
        client, key = f"{request.node}", f"register:{request.register}"
        client = int(client) * 2 + (request.kind == "w")
        if request.kind == "r":
            reply = None if request.value == 0 else request.value
            history.read(client, key, reply, request.sent, request.done)
        else:
            history.wrote(client, key, request.value, request.sent,
                          None if request.unknown else "OK", request.done)
    linearizable, verdict = history.judge(options.checker)
    print(f"history of {len(history)} requests: {verdict}")
    check(linearizable, "the history is not linearizable")


def tell(name, windows, figures):
    if not windows:
        return
    figures[name] = {"count": len(windows), "reads": spread(windows, "r"),
                     "writes": spread(windows, "w"),
                     "refusals": sum(len(window.refused) for window in windows),
                     "why": sorted({why for window in windows for why in window.refused}),
                     "unknown": sum(window.unknown for window in windows),
                     "why unknown": [why for window in windows for why in window.why_unknown]}
    if windows[0].took_ms:
        took = [window.took_ms for window in windows]
        figures[name]["took"] = {"p50": quantile(took, 0.5), "p99": quantile(took, 0.99),
                                 "max": max(took)}
        print(f"{name}: {len(windows)}, which took {text(figures[name]['took'])}")
    print(f"{name}: the longest read {text(figures[name]['reads'])}; the longest write "
          f"{text(figures[name]['writes'])}; refused and sent elsewhere "
          f"{figures[name]['refusals']}, of unknown outcome {figures[name]['unknown']}", flush=True)
    for why in figures[name]["why unknown"]:
        print(f"{name}: of unknown outcome: {why}", flush=True)


def judge(options, figures):
    of = figures["transfers"]
    check(of["refusals"] == 0, f"{of['refusals']} requests were refused during transfers: "
                               f"{of['why']}")
    check(of["unknown"] == 0, f"{of['unknown']} writes of unknown outcome during transfers")
    problems = []
    for name, found, limit in (("reads' p50", of["reads"]["p50"], options.limit_read_p50_ms),
                               ("reads' p99", of["reads"]["p99"], options.limit_read_p99_ms),
                               ("writes' p99", of["writes"]["p99"], options.limit_write_p99_ms)):
        if found > limit * options.slack:
            problems.append(f"the {name} is {found:.1f} ms, above {limit * options.slack:.1f}")
    if of["count"] >= JUDGED:
        check(not problems, "; ".join(problems))
    for name in ("restarts of a leader", "restarts of a follower"):
        if name in figures:
            check(figures[name]["unknown"] == 0,
                  f"{name}: {figures[name]['unknown']} writes of unknown outcome")


def run(options):
    figures = {}
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        with Load(options, cluster.nodes) as load:
            time.sleep(0.5)
            windows, quiet = transfers(options, cluster)
            led, followed = rolling_restarts(options, cluster)
        requests = sorted(load.requests, key=lambda request: request.sent)
        print(f"{len(requests)} requests, {sum(r.kind == 'w' for r in requests)} of them writes")
        for name, part in (("quiet", quiet), ("transfers", windows),
                           ("restarts of a leader", led), ("restarts of a follower", followed)):
            look_at(part, requests)
            tell(name, part, figures)
        judge_history(options, requests)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
    judge(options, figures)


if __name__ == "__main__":
    main(__doc__, run, arguments)
