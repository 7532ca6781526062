#!/usr/bin/env python3
"""Groups of two versions: rolling upgrades and rollbacks between the program of an older build (--old) and this one,
under load. Nothing that was acknowledged is lost, nothing is of unknown outcome, and a member of either version takes
snapshots from the other. Until the group has settings, nothing that the old build could not read gets into its log;
from then on the old build refuses the data directory, and leaves its log and its records as they are."""

import hashlib
import os
import re
import time

from cluster import Cluster, built, check, main, wait_for
from planned_transfers import Load, judge_history, look_at, restart, tell
import resp

KEYS = 50
OLDEST, NEWEST = 1, 2
OPENED = re.compile(r"state/db-\d+/(CURRENT|MANIFEST-\d+|OPTIONS-\d+|\d+\.log|LOG.*)$")
# Often, so that there would be one in each phase if the group's level did not forbid it.
COMPARE = ["--compare-interval", "1s"]


def arguments(parser):
    parser.add_argument("--old", required=True, type=built, help="the leasehold program of the older build")
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--client", required=True, type=built, help="the gap_client program")
    parser.add_argument("--rounds", type=int, default=20, help="each an upgrade and a rollback")
    parser.add_argument("--read-us", type=int, default=4000, help="between two requests of a reader at a node")
    parser.add_argument("--write-us", type=int, default=8000, help="the same for a writer")


def ask(node, *words):
    with node.client() as client:
        return client.call(*words)


def fill(node):
    """Values, a key with a time, a lease with a key and a session, all by the old build."""
    for number in range(KEYS):
        check(ask(node, "SET", f"kept:{number}", f"value {number}") == "OK", "no SET")
    check(ask(node, "SET", "timed", "v", "EX", "3600") == "OK", "no SET with a time")
    granted = ask(node, "LEASE.GRANT", "3600000", "ID", "77")
    check(not isinstance(granted, resp.RespError), f"no lease: {granted!r}")
    check(ask(node, "SET", "leased", "v", "LEASE", "77") == "OK", "no SET with a lease")


def look(node):
    """What was there at first is there at this node."""
    for number in (0, KEYS // 2, KEYS - 1):
        found = ask(node, "GET", f"kept:{number}")
        check(found == f"value {number}".encode(), f"{node}: kept:{number} is {found!r}")
    check(3000 < ask(node, "TTL", "timed") <= 3600, f"{node}: the time of a key was lost")
    check(ask(node, "GET", "leased") == b"v", f"{node}: the key of a lease was lost")


def run_as(cluster, node, program, flags):
    """Restarts the node by another program; returns how long requests may have waited."""
    node.binary, node.flags = program, [*cluster.flags, *flags]
    return restart(cluster, node)


def refuses_what_is_newer(node):
    for words in (("SET", "named", "v", "LEASE", "a-name"), ("ACL", "SETUSER", "ann", "on", "+get")):
        reply = ask(node, *words)
        check(isinstance(reply, resp.RespError) and "level" in reply.text, f"{node} answered {words} with {reply!r}")
    status = node.status()
    check(status["feature_level"] == OLDEST, f"{node} has level {status['feature_level']}")
    check(status["state"]["compares"] == 0, f"{node} compares its state, which an older member could not")


def snapshot_to(cluster, leader, follower):
    """A follower that was away gets a snapshot from a leader of the other version."""
    held = follower.status()["last"]
    follower.terminate()
    with leader.client() as client:
        for number in range(400):
            check(client.call("SET", f"away:{number}", "x" * 10000) == "OK", "no SET")
    cut = ask(leader, "LEASEHOLD", "SNAPSHOT")
    check(isinstance(cut, bytes), f"no snapshot: {cut!r}")
    behind = leader.status()["first"]
    check(behind > held + 1, f"{leader} still has entry {behind}, and {follower} ended at {held}: nothing was cut off")
    follower.start()
    wait_for(f"{follower} to answer", 20, follower.try_status)
    cluster.wait_caught_up(follower)
    check(follower.status()["first"] >= behind, f"{follower} got entries, and no snapshot")
    look(follower)


def lead(cluster, node):
    if cluster.wait_leader() is not node:
        ask(cluster.wait_leader(), "LEASEHOLD", "TRANSFER", str(node.id))
    check(cluster.wait_leader() is node, f"{node} does not lead")


def under_load(options, cluster, upgrades, rollbacks):
    for number in range(options.rounds):
        for node in cluster.nodes:
            led = node.status()["role"] == "leader"
            upgrades[0 if led else 1].append(run_as(cluster, node, options.binary, COMPARE))
            look(node)
        if number == 0:
            # All know more, and the group does not.
            time.sleep(2.5)
        for node in cluster.nodes:
            refuses_what_is_newer(node)
        for node in reversed(cluster.nodes):
            led = node.status()["role"] == "leader"
            rollbacks[0 if led else 1].append(run_as(cluster, node, options.old, []))
            look(node)


def fingerprints(folder):
    """Of each file, by its name."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            whole = os.path.join(path, name)
            with open(whole, "rb") as file:
                found[os.path.relpath(whole, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def raise_level(options, cluster):
    """The last upgrade: the group gets settings, and there is no way back."""
    for node in cluster.nodes:
        run_as(cluster, node, options.binary, COMPARE)
    leader = cluster.wait_leader()
    reply = ask(leader, "LEASEHOLD", "SETTINGS", "SET", "margin", "2ms")
    check(not isinstance(reply, resp.RespError), f"no settings: {reply!r}")
    wait_for("the level of all", 10, lambda: all(node.status()["feature_level"] == NEWEST for node in cluster.nodes))
    check(ask(leader, "LEASE.GRANT", "60000", "NAME", "a-name") is not None, "no lease with a name")
    reply = ask(leader, "SET", "named", "v", "LEASE", "a-name")
    check(reply == "OK", f"a lease by name was refused: {reply!r}")
    wait_for("a comparison", 20, lambda: all(node.status()["state"]["compares"] > 0 for node in cluster.nodes))
    for node in cluster.nodes:
        state = node.status()["state"]
        check(state["served"] and not state["warning"], f"{node}: {state}")
        look(node)


def refuses_the_directory(options, cluster, node):
    node.terminate()
    before = fingerprints(node.data_dir)
    node.binary, node.flags = options.old, list(cluster.flags)
    node.start()
    status = node.wait_exit(20)
    check(status != 0, "the old build took part in a group that it cannot read")
    said = node.log_text().splitlines()[-1]
    check("build" in said, f"the old build said: {said}")
    after = fingerprints(node.data_dir)
    # RocksDB writes these whenever it is opened, which release 0.1 did first. None holds a record.
    changed = sorted(name for name in before.keys() | after.keys()
                     if before.get(name) != after.get(name) and not OPENED.match(name))
    check(not changed, f"the old build changed {changed} in a directory that it refused")
    print(f"the old build refuses: {said}")
    node.binary, node.flags = options.binary, [*cluster.flags, *COMPARE]
    node.start()
    cluster.wait_caught_up(node)


def run(options):
    figures, upgrades, rollbacks = {}, ([], []), ([], [])
    # A short log, so that who was away needs a snapshot.
    with Cluster(options.old, flags=["--log-tail", "1M", "--log-cut", "1M"], keep=options.keep) as cluster:
        fill(cluster.start())
        with Load(options, cluster.nodes) as load:
            time.sleep(0.5)
            under_load(options, cluster, upgrades, rollbacks)
        requests = sorted(load.requests, key=lambda request: request.sent)
        print(f"{len(requests)} requests, {sum(r.kind == 'w' for r in requests)} of them writes")
        for name, part in (("upgrades of a leader", upgrades[0]), ("upgrades of a follower", upgrades[1]),
                           ("rollbacks of a leader", rollbacks[0]), ("rollbacks of a follower", rollbacks[1])):
            look_at(part, requests)
            tell(name, part, figures)
        judge_history(options, requests)
        first, second, _ = cluster.nodes
        run_as(cluster, first, options.binary, COMPARE)
        lead(cluster, first)
        # For longer than the interval of comparisons: the leader knows them, and its followers do not.
        time.sleep(3)
        cluster.wait_leader()
        for node in cluster.nodes:
            look(node)
        snapshot_to(cluster, first, second)
        lead(cluster, second)
        snapshot_to(cluster, second, first)
        print("snapshots pass in both directions")
        raise_level(options, cluster)
        refuses_the_directory(options, cluster, second)
    for name, found in figures.items():
        check(found["unknown"] == 0, f"{name}: {found['unknown']} writes of unknown outcome")


if __name__ == "__main__":
    main(__doc__, run, arguments)
