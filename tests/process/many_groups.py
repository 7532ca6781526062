#!/usr/bin/env python3
"""Nodes with many groups, which share the slots of the keys: their leaders are spread over the nodes, any node
serves any key, and commands that are about all keys are about those of all groups. After each end of a node
every group has a leader again, and nothing that was acknowledged is lost. A directory goes on with the number of
groups that it was made with only."""

import json
import os
import random
import subprocess
import time

import resp
from cluster import Background, Cluster, Node, check, free_port, main, wait_for
from history import Ledger
from resp import RespError

SECONDS = 40
CROSS_SLOT = RespError("CROSSSLOT Keys in request don't hash to the same slot")


def arguments(parser):
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--keys", type=int, default=600)
    parser.add_argument("--kills", type=int, default=3)


class Keys:
    """What was written, by one client at each node."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.values = {}

    def write(self, nodes, keys, value):
        clients = [node.client() for node in nodes]
        for key in keys:
            reply = random.choice(clients).call("SET", key, value)
            check(reply == "OK", f"SET {key}: {reply!r}")
            self.values[key] = value.encode()
        for client in clients:
            client.close()

    def read(self, nodes):
        for node in nodes:
            with node.client() as client:
                for key, value in self.values.items():
                    found = client.call("GET", key)
                    check(found == value, f"{node}: {key} is {found!r}, not {value!r}")


def ranges(node):
    """Of CLUSTER SLOTS: the first slot, the last one, and the port of the leader."""
    with node.client() as client:
        return [(first, last, master[1]) for first, last, master, *_ in client.call("CLUSTER", "SLOTS")]


def all_led(node, among, groups):
    """Every group has a leader that is one of `among`, as `node` sees it."""
    with node.client() as client:
        state = client.call("CLUSTER", "INFO").decode()
    found = ranges(node)
    ports = {other.port for other in among}
    return "cluster_state:ok" in state and len(found) == groups and all(port in ports for _, _, port in found)


def spread(cluster, groups):
    """The leaders are at all nodes; each has its share."""
    def even():
        led = [port for _, _, port in ranges(cluster.nodes[0])]
        shares = [led.count(node.port) for node in cluster.nodes]
        return shares if min(shares) >= groups // len(cluster.nodes) else None
    for node in cluster.nodes:
        wait_for(f"leaders of all groups, as {node} sees it", SECONDS,
                 lambda node=node: all_led(node, cluster.nodes, groups))
    shares = wait_for("leaders at all nodes", SECONDS, even, pause=0.1)
    print(f"of {groups} groups the nodes lead {shares}")


def layout(cluster, groups):
    found = sorted(ranges(cluster.nodes[1]))
    check(found[0][0] == 0 and found[-1][1] == 16383, f"{found}")
    for (_, last, _), (first, _, _) in zip(found, found[1:]):
        check(first == last + 1, f"{found}")
    check(len(found) == groups, f"{found}")


def commands(cluster, keys):
    node = cluster.nodes[2]
    with node.client() as client:
        check(client.call("DBSIZE") == len(keys.values), "DBSIZE")
        listed = client.call("KEYS", "*")
        check(sorted(listed) == sorted(key.encode() for key in keys.values), f"KEYS: {len(listed)}")
        seen, cursor = [], b"0"
        while True:
            cursor, some = client.call("SCAN", cursor, "COUNT", "50")
            seen += some
            if cursor == b"0":
                break
        check(sorted(seen) == sorted(listed), f"SCAN: {len(seen)} of {len(listed)}")
        check(client.call("MGET", "a", "b") == CROSS_SLOT, "MGET")
        check(client.call("MSET", "{t}1", "x", "{t}2", "y") == "OK", "MSET")
        check(client.call("MULTI") == "OK", "MULTI")
        check(client.call("INCR", "{t}n") == "QUEUED", "QUEUED")
        check(client.call("MGET", "{t}1", "{t}2") == "QUEUED", "QUEUED")
        check(client.call("EXEC") == [1, [b"x", b"y"]], "EXEC")
        check(client.call("DEL", "{t}1", "{t}2", "{t}n") == 3, "DEL")


def program(options, status, *words):
    done = subprocess.run([options.binary, *words], capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode == status, f"{words} ended with {done.returncode}: {done.stdout} {done.stderr}")
    return done.stdout + done.stderr


def status(options, servers, *words):
    """What `status` prints. It fails for the moment in which the leadership is transferred: asked once more then."""
    def led():
        done = subprocess.run([options.binary, "status", *servers, *words],
                              capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr if done.returncode == 0 else None
    return wait_for(f"a leader in status {words}", SECONDS, led, pause=0.1)


def programs(options, cluster):
    """Those that need leases, sessions or the state of a group find the right one."""
    servers = ["--servers", ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)]
    for name in ("{a}", "{b}", "{c}", "{d}"):
        program(options, 0, "lock", name, *servers, "--ttl", "4s", "--", "true")
        program(options, 0, "put", *servers, "--exactly-once", f"once:{name}", "1")
        check(program(options, 0, "get", *servers, f"once:{name}").strip() == "1", "get")
        program(options, 0, "del", *servers, f"once:{name}")
    for words in (("--", "true"), ("--wait", "1m", "--", "true"), ("--show",)):
        said = program(options, 2, "lock", "plain", *servers, "--ttl", "4s", *words)
        check("CROSSSLOT" in said and "Call it '{plain}'" in said, f"a lock without a tag: {said}")
    seen = {status(options, servers, "--group", str(group + 1), "--json") for group in range(options.groups)}
    check(len(seen) == options.groups, f"{len(seen)} different states of {options.groups} groups")
    said = status(options, servers)
    check(said.count(f"of {options.groups} groups") == len(cluster.nodes), said)
    said = program(options, 1, "status", *servers, "--group", str(options.groups + 1))
    check(f"no group {options.groups + 1}" in said, said)
    slots_shown(options, servers)


def slots_shown(options, servers):
    """What needs no move: where all slots are, and what is refused."""
    layout = json.loads(program(options, 0, "slots", *servers, "--json"))
    check(layout["slots"][0]["first"] == 0 and layout["slots"][-1]["last"] == 16383, f"{layout}")
    check([run["group"] for run in layout["slots"]] == list(range(1, options.groups + 1)), f"{layout}")
    check(layout["moves"] == [], f"{layout}")
    said = program(options, 0, "slots", "move", "0-9", "5", "--to", "1", "--wait", *servers)
    check("all of them are in group 1" in said, said)
    said = program(options, 4, "slots", "move", "0-9", "--to", str(options.groups + 1), *servers)
    check("there is no group" in said, said)
    check("none of them was being copied" in program(options, 0, "slots", "cancel", "0-16383", *servers), "cancel")


def backed_up(options, cluster, keys, flags):
    """A backup of all groups becomes new nodes, which have all keys."""
    copy = os.path.join(cluster.folder, "copy")
    servers = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
    said = program(options, 0, "backup", "--servers", servers, "--to", copy, "monday")
    check(said.count("backup complete") == options.groups and f"all {options.groups} groups" in said, said)
    check("every checksum is right" in program(options, 0, "restore", "--from", copy, "--check"), "restore --check")
    with Cluster(options.binary, flags=flags, keep=options.keep) as fresh:
        for node in fresh.nodes:
            words = ["restore", "--from", copy, "--id", str(node.id), "--data-dir", node.data_dir,
                     "--peers", fresh.peers]
            check(f"give --groups {options.groups}" in program(options, 1, *words), "without --groups")
            said = program(options, 0, *words, *flags)
            check(f"{options.groups} groups with {len(keys.values)} keys" in said, said)
            check("is not empty" in program(options, 1, *words, *flags), "a second restore")
        fresh.start()
        for node in fresh.nodes:
            wait_for("leaders of all groups", SECONDS, lambda node=node: has_leaders(node))
        keys.read(fresh.nodes)
        keys.write(fresh.nodes, ["fresh"], "1")
        del keys.values["fresh"]
    print(f"{len(keys.values)} keys of {options.groups} groups were backed up and restored", flush=True)


class Load:
    """Writes at some of the nodes, one after the other, all the while."""

    def __init__(self, nodes):
        self.ledger = Ledger("load")
        self._nodes = nodes
        self._client = None

    def step(self):
        number, key, value = self.ledger.next()
        reply = None
        try:
            self._client = self._client or random.choice(self._nodes).client()
            reply = self._client.call("SET", key, value)
        except (resp.ConnectionLost, resp.TimedOut):
            self._client = None
        self.ledger.record(number, reply)
        time.sleep(0.003)


def replaced(options, cluster, keys, flags):
    """A new node takes the place of one in all groups. The others know it at their next start, too."""
    address = f"127.0.0.1:{free_port()}"
    fresh = Node(options.binary, 4, os.path.join(cluster.folder, "node4"), None, free_port(),
                 os.path.join(cluster.folder, "node4.log"),
                 [*flags, "--join", cluster.peers, "--peer-listen", address])
    cluster.extra.append(fresh)
    fresh.start()
    wait_for("the new node to wait", SECONDS, lambda: (fresh.try_status() or {"joining": False})["joining"])
    gone, *stay = cluster.nodes
    servers = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
    words = ["member", "replace", str(gone.id), f"4={address}", "--servers", servers]
    load = Load(stay)
    with Background(load.step):
        said = program(options, 0, *words)
    check(said.count("is a voter in the place") == options.groups, said)
    check(len(load.ledger.acked) > 100, load.ledger.summary())
    check(gone.wait_exit(20) == 5, "the status of a node that was removed")
    said = program(options, 0, *words)
    check(f"{options.groups} of {options.groups} groups were so already" in said, said)
    keys.read([fresh])
    for node in (fresh, *stay):
        node.kill()
        node.start()
        for other in (fresh, *stay):
            wait_for("leaders of all groups", SECONDS, lambda other=other: has_leaders(other))
    keys.write([fresh, *stay], list(keys.values)[::5], "new")
    keys.read([fresh, *stay])
    # One that was down when the new one was added learns of it from the groups.
    for node in stay:
        node.kill()
        os.remove(os.path.join(node.data_dir, "HOSTS"))
        node.start()
        wait_for("leaders of all groups", SECONDS, lambda node=node: has_leaders(node))
    stay[0].kill()
    for node in (fresh, stay[1]):
        wait_for("leaders of all groups", SECONDS, lambda node=node: has_leaders(node))
    keys.write([fresh, stay[1]], list(keys.values)[::7], "of two")
    stay[0].start()
    wait_for("leaders of all groups", SECONDS, lambda: has_leaders(stay[0]))
    for node in (fresh, *stay):
        load.ledger.read_back(node)
    print(f"meanwhile {load.ledger.summary()}")
    print(f"node {gone.id} was replaced in {options.groups} groups", flush=True)


def has_leaders(node):
    with node.client() as client:
        return "cluster_state:ok" in client.call("CLUSTER", "INFO").decode()


def refused(cluster, node, flags, expected):
    """It does not start so."""
    before = node.flags
    node.flags = flags
    node.start()
    check(node.wait_exit(20) == 1, f"{node} started with {flags}")
    check(expected in node.log_text(), f"{node} did not say '{expected}'")
    node.flags = before


def run(options):
    groups = options.groups
    flags = ["--groups", str(groups)]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in cluster.nodes)
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
        cluster.start()
        spread(cluster, groups)
        layout(cluster, groups)
        keys = Keys(cluster)
        keys.write(cluster.nodes, [f"k{i}" for i in range(options.keys)], "1")
        keys.read(cluster.nodes)
        commands(cluster, keys)
        programs(options, cluster)
        backed_up(options, cluster, keys, flags)
        for kill in range(options.kills):
            node = random.choice(cluster.nodes)
            node.kill()
            others = cluster.others(node)
            for other in others:
                wait_for("leaders of all groups", SECONDS, lambda other=other: all_led(other, others, groups))
            keys.write(others, [f"k{i}" for i in range(kill, options.keys, 7)], f"of {kill}")
            keys.read(others)
            node.start()
            wait_for("the node to follow", SECONDS, lambda node=node: all_led(node, cluster.nodes, groups))
        spread(cluster, groups)
        keys.read(cluster.nodes)
        # All of them at once.
        for node in cluster.nodes:
            node.kill()
        cluster.start()
        for node in cluster.nodes:
            wait_for("leaders of all groups", SECONDS, lambda node=node: all_led(node, cluster.nodes, groups))
        keys.read(cluster.nodes)
        node = cluster.nodes[0]
        check(node.terminate() == 0, "status")
        check("leaderships transferred" in node.log_text(), "it did not say how it was drained")
        refused(cluster, node, [], "with many groups")
        refused(cluster, node, ["--groups", str(groups + 1)], "number of --groups")
        node.start()
        wait_for("the node to follow", SECONDS, lambda: all_led(node, cluster.nodes, groups))
        keys.read(cluster.nodes)
        replaced(options, cluster, keys, flags)
    print(f"{options.kills} nodes were killed, and all at once; {len(keys.values)} keys are as they were written")


if __name__ == "__main__":
    main(__doc__, run, arguments)
