#!/usr/bin/env python3
"""A pool: five nodes, and groups that have replicas at three of them. Clients that follow -MOVED write and read while
a node is drained, also by a command that is killed on the way, and while the replicas come back: no acknowledged
write is lost, the history is linearizable, and in the end each node has its share. A node without a replica of a
group sends its clients to one that has one, also after a restart."""

import asyncio
import json
import random
import subprocess
import time

import resp
from cluster import Cluster, built, check, main, wait_for
from history import History, Ledger
from load import LOST, RETRY_PAUSE, Connection, Load
from slots import COUNT, slot_of

WRITERS = 6
MIXERS = 9
REGISTERS = 12
SECONDS = 60
# Redirections of one command: a node that has lost a replica knows who was there then.
HOPS_MAX = 5
# Of a command of this program.
COMMAND_SECONDS = 240


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--kills", type=int, default=3, help="of the command that drains")


class Following:
    """A connection to each node where it is needed; it goes where the nodes send it, and remembers that."""

    hops = 0
    longest = 0

    def __init__(self, nodes):
        self._ports = [node.port for node in nodes]
        self._connections = {}
        self._port_of = {}

    async def call(self, *words):
        slot = slot_of(words[1])
        port = self._port_of.get(slot) or random.choice(self._ports)
        for hop in range(HOPS_MAX + 1):
            try:
                reply = await (await self._to(port)).call(*words)
            except LOST:
                self._port_of.pop(slot, None)
                raise
            self._port_of[slot] = port
            if not isinstance(reply, resp.RespError):
                return reply
            if reply.word != "MOVED":
                self._port_of.pop(slot)
                return reply
            _, moved, address = reply.text.split()
            check(int(moved) == slot, f"{words[:2]} of slot {slot} was answered {reply!r}")
            port = int(address.rsplit(":", 1)[1])
            Following.hops += 1
            Following.longest = max(Following.longest, hop + 1)
        check(False, f"{words[:2]} was sent from node to node {HOPS_MAX} times")

    async def _to(self, port):
        if port not in self._connections:
            self._connections[port] = await Connection(port).open()
        return self._connections[port]

    def close(self):
        for connection in self._connections.values():
            connection.close()


class PoolLoad(Load):
    async def _client(self, number, operation):
        while not self._stopping:
            connection = Following(self._nodes)
            try:
                while not self._stopping:
                    await operation(number, connection)
                    await asyncio.sleep(self._pause)
            except LOST:
                await asyncio.sleep(RETRY_PAUSE)
            finally:
                connection.close()


class Everywhere:
    """What reads keys back, wherever they are: in the place of a node (Ledger.read_back())."""

    def __init__(self, nodes):
        self._clients = {node.port: node.client(timeout=20) for node in nodes}
        self._first = nodes[0].port

    def __repr__(self):
        return "all nodes"

    def client(self, timeout):
        del timeout
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self._clients.values():
            client.close()

    def call(self, *words):
        port = self._first
        for _ in range(HOPS_MAX + 1):
            reply = self._clients[port].call(*words)
            if not isinstance(reply, resp.RespError) or reply.word != "MOVED":
                return reply
            port = int(reply.text.rsplit(":", 1)[1])
        return reply

    def pipeline(self, commands):
        return [self.call(*words) for words in commands]


class Pool:
    """The nodes, and `leasehold pool` over them."""

    def __init__(self, options, cluster):
        self.options = options
        self.cluster = cluster

    def command(self, *words):
        servers = ",".join(f"127.0.0.1:{node.port}" for node in self.cluster.nodes)
        return [self.options.binary, "pool", *words, "--servers", servers]

    def call(self, *words, status=0):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=COMMAND_SECONDS,
                              check=False)
        said = done.stdout + done.stderr
        check(done.returncode == status, f"pool {words} ended with {done.returncode}: {said}")
        return done.stdout

    def groups(self):
        """Of each group the nodes of its voters; None while a group has no leader, or is being changed."""
        found = {}
        for group in json.loads(self.call("status", "--json"))["groups"]:
            if not group["leader"] or not group["settled"] or not all(m["voter"] for m in group["members"]):
                return None
            found[group["group"]] = sorted(member["node"] for member in group["members"])
        return found

    def settled(self):
        return wait_for("leaders of all groups", SECONDS, self.groups, pause=0.3)

    def check_shape(self, empty=None):
        """Three replicas of each group, none at `empty`, and the first group everywhere."""
        groups = self.settled()
        check(len(groups) == self.options.groups, f"{len(groups)} groups")
        check(groups.pop(1) == [node.id for node in self.cluster.nodes], "group 1 is at every node")
        for group, nodes in groups.items():
            check(len(nodes) == 3 and empty not in nodes, f"group {group} is at the nodes {nodes}")
        return groups

    def shares(self):
        groups = self.check_shape()
        return [sum(node.id in nodes for nodes in groups.values()) for node in self.cluster.nodes]


def layout_of(node):
    """Of each slot the ports of the nodes that serve it, as `node` says."""
    found = [None] * COUNT
    with node.client() as client:
        reply = client.call("CLUSTER", "SLOTS")
    for first, last, *servers in reply:
        for slot in range(first, last + 1):
            found[slot] = frozenset(server[1] for server in servers)
    return found


def same_layouts(cluster):
    """Every node names the members of every group."""
    layouts = [layout_of(node) for node in cluster.nodes]
    return None not in layouts[0] and all(layout == layouts[0] for layout in layouts)


def check_refusals(pool):
    """At a node without the group of a key."""
    groups = pool.settled()
    node = pool.cluster.nodes[0]
    layout = layout_of(node)
    away = next(slot for slot in range(COUNT) if node.port not in layout[slot])
    key = next(f"key:{number}" for number in range(10**7) if slot_of(f"key:{number}") == away)
    with node.client() as client:
        for words in (["GET", key], ["SET", key, "x"], ["CLUSTER", "COUNTKEYSINSLOT", str(away)]):
            reply = client.call(*words)
            check(isinstance(reply, resp.RespError) and reply.text.startswith(f"MOVED {away} 127.0.0.1:") and
                  int(reply.text.rsplit(":", 1)[1]) in layout[away], f"{words} was answered {reply!r}")
        check(client.call("MULTI") == "OK", "MULTI")
        check(client.call("INCR", key).word == "MOVED", "a transaction of another node")
        check(client.call("EXEC").word == "EXECABORT", "EXEC")
        group = next(group for group, nodes in groups.items() if node.id not in nodes)
        other = next(group for group, nodes in groups.items() if node.id in nodes)
        reply = client.call("LEASEHOLD", "SLOTS", "MOVE", "0", "TO", str(group))
        check(isinstance(reply, resp.RespError) and "has no replica of group" in reply.text, f"{reply!r}")
        check(client.call("LEASEHOLD", "GROUP", str(other)) == "OK", "LEASEHOLD GROUP")


def check_walks(pool, ledger):
    """A node lists the keys of the groups of which it has a replica; together they list all."""
    everything = set()
    for node in pool.cluster.nodes:
        with node.client() as client:
            keys = client.call("KEYS", "*")
            check(isinstance(keys, list), f"{node}: KEYS was answered {keys!r}")
            check(client.call("DBSIZE") == len(keys) == len(set(keys)), f"{node}: DBSIZE")
            scanned, cursor = set(), b"0"
            while not scanned or cursor != b"0":
                cursor, part = client.call("SCAN", cursor, "COUNT", "500")
                scanned |= set(part)
            check(scanned == set(keys), f"{node}: SCAN returned {len(scanned)} of {len(keys)} keys")
            everything |= set(keys)
    missing = [number for number in ledger.acked if ledger.words(number)[0].encode() not in everything]
    check(not missing, f"no node lists {len(missing)} keys")


async def drain(pool, node):
    """The command is killed a few times; what it has begun is finished by the next one."""
    for _ in range(pool.options.kills):
        command = subprocess.Popen(pool.command("drain", str(node.id)), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        await asyncio.sleep(random.uniform(0.1, 0.8))
        command.kill()
        command.wait()
    begun = time.monotonic()
    said = await asyncio.to_thread(pool.call, "drain", str(node.id))
    check(f"node {node.id} is empty" in said, said)
    steps = len(said.splitlines()) - 1
    print(f"{node} was drained: the last of {pool.options.kills + 1} commands made {steps} steps in "
          f"{time.monotonic() - begun:.1f} s", flush=True)


async def balance(pool, load):
    said = await asyncio.to_thread(pool.call, "balance")
    load.check()
    shares = await asyncio.to_thread(pool.shares)
    print(f"balanced in {len(said.splitlines()) - 1} steps: the nodes have {shares} replicas", flush=True)
    check(min(shares) >= max(shares) - 2, f"the nodes have {shares} replicas")


async def move_all(pool, ledger, history):
    cluster = pool.cluster
    load = PoolLoad(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, 0.005)
    node = cluster.nodes[4]
    await drain(pool, node)
    load.check()
    await asyncio.to_thread(pool.check_shape, node.id)
    check("nothing: the pool is as it should be" in await asyncio.to_thread(pool.call, "plan", "--draining", "5"),
          "a plan for a pool that is drained")
    other = cluster.nodes[3]
    other.kill()
    other.start()
    await asyncio.to_thread(wait_for, "the node to answer", SECONDS, other.try_status)
    await balance(pool, load)
    # Replicas come back to a node that has deleted others of the same groups, and has not been started again.
    await drain(pool, cluster.nodes[1])
    await balance(pool, load)
    await load.stop()


def run(options):
    ledger, history = Ledger("ledger"), History()
    flags = ["--groups", str(options.groups), "--replicas", "3"]
    with Cluster(options.binary, size=5, flags=flags, keep=options.keep) as cluster:
        addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in cluster.nodes)
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
        cluster.start(SECONDS)
        pool = Pool(options, cluster)
        print(f"at the beginning the nodes have {pool.shares()} replicas", flush=True)
        wait_for("all nodes to know all members", SECONDS, lambda: same_layouts(cluster), pause=0.3)
        check_refusals(pool)
        asyncio.run(move_all(pool, ledger, history))
        wait_for("all nodes to know all members", SECONDS,
                 lambda: pool.groups() and same_layouts(cluster), pause=0.3)
        check(len(ledger.acked) > 100, ledger.summary())
        check(Following.hops > 0, "no command was redirected")
        check_walks(pool, ledger)
        count, found = ledger.read_back(Everywhere(cluster.nodes))
        print(f"{count} writes are as they were answered, {found} of the {len(ledger.unknown)} unknown ones were "
              f"executed; {Following.hops} redirections, {Following.longest} of one command at most")
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    check(linearizable, "the history is not linearizable")


if __name__ == "__main__":
    main(__doc__, run, arguments)
