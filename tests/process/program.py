#!/usr/bin/env python3
"""The program as a person and a script use it: what a first start says that it waits for, the exit
statuses of the client commands, `leasehold transfer`, and `status --watch`."""

import json
import re
import signal
import subprocess
import time

from cluster import Cluster, check, main, wait_for
import resp

DONE, NO, USAGE, UNKNOWN, NOT_EXECUTED = 0, 1, 2, 3, 4


class Program:
    def __init__(self, binary, servers):
        self.binary = binary
        self.servers = servers

    def __call__(self, status, command, *words):
        run = subprocess.run([self.binary, command, "--servers", self.servers, *words],
                             capture_output=True, text=True, timeout=60, check=False)
        check(run.returncode == status,
              f"{command} {' '.join(words)}: status {run.returncode}, not {status}: "
              f"{run.stdout}{run.stderr}")
        return run.stdout.rstrip("\n")

    def watch(self, seconds, *words):
        """What `status --watch` says until SIGINT, and its status."""
        process = subprocess.Popen([self.binary, "status", "--servers", self.servers, "--watch",
                                    *words], stdout=subprocess.PIPE, text=True)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
        return said, process.returncode


def sessions(program):
    with resp.Client(int(program.servers.rsplit(":", 1)[1])) as client:
        return client.call("LEASEHOLD", "SESSION", "LIST").decode()


def first_start(cluster):
    """Each node says which members it waits for, and their addresses."""
    first, second, third = cluster.nodes
    first.start()
    wait_for("the first node's word", 10, lambda: "waiting for members" in first.log_text())
    for other in (second, third):
        address = dict(peer.split("=") for peer in first.peers.split(","))[str(other.id)]
        check(f"{other.id} ({address}, not reached)" in first.log_text(),
              f"{first} does not say where it looks for {other}: {first.log_text()}")
    second.start()
    wait_for("news of the second", 10, lambda: ", connected)" in first.log_text() or
             "waiting for member 3" in first.log_text())
    check("the group has formed" not in first.log_text(), "two of three formed a group")


def exit_statuses(program):
    program(DONE, "put", "key", "value")
    check(program(DONE, "get", "key") == "value", "a wrong value")
    program(NO, "get", "missing")
    program(NO, "put", "key", "other", "--if-absent")
    program(DONE, "del", "key", "--exactly-once")
    program(NO, "del", "key", "--exactly-once")
    program(DONE, "put", "key", "value", "--exactly-once")
    program(NO, "put", "key", "other", "--if-absent", "--exactly-once")
    program(DONE, "del", "key")
    program(NO, "del", "key")
    first = program(DONE, "put", "queue/", "one", "--sequential")
    second = program(DONE, "put", "queue/", "two", "--sequential", "--exactly-once")
    check("queue/" < first < second, f"{second} does not stand behind {first}")
    check(program(DONE, "get", second) == "two", "a wrong value of a sequential key")
    program(NOT_EXECUTED, "put", "queue/", "three", "--sequential", "--lease", "4000000000")
    program(NOT_EXECUTED, "put", "key", "value", "--lease", "4000000000")
    program(USAGE, "put", "queue/", "four", "--sequential", "--if-absent")
    program(USAGE, "put", "queue/", "four", "--lease", "0")
    wait_for("the sessions to be closed", 5, lambda: '"open":0,' in sessions(program))
    program(NOT_EXECUTED, "put", "k" * 70000, "too long a key")
    program(NOT_EXECUTED, "put", "k" * 70000, "too long a key", "--exactly-once")
    program(USAGE, "put", "key")
    program(USAGE, "get", "key", "--exactly-once")
    program(USAGE, "status", "--watch", "often")
    program(DONE, "status")
    leases_by_name(program)
    program(DONE, "member", "list")
    program(DONE, "member", "list", "--json")
    program(USAGE, "member", "shuffle")
    slip = subprocess.run([program.binary, "stauts"], capture_output=True, text=True, timeout=60,
                          check=False)
    check(slip.returncode == USAGE and "did you mean status?" in slip.stderr, f"{slip}")
    program(USAGE, "member", "add", "4")
    program(USAGE, "member", "remove")
    program(USAGE, "member", "replace", "2", "2=127.0.0.1:1")
    program(USAGE, "member", "replace", "2", "4=127.0.0.1:1", "3", "4=127.0.0.1:2")
    program(USAGE, "member", "remove", "2", "2")
    program(NOT_EXECUTED, "member", "remove", "9")
    program(NOT_EXECUTED, "member", "add", "9=127.0.0.1:1", "--timeout", "1s")
    slots(program)
    nobody = Program(program.binary, "127.0.0.1:1")
    nobody(NOT_EXECUTED, "slots", "--timeout", "100ms")
    nobody(NOT_EXECUTED, "put", "--timeout", "100ms", "key", "value")
    nobody(NOT_EXECUTED, "put", "--timeout", "100ms", "key", "value", "--exactly-once")


def slots(program):
    """Of one group, which has nowhere to move one."""
    check("0-16383       1" in program(DONE, "slots"), "one group has all slots")
    check(json.loads(program(DONE, "slots", "list", "--json"))["moves"] == [], "nothing moves")
    program(USAGE, "slots", "move", "0-99")
    program(USAGE, "slots", "move", "9-3", "--to", "1")
    program(USAGE, "slots", "cancel")
    program(USAGE, "slots", "cancel", "1", "--wait")
    program(NOT_EXECUTED, "slots", "move", "0-99", "--to", "1")
    program(NOT_EXECUTED, "slots", "cancel", "0-99")


def leases_by_name(program):
    for ttl, warning in (("2s", "below 3 s"), ("120m", "above an hour"), ("10s", "")):
        run = subprocess.run([program.binary, "lease", "grant", "--servers", program.servers, "--ttl", ttl],
                             capture_output=True, text=True, timeout=60, check=False)
        check(run.returncode == DONE and warning in run.stderr, f"{run}")
        check(bool(warning) == bool(run.stderr), f"{run}")
    program(DONE, "lease", "grant", "--name", "server1Lease", "--ttl", "1m")
    program(DONE, "put", "/servers/1", "address", "--lease", "server1Lease")
    program(DONE, "put", "/servers/2", "address")
    program(DONE, "lease", "attach", "server1Lease", "/servers/2")
    check(program(DONE, "lease", "renew", "server1Lease") == "server1Lease  ttl 1m", "a wrong renewal")
    shown = json.loads(program(DONE, "lease", "info", "server1Lease", "--json"))
    check(shown["keys"] == ["/servers/1", "/servers/2"], f"{shown}")
    program(DONE, "lease", "revoke", "server1Lease")
    program(NO, "lease", "revoke", "server1Lease")
    program(NO, "lease", "info", "server1Lease")
    program(NO, "get", "/servers/1")
    program(NOT_EXECUTED, "put", "/servers/1", "address", "--lease", "server1Lease")


def exactly_once(program, cluster):
    """A leader stands still with the command in its hands: its outcome is unknown, but with a
    session another node tells."""
    leader = cluster.wait_leader()
    ports = [leader.port, *(node.port for node in cluster.others(leader))]
    first = Program(program.binary, ",".join(f"127.0.0.1:{port}" for port in ports))
    leader.pause()
    first(UNKNOWN, "put", "--timeout", "1s", "bare", "value")
    first(DONE, "put", "--timeout", "20s", "--if-absent", "--exactly-once", "numbered", "value")
    leader.resume()
    cluster.wait_leader()
    check(program(DONE, "get", "numbered") == "value", "the key was not written")


def watched(program, cluster):
    said, status = program.watch(1.5, "200ms")
    check(status == DONE, f"a healthy cluster's watch ended with status {status}")
    check(said.count("healthy, after") >= 3, f"asked only {said.count('healthy, after')} times")
    check("\x1b" not in said, "colours and cursor moves in a pipe")
    said, status = program.watch(1.5, "200ms", "--json")
    lists = [json.loads(line) for line in said.splitlines()]
    check(len(lists) >= 3 and all(len(one) == 3 for one in lists), "--json: a list a line")
    cluster.nodes[2].kill()
    said, status = program.watch(1.0, "200ms")
    check(status == NO, f"status {status} with a node out of reach")
    check("unreachable" in said, "says nothing of the node that is gone")


def transferred(program, cluster):
    """leasehold transfer finds the leader, and names who leads then."""
    before = cluster.wait_leader().id
    other = before % 3 + 1
    said = program(DONE, "transfer", "--to", str(other))
    check(re.fullmatch(rf"node {other} leads; node {before} transferred the leadership in \d+\.\d ms", said), said)
    check(cluster.wait_leader().id == other, "another node leads")
    check(program(DONE, "transfer", f"--to={other}") == f"node {other} leads already", "not so")
    told = json.loads(program(DONE, "transfer", "--json"))
    check(told["before"] == other and told["leader"] == cluster.wait_leader().id, f"{told}")
    program(NOT_EXECUTED, "transfer", "--to", "9")
    for wrong in (["--to", "x"], ["--to"], ["--timeout", "soon"], ["--pink"]):
        program(USAGE, "transfer", *wrong)
    follower = cluster.others(cluster.wait_leader())[0]
    only = Program(program.binary, f"127.0.0.1:{follower.port}")
    only(NOT_EXECUTED, "transfer", "--timeout", "100ms")
    nobody = Program(program.binary, "127.0.0.1:1")
    nobody(NOT_EXECUTED, "transfer", "--timeout", "100ms")


def no_majority(program, cluster):
    """One of three: it says what is missing, and reads are refused."""
    survivor = cluster.nodes[0]
    cluster.nodes[1].kill()
    wait_for("the word of the last", 30, lambda: "no leader: 1 of 3 voters reached, 2 are needed"
             in survivor.log_text())
    program(NOT_EXECUTED, "get", "--timeout", "1s", "key")


def run(options):
    with Cluster(options.binary, flags=["--command-timeout", "2s"], keep=options.keep) as cluster:
        first_start(cluster)
        cluster.nodes[2].start()
        cluster.wait_leader()
        servers = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
        program = Program(cluster.binary, servers)
        exit_statuses(program)
        exactly_once(program, cluster)
        transferred(program, cluster)
        watched(program, cluster)
        no_majority(program, cluster)


if __name__ == "__main__":
    main(__doc__, run)
