#!/usr/bin/env python3
"""`leasehold trace`: a group is recorded while its leader is killed and comes back. The file has both leaders, the end
of the first lease, the votes, and messages that arrive after they were sent; no key, no value and no password. Then
what is refused, what is missing, and an end by Ctrl-C."""

import collections
import json
import os
import re
import signal
import subprocess
import threading
import time

from cluster import Background, Cluster, check, main, wait_for

SECRET_KEY = "planted-key-7f3a"
SECRET_VALUE = "planted-value-91bc"
PASSWORD = "planted-password-c2d4"


def program(options, *words, **more):
    return subprocess.run([options.binary, *words], capture_output=True, text=True, timeout=60, check=False, **more)


def refused(options, status, says, *words, **more):
    done = program(options, *words, **more)
    check(done.returncode == status, f"{words} ended with {done.returncode}: {done.stderr}")
    check(re.search(says, done.stderr), f"{words} says {done.stderr!r}, and not {says!r}")


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def parts_of(path):
    """The lines of kind `part`, each with its records."""
    parts = []
    for line in lines_of(path):
        if line["kind"] == "part":
            parts.append((line, []))
        elif "at" in line:
            parts[-1][1].append(line)
    return parts


def servers_of(nodes):
    return ",".join(f"127.0.0.1:{node.port}" for node in nodes)


def put_forever(cluster, leader):
    """A user is made, and a client writes planted texts at nodes that live."""
    with leader.client() as client:
        client.call("ACL", "SETUSER", "planted", "on", ">" + PASSWORD, "~planted*", "+get")

    def step():
        for node in cluster.nodes:
            if not node.running:
                continue
            try:
                with node.client(1.0) as client:
                    client.call("SET", SECRET_KEY, SECRET_VALUE)
                    client.call("GET", SECRET_KEY)
            except Exception:  # the node has just been killed
                pass
        time.sleep(0.01)
    return Background(step)


class Recording:
    """`leasehold trace` at work, until Ctrl-C."""

    def __init__(self, options, nodes, path):
        self.process = subprocess.Popen(
            [options.binary, "trace", "--servers", servers_of(nodes), "--seconds", "120", "--out", path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self._reader = threading.Thread(target=lambda: self.lines.extend(iter(self.process.stderr.readline, "")))
        self._reader.start()

    def wait_for(self, text):
        """Until it says so, from now on."""
        known = len(self.lines)
        wait_for(f"trace to say {text!r}", 20, lambda: any(text in line for line in self.lines[known:]))

    def end(self):
        self.process.send_signal(signal.SIGINT)
        said = self.process.stdout.read()
        self._reader.join(20)
        progress = "".join(self.lines)
        check(self.process.wait(20) == 0, f"it ended with {self.process.returncode}: {progress}")
        return said, progress


def records_a_kill(options, cluster, path):
    leader = cluster.start()
    term = leader.status()["term"]
    with put_forever(cluster, leader):
        recording = Recording(options, cluster.nodes, path)
        try:
            recording.wait_for("recording 3 nodes")
            leader.kill()
            second = wait_for("another leader", 20, lambda: next(
                (node for node in cluster.others(leader) if (node.try_status() or {}).get("role") == "leader"), None))
            recording.wait_for("recording 2 nodes")
            leader.start()
            recording.wait_for("recording 3 nodes")
            said, progress = recording.end()
        finally:
            recording.process.kill()
    check("leasehold lab --trace" in said, said)
    check(re.search(r"recording \d nodes: \d+ s of 120 s, \d+ records", progress), f"no progress: {progress}")
    check("ending early" in progress, progress)
    check(f"the recording of node {leader.id} broke off" in progress, progress)
    return leader, second, term


def shows_both_leaders(path, leader, second, term):
    parts = parts_of(path)
    check(len(parts) == 4, f"parts: {[part for part, _ in parts]}")
    ended = sorted(part["ended"] for part, _ in parts)
    check(ended == ["lost", "stopped", "stopped", "stopped"], f"the parts have ended {ended}")
    leaders = {(record["node"], record["term"]) for _, records in parts for record in records
               if record["kind"] == "role" and record["what"] == "leader"}
    check((leader.id, term) in leaders, f"the first leader is missing: {leaders}")
    check(any(node == second.id and later > term for node, later in leaders), f"the second is missing: {leaders}")
    first = [record for part, records in parts if part["ended"] == "lost" for record in records
             if record["kind"] == "lease"]
    check(first and first[-1]["until"] > first[-1]["at"] > first[0]["at"], f"the first lease: {first[-1:]}")
    kinds = collections.Counter(record["kind"] for _, records in parts for record in records)
    for kind in "sent", "delivered", "lease", "promise", "vote", "commit", "round", "settings", "members":
        check(kinds[kind] > 0, f"no record of kind {kind}: {kinds}")
    marks = {record.get("what") for _, records in parts for record in records if record["kind"] == "mark"}
    check({"durable", "applied"} <= marks, f"marks: {marks}")
    reads = " ".join(part.get("reads", "") for part, _ in parts)
    check("lease " in reads, f"no reads by the lease: {reads!r}")


def tells_it_in_order(options, path, leader):
    done = program(options, "trace", "--print", path)
    check(done.returncode == 0, done.stderr)
    check("nodes of one machine have one clock" in done.stdout, done.stdout[:2000])
    check("lost: " in done.stdout, "what is missing is not said")
    events = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    times = [float(line.split()[0]) for line in events]
    check(times == sorted(times), "the lines are not in the order of time")
    # What arrives has a sender, and left earlier.
    arrivals = [line for line in events if " delivered " in line]
    known = [re.search(r"from (-?[\d.]+) ms", line) for line in arrivals]
    check(sum(1 for one in known if one) > 0.9 * len(arrivals), "most arrivals have no sender")
    check(all(float(one.group(1)) <= float(line.split()[0]) for line, one in zip(arrivals, known) if one),
          "a message arrives before it was sent")
    check(any(re.search(rf"node {leader.id} +crash", line) for line in events), "nobody dies")
    votes = program(options, "trace", "--print", path, "--kind", "vote").stdout
    check(re.search(r"node \d +vote +vote -> node \d term", votes), votes)
    check(" sent " not in votes, "the filter lets others pass")
    few = program(options, "trace", "--print", path, "--node", str(leader.id), "--until", "100ms").stdout
    check(all(f"node {leader.id}" in line for line in few.splitlines() if not line.startswith("#")), few)
    check(re.search(r"# [1-9]\d* events pass the filters", few), few)


def keeps_secrets(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for secret in SECRET_KEY, SECRET_VALUE, PASSWORD, "planted":
        check(secret not in text, f"the file has {secret}")


def draws_it(options, cluster, path):
    page = os.path.join(cluster.folder, "page.html")
    with open(page, "w", encoding="utf-8") as file:
        file.write('<html><script id="recording" type="application/x-ndjson" data-version="1"></script></html>')
    out = os.path.join(cluster.folder, "out.html")
    done = program(options, "lab", "--trace", path, "--page", page, "--out", out)
    if "'lab' is not a command" in done.stderr:
        return  # built without tools
    check(done.returncode == 0, done.stderr)
    with open(out, encoding="utf-8") as file:
        check('"what":"cluster"' in file.read(), "the page does not say that it shows a running group")


def says_what_is_missing(options, cluster, path):
    dead = cluster.nodes[2]
    dead.kill()
    done = program(options, "trace", "--servers", servers_of(cluster.nodes), "--seconds", "1", "--out", path)
    check(done.returncode == 0, done.stderr)
    check(f"missing: 127.0.0.1:{dead.port}" in done.stderr, done.stderr)
    missing = [line for line in lines_of(path) if line["kind"] == "missing"]
    check(len(missing) == 1 and missing[0]["server"].endswith(str(dead.port)), missing)
    check([part["ended"] for part, _ in parts_of(path)] == ["whole", "whole"], "how the parts ended")


def refuses(options, cluster, path):
    live = cluster.nodes[0]
    out = os.path.join(cluster.folder, "none.trace")
    server = servers_of([live])
    refused(options, 4, "no node recorded anything", "trace", "--servers", f"127.0.0.1:{cluster.nodes[2].port}",
            "--seconds", "1", "--out", out)
    check(not os.path.exists(out), "a file is left of nothing")
    refused(options, 2, "cannot be written", "trace", "--servers", server, "--out", "/none/x")
    refused(options, 2, "--out is required", "trace", "--servers", server)
    refused(options, 2, "--servers is required", "trace", "--out", out)
    refused(options, 2, "from 1 to 600", "trace", "--servers", server, "--out", out, "--seconds", "601")
    refused(options, 2, "need --print", "trace", "--servers", server, "--out", out, "--node", "1")
    refused(options, 2, "leave out --servers", "trace", "--servers", server, "--print", path)
    refused(options, 2, "no kind 'votes'; there are run", "trace", "--print", path, "--kind", "votes")
    refused(options, 2, "no file of leasehold trace", "trace", "--print", __file__)
    # A user without the right is refused at once.
    begun = time.monotonic()
    environment = {**os.environ, "LEASEHOLD_PASSWORD": PASSWORD}
    refused(options, 4, r"NOPERM.*\+leasehold\|trace", "trace", "--servers", server, "--seconds", "30", "--out", out,
            "--user", "planted", env=environment)
    check(time.monotonic() - begun < 15, "a refusal takes as long as the recording")
    with live.client() as client:
        begun = client.call("LEASEHOLD", "TRACE", "START", "30s")
        again = client.call("LEASEHOLD", "TRACE", "START", "1s")
        check("is being recorded already" in str(again), again)
        names = dict(zip(begun[::2], begun[1::2]))
        check(client.call("LEASEHOLD", "TRACE", "STOP", str(names[b"id"])) == "OK", "it does not stop")


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        path = os.path.join(cluster.folder, "kill.trace")
        leader, second, term = records_a_kill(options, cluster, path)
        shows_both_leaders(path, leader, second, term)
        tells_it_in_order(options, path, leader)
        keeps_secrets(path)
        draws_it(options, cluster, path)
        cluster.wait_leader()
        missing = os.path.join(cluster.folder, "missing.trace")
        says_what_is_missing(options, cluster, missing)
        refuses(options, cluster, missing)


if __name__ == "__main__":
    main(__doc__, run)
