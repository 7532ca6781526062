#!/usr/bin/env python3
"""Nodes of one group are started with wrong, different or unsafe flags: each is refused with the inequality and both
numbers, or follows the group's settings. What a leader shows of its lease is never more than the group's settings, and
its own clock, allow."""

import json
import os
import subprocess
import time

from cluster import Cluster, Node, check, free_port, main, wait_for
from settings import Program, longest_lease, settings_of

USAGE = 2
NOT_EXECUTED = 4
START_SECONDS = 10
LOOK_SECONDS = 0.4
# What `serve` proposes without flags.
DEFAULTS = {"lease": "1s", "heartbeat": "100ms", "max-clock-drift": "0.1", "max-round-trip": "50ms", "margin": "10ms",
            "election-timeout": "300ms"}

UNSAFE = "unsafe lease: D * (1 - rho) / (1 + rho) - sigma must be above zero, but is "
RENEWAL = "unavailable lease: heartbeat + max round trip + one retry = "
THIRD = "unavailable lease: the heartbeat of "
DRIFT = "it must be 0 to 500000 (0.5)"
HOUR = "at most one hour"

# Flags of a node, and what `serve` says before it ends.
REFUSED = [
    ("--margin 1s", [UNSAFE, "-181.818 ms", "lease D = 1000 ms", "margin sigma = 1000 ms"]),
    ("--margin 818182us", [UNSAFE, "lease D = 1000 ms", "margin sigma = 818.182 ms"]),
    ("--lease 10ms", [UNSAFE, "-1.818 ms", "lease D = 10 ms"]),
    ("--max-clock-drift 0.5 --margin 400ms", [UNSAFE, "drift rho = 500000 ppm", "margin sigma = 400 ms"]),
    ("--margin 800ms", [RENEWAL, "250 ms", "U = 18.181 ms"]),
    ("--lease 300ms", [RENEWAL, "250 ms", "U = 235.454 ms"]),
    ("--lease 50ms --heartbeat 5ms", [RENEWAL, "60 ms", "U = 30.909 ms"]),
    ("--max-round-trip 900ms", [RENEWAL, "1100 ms", "U = 808.181 ms"]),
    ("--heartbeat 900ms", [RENEWAL, "1850 ms", "U = 808.181 ms"]),
    ("--heartbeat 300ms", [THIRD, "300 ms", "808.181 ms"]),
    ("--max-clock-drift 0.5 --heartbeat 120ms", [THIRD, "120 ms", "323.333 ms"]),
    ("--max-clock-drift 0.51", ["max clock drift is 510000 ppm", DRIFT]),
    ("--lease 61m", ["lease is 3660000 ms", HOUR]),
    ("--lease 0s", ["lease is 0 ms", HOUR]),
    ("--election-timeout 0s", ["election timeout is 0 ms", HOUR]),
    ("--max-round-trip 0s", ["max round trip is 0 ms", HOUR]),
]

# Flags of nodes 1, 2 and 3 of a new group; what the group agrees on beside the defaults; and a node that could not
# renew a lease in time, and so does not lead.
FORMED = [
    (["", "--max-clock-drift 0 --margin 0ms", ""], {}, None),
    (["--lease 2s", "", "--lease 900ms"], {"lease": "2s"}, None),
    (["", "--lease 60m", "--lease 400ms --heartbeat 20ms"], {}, None),
    (["--heartbeat 50ms", "--heartbeat 200ms", "--heartbeat 10ms"], {"heartbeat": "50ms"}, None),
    (["--margin 100ms", "--margin 0ms", "--margin 1ms"], {"margin": "100ms"}, None),
    (["--max-clock-drift 0.2", "--max-clock-drift 0", "--max-clock-drift 0.01"], {"max-clock-drift": "0.2"}, None),
    (["--election-timeout 200ms", "--election-timeout 2s", ""], {"election-timeout": "200ms"}, None),
    (["--max-round-trip 20ms", "--max-round-trip 200ms", ""], {"max-round-trip": "20ms"}, None),
    (["--heartbeat 150ms", "--max-clock-drift 0.5", ""], {"heartbeat": "150ms"}, 2),
]

# Flags of a member that starts again in a group with the defaults.
RESTARTED = [
    "--max-clock-drift 0 --margin 0ms",
    "--max-clock-drift 0",
    "--margin 0ms",
    "--max-clock-drift 0.5",
    "--max-clock-drift 0.3 --margin 0ms",
    "--lease 10m",
    "--lease 200ms --heartbeat 10ms",
    "--lease 60m --margin 0ms --max-clock-drift 0 --heartbeat 1s",
    "--heartbeat 1ms",
    "--heartbeat 250ms",
    "--election-timeout 10ms",
    "--election-timeout 5s",
    "--max-round-trip 1ms",
    "--lease-reads off",
]

# The same of a node that joins it, and becomes a voter.
ADDED = [
    "--max-clock-drift 0 --margin 0ms",
    "--max-clock-drift 0.4",
    "--lease 30m --heartbeat 1s",
    "--lease 150ms --heartbeat 10ms --max-round-trip 5ms",
    "--election-timeout 20ms --max-clock-drift 0",
    "--lease-reads off --margin 0ms",
]

# Changes of the settings of a group with the defaults, and what the leader says.
CHANGES = [
    (["margin=1s"], [UNSAFE, "lease D = 1000 ms", "margin sigma = 1000 ms"]),
    (["lease=100ms"], [RENEWAL, "250 ms", "U = 71.818 ms"]),
    (["max-clock-drift=0.5", "heartbeat=110ms"], [THIRD, "110 ms", "323.333 ms"]),
    (["max-clock-drift=0.6"], [DRIFT]),
    (["lease=11s"], ["at most 10 times"]),
]


def arguments(parser):
    parser.add_argument("--full", action="store_true", help="the whole table; else some of each kind")


def milliseconds(word):
    """Of a duration of the settings."""
    for unit, factor in (("ns", 1e-6), ("us", 1e-3), ("ms", 1.0), ("m", 6e4), ("s", 1e3)):
        if word.endswith(unit):
            return float(word[:-len(unit)]) * factor
    raise ValueError(word)


def usable(settings, own_flags):
    """The most that a leader with these flags may show, in milliseconds."""
    own = own_flags.split()
    drift = float(settings["max-clock-drift"])
    if "--max-clock-drift" in own:
        drift = max(drift, float(own[own.index("--max-clock-drift") + 1]))
    return milliseconds(settings["lease"]) * (1 - drift) / (1 + drift) - milliseconds(settings["margin"])


def refused_at_the_start(binary, folder, flags, texts):
    port = free_port()
    command = [binary, "serve", "--id", "1", "--data-dir", os.path.join(folder, "never-made"), "--peers",
               f"1=127.0.0.1:{port}", "--listen", f"127.0.0.1:{free_port()}", *flags.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
    said = done.stdout + done.stderr
    check(done.returncode == USAGE, f"serve {flags}: status {done.returncode}: {said}")
    for text in texts:
        check(text in said, f"serve {flags}: says nothing of {text!r}: {said}")


def transfer(cluster, node, servers):
    done = subprocess.run([cluster.binary, "transfer", "--to", str(node.id), "--servers", servers], timeout=60,
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def follows(nodes, expected):
    """All nodes follow these settings."""
    for node in nodes:
        def same(node=node):
            shown = settings_of(node)
            return shown["agreed"] and all(shown[name] == value for name, value in expected.items())
        wait_for(f"{node} to follow {expected}", 10, same)


def leads_within_bounds(cluster, node, flags, expected, nodes):
    """`node` leads, shows a lease, and never more than the group's settings and its own clock allow."""
    servers = ",".join(f"127.0.0.1:{one.port}" for one in nodes)
    cluster.wait_leader(among=nodes)
    status, said = transfer(cluster, node, servers)
    check(status == 0, f"{node} with {flags!r} does not take over: {said}")
    leader = cluster.wait_leader(among=nodes)
    check(leader is node, f"{leader} leads, not {node}")
    bound = usable(expected, flags)
    longest = longest_lease(node, LOOK_SECONDS)
    check(bound * 0.5 < longest <= bound, f"{node} with {flags!r} shows {longest} ms of lease, and {bound} are allowed")
    with node.client(10) as client:
        check(client.call("SET", "k", flags or "none") == "OK", f"{node} takes no write")
        check(client.call("GET", "k") == (flags or "none").encode(), f"{node} answers no read")


def formed(options, row):
    flags, agreed, cannot_lead = row
    expected = {**DEFAULTS, **agreed}
    with Cluster(options.binary) as cluster:
        for node, own in zip(cluster.nodes, flags):
            node.flags += own.split()
        cluster.start()
        follows(cluster.nodes, expected)
        if cannot_lead is None:
            leads_within_bounds(cluster, cluster.node(2), flags[1], expected, cluster.nodes)
            return
        servers = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
        status, said = transfer(cluster, cluster.node(cannot_lead), servers)
        check(status != 0, f"a node that cannot renew a lease in time leads: {said}")
        check(cluster.wait_leader().id != cannot_lead, "a node that cannot renew a lease in time leads")


def restarted(cluster, flags):
    node = cluster.node(3)
    node.terminate()
    node.flags = flags.split()
    node.start()
    cluster.wait_caught_up(node)
    follows(cluster.nodes, DEFAULTS)
    leads_within_bounds(cluster, node, flags, DEFAULTS, cluster.nodes)


def added(cluster, number, flags):
    node_id = 10 + number
    address = f"127.0.0.1:{free_port()}"
    name = f"node{node_id}"
    join = ",".join(f"127.0.0.1:{node.peer_port}" for node in cluster.nodes)
    node = Node(cluster.binary, node_id, os.path.join(cluster.folder, name), None, free_port(),
                os.path.join(cluster.folder, name + ".log"), ["--join", join, "--peer-listen", address, *flags.split()])
    cluster.extra.append(node)
    nodes = [*cluster.nodes, node]
    servers = ",".join(f"127.0.0.1:{one.port}" for one in nodes)

    def member(*words):
        done = subprocess.run([cluster.binary, "member", *words, "--servers", servers], capture_output=True, text=True,
                              timeout=60, check=False)
        check(done.returncode == 0, f"member {words}: {done.stdout}{done.stderr}")

    node.start()
    member("add", f"{node_id}={address}")
    follows(nodes, DEFAULTS)
    leads_within_bounds(cluster, node, flags, DEFAULTS, nodes)
    member("remove", str(node_id))
    node.wait_exit(15)


def refused_changes(program, rows):
    before = program.shown()
    for words, texts in rows:
        said = program.settings("set", *words, status=NOT_EXECUTED)
        for text in texts:
            check(text in said, f"settings set {words}: says nothing of {text!r}: {said}")
    check(program.shown() == before, "a refused change has changed something")


def run(options):
    def some(rows, indices):
        return rows if options.full else [rows[at] for at in indices]

    begun = time.monotonic()
    count = 0
    with Cluster(options.binary) as cluster:
        for flags, texts in REFUSED:
            refused_at_the_start(options.binary, cluster.folder, flags, texts)
            count += 1
        cluster.start()
        changes = some(CHANGES, [0, 4])
        refused_changes(Program(cluster), changes)
        for flags in some(RESTARTED, [0, 3]):
            restarted(cluster, flags)
            count += 1
        for number, flags in enumerate(some(ADDED, [0])):
            added(cluster, number, flags)
            count += 1
        count += len(changes)
    for row in some(FORMED, [0, 8]):
        formed(options, row)
        count += 1
    table = len(REFUSED) + len(FORMED) + len(RESTARTED) + len(ADDED) + len(CHANGES)
    print(json.dumps({"combinations": count, "of": table, "seconds": round(time.monotonic() - begun, 1)}))


if __name__ == "__main__":
    main(__doc__, run, arguments)
