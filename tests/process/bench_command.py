#!/usr/bin/env python3
"""`leasehold bench` at three real nodes: its table, its JSON and its log of HdrHistogram tell the same; each read mode
runs; a leader that is killed costs errors of known kinds and no more; Ctrl-C ends it with the result so far. With --tls
by TLS, with large values too."""

import json
import pathlib
import signal
import subprocess
import sys
import time

from cluster import Cluster, check, main

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

import hdr_log  # noqa: E402

MEASURED, THROWN_AWAY, USAGE, NOT_EXECUTED = 0, 1, 2, 4
KINDS = {"connection closed", "no reply for 10 s", "no reply at the end", "cannot connect", "TRYAGAIN", "NOLEADER",
         "UNKNOWNOUTCOME", "missing key"}
# Of a run that others may hold up: a client that was late is no fault here.
EITHER = (MEASURED, THROWN_AWAY)

def arguments(parser):
    parser.add_argument("--tls", action="store_true", help="by TLS")


class Bench:
    def __init__(self, options, cluster):
        self.folder = pathlib.Path(cluster.folder)
        self.begin = [options.binary, "bench", "--servers",
                      ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)]
        if options.tls:
            self.begin += ["--tls-ca", str(self.folder / "certificates" / "ca.pem")]

    def __call__(self, *words, status=EITHER):
        """Its text, and what it wrote as JSON if it got that far."""
        out = self.folder / "bench.json"
        out.unlink(missing_ok=True)
        run = subprocess.run([*self.begin, "--json", str(out), *words], capture_output=True, text=True, timeout=90,
                             check=False)
        statuses = status if isinstance(status, tuple) else (status,)
        text = run.stdout + run.stderr
        check(run.returncode in statuses, f"bench {' '.join(words)}: status {run.returncode}: {text}")
        return text, json.loads(out.read_text()) if run.returncode in EITHER else None


def smoke(bench):
    """The three forms of one run agree."""
    log = bench.folder / "bench.hlog"
    text, found = bench("--smoke", "--hdr", str(log))
    check("ycsb-a, 1000 keys (zipf)" in text and "p99.9" in text, f"what runs is not said: {text}")
    check(" s " in text and "/s  p50" in text, f"no progress: {text}")
    check(set(found["errors"]) <= KINDS, f"errors: {found['errors']}")
    check(found["operations"] > 50, f"{found['operations']} operations in two seconds")
    logged = {}
    for tag, _, _, _, counts in hdr_log.intervals(log):
        for value, count in counts.items():
            logged.setdefault(tag, {}).setdefault(value, 0)
            logged[tag][value] += count
    measured = {kind: dict(map(tuple, one["slots"])) for kind, one in found["latency"].items()}
    check(logged == measured, f"the log has other counts than the JSON: {logged} {measured}")
    check(sum(one["count"] for one in found["latency"].values()) == found["operations"], "the kinds are not all")


def read_modes(bench, cluster):
    """By what the nodes say that they served."""
    leader = cluster.wait_leader()
    for mode, at_leader in (("lease", True), ("quorum", True), ("log", True), ("follower", False), ("stale=1s", None)):
        before = {node: node.status()["reads"] for node in cluster.nodes}
        _, found = bench("--no-load", "--keys", "1000", "--duration", "500ms", "--warm-up", "0s", "--connections", "2",
                         "--read-mode", mode)
        check(found["operations"] > 0, f"{mode}: nothing was read: {found['errors']}")
        check(set(found["errors"]) <= KINDS, f"{mode}: {found['errors']}")
        if mode == "lease" and cluster.wait_leader() is leader:
            rise = leader.status()["reads"]["lease_hits"] - before[leader]["lease_hits"]
            check(rise >= found["operations"], f"{found['operations']} lease reads, and {rise} hits of the leader")
        options = found["options"]
        route = {True: "leader", False: "follower", None: "any"}[at_leader]
        check(options["route"] == route, f"{mode}: to {options['route']}")


def killed_leader(bench, cluster):
    """The others serve on, and what was lost is counted."""
    leader = cluster.wait_leader()
    out = bench.folder / "killed.json"
    run = subprocess.Popen([*bench.begin, "--workload", "ycsb-a", "--keys", "1000", "--no-load", "--connections", "8",
                            "--duration", "6s", "--warm-up", "0s", "--json", str(out)], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(2)
    # It may have changed, on a busy machine: then there is nothing to be lost.
    leads = leader.status()["role"] == "leader"
    leader.kill()
    text = "".join(run.communicate(timeout=60))
    check(run.returncode in EITHER, f"status {run.returncode} after the leader was killed: {text}")
    found = json.loads(out.read_text())
    check(set(found["errors"]) <= KINDS, f"other kinds of errors: {found['errors']}")
    check("connection closed" in found["errors"] or not leads, f"no connection to the leader broke: {text}")
    check(found["seconds"][-1]["operations"] > 0, f"nothing is served at the end: {text}")
    leader.start()
    cluster.wait_leader()


def interrupted(bench):
    run = subprocess.Popen([*bench.begin, "--keys", "1000", "--no-load", "--warm-up", "0s", "--duration", "60s"],
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seen = run.stderr.readline()
    check("/s" in seen, f"the first line of progress: {seen}")
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=20)
    check(run.returncode in EITHER and "ended early" in out and "\nread " in out, f"{run.returncode}: {out}{err}")


def refusals(bench, options):
    text, _ = bench("--value-size", "8", status=USAGE)
    check("--value-size takes 16 to 1048576" in text, text)
    for words in (("--workload", "ycsb-x"), ("--rate", "10", "--pipeline", "2"), ("--in-flight", "5000"),
                  ("--read-mode", "stale"), ("--distribution", "odd"), ("--duration", "soon")):
        bench(*words, status=USAGE)
    bench("--json", str(bench.folder / "none" / "x"), status=NOT_EXECUTED)
    nobody = subprocess.run([options.binary, "bench", "--servers", "127.0.0.1:1"], capture_output=True, text=True,
                            timeout=60, check=False)
    check(nobody.returncode == NOT_EXECUTED, f"without a server: {nobody.returncode} {nobody.stderr}")


def protected(bench):
    """Requests and replies that are more than a record of TLS and more than the buffers between."""
    for workload in ("get", "set"):
        _, found = bench("--workload", workload, "--value-size", "300k", "--keys", "20", "--in-flight", "16",
                         "--duration", "2s", "--warm-up", "0s")
        check(found["operations"] > 0 and set(found["errors"]) <= KINDS, f"{workload}: {found['errors']}")


def certify(options, cluster):
    """Nodes speak TLS at both ports, and take plain clients too: the harness is one."""
    folder = pathlib.Path(cluster.folder) / "certificates"
    folder.mkdir(mode=0o700)
    nodes = ",".join(f"{node.id}=127.0.0.1" for node in cluster.nodes)
    subprocess.run([options.binary, "cert", "init", "--cluster", "default", "--dir", str(folder), "--nodes", nodes],
                   check=True, stdout=subprocess.DEVNULL, timeout=60)
    for node in cluster.nodes:
        node.flags += ["--tls-cert", str(folder / f"node-{node.id}.pem"), "--tls-key",
                       str(folder / f"node-{node.id}-key.pem"), "--tls-ca", str(folder / "ca.pem"), "--client-tls",
                       "optional"]


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        if options.tls:
            certify(options, cluster)
        cluster.start()
        bench = Bench(options, cluster)
        smoke(bench)
        if options.tls:
            protected(bench)
            return
        cluster.wait_leader()
        read_modes(bench, cluster)
        interrupted(bench)
        refusals(bench, options)
        killed_leader(bench, cluster)


if __name__ == "__main__":
    main(__doc__, run, arguments)
