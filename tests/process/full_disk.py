#!/usr/bin/env python3
"""A disk is full under load: of a follower, of the leader, of all three. In turn it fills while the
nodes write, and at a stroke, by somebody else. A write that finds no space is refused at once and
was not executed; lease reads go on, nobody is elected, no node ends; space heals it, and every
acknowledged write is there.

Each node has a file system of its own, which a big file fills. Needs root."""

import asyncio
import json
import os
import statistics
import time

import disk
import resp
from cluster import PATIENT, Cluster, built, check, main
from history import History, Ledger
from load import Connection, Load, spread

WRITERS = 4
MIXERS = 4
REGISTERS = 4
PAUSE = 0.005
DISK_MEBIBYTES = 768
# Somewhat more than the log keeps free, and not enough for its next file; and nothing at all.
LEFT_MEBIBYTES = (70, 0)
# What uses the space up. Few keys: the store stays small, only the log grows.
PUSHED = b"x" * (64 << 10)
PUSHED_KEYS = 8
FULL_SECONDS = 60
HEAL_SECONDS = 10
# A refusal, and a lease read, wait for nothing.
QUICK = 0.3
READS = 300
STATUS_EVERY = 16
# What fills a disk is a writer too, and a leader whose disk is merely slow beside it gives up after
# an election timeout. That is for slow_disk.py.


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--rounds", type=int, default=4, help="of each kind")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a disk stays full")


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


class Space:
    """Takes the space of nodes away and gives it back."""

    def __init__(self, cluster):
        self._disks = {}
        for node in cluster.nodes:
            place = os.path.join(cluster.folder, f"disk{node.id}")
            self._disks[node] = disk.LoopDisk(place, DISK_MEBIBYTES)
            node.data_dir = os.path.join(place, "data")

    def take(self, node, left_mebibytes):
        """Until this much is left."""
        free = os.statvfs(self._disks[node].path)
        unwanted = free.f_bavail * free.f_frsize - (left_mebibytes << 20)
        with open(self._filler(node), "ab") as file:
            if unwanted > 0:
                os.posix_fallocate(file.fileno(), file.tell(), unwanted)

    def give_back(self, node):
        os.remove(self._filler(node))

    def off(self):
        for mounted in self._disks.values():
            mounted.unmount()

    def _filler(self, node):
        return os.path.join(self._disks[node].path, "filler")


async def status_of(connection):
    return json.loads(await connection.call("LEASEHOLD", "STATUS"))


async def use_up(space, leader, victims, push, slack):
    """Until each victim says that its disk is full; `push`: by writing much. Returns how long that
    took."""
    begun = time.monotonic()
    connections = [await Connection(node.port).open() for node in victims]
    writer = await Connection(leader.port).open()
    number = 0
    while True:
        if number % STATUS_EVERY == 0:
            told = [await status_of(connection) for connection in connections]
            if all(status["disk_full"] for status in told):
                break
            check(time.monotonic() - begun < FULL_SECONDS * slack, f"{victims} noticed nothing")
        number += 1
        if not push:
            number = 0
            await asyncio.sleep(PAUSE)
            continue
        reply = await writer.call("SET", f"push:{number % PUSHED_KEYS}", PUSHED)
        if reply != "OK":
            unknown = isinstance(reply, resp.RespError) and reply.unknown
            check(leader in victims and (is_refusal(reply, leader) or unknown and len(victims) > 1),
                  f"a write: {reply!r}")
            # Nothing is committed any more, so the other disks would not fill up by themselves.
            for node in victims:
                space.take(node, 0)
            number = 0
    for connection in [*connections, writer]:
        connection.close()
    return time.monotonic() - begun


def is_refusal(reply, node):
    return (isinstance(reply, resp.RespError) and
            reply.text.startswith(f"TRYAGAIN the disk of node {node.id} is full"))


async def timed(call):
    begun = time.monotonic()
    reply = await call
    return reply, time.monotonic() - begun


async def look_while_full(leader, victims, seconds, slack):
    """The times of refusals and of lease reads."""
    refusing = leader if leader in victims else victims[0]
    refusals, reads = [], []
    writer = await Connection(refusing.port).open()
    reader = await Connection(leader.port).open()
    before = (await status_of(reader))["reads"]
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(reads) < READS:
        reply, took = await timed(writer.call("SET", "refused", "never"))
        check(is_refusal(reply, refusing), f"a write at {refusing}, which is full: {reply!r}")
        refusals.append(took)
        if leader not in victims:
            reply, _ = await timed(reader.call("SET", "beside", "a full disk"))
            check(reply == "OK", f"a write at the leader, beside a full follower: {reply!r}")
        for _ in range(5):
            reply, took = await timed(reader.call("GET", "known"))
            check(reply == b"value", f"a lease read: {reply!r}")
            reads.append(took)
        await asyncio.sleep(PAUSE)
    after = (await status_of(reader))["reads"]
    by_lease = sum(after[name] - before[name] for name in ("lease_hits", "answered_lease"))
    check(by_lease >= len(reads), f"of {len(reads)} reads at the leader only {by_lease} were served "
                                  "by the lease")
    check(await reader.call("GET", "refused") is None, "a write that was refused was executed")
    for what, times in (("a refusal", refusals), ("a lease read", reads)):
        longest = max(times)
        check(longest < QUICK * slack, f"{what} took {longest:.3f} s beside a full disk")
    writer.close()
    reader.close()
    return refusals, reads


async def heal(refusing, slack):
    """Seconds until it takes a write again."""
    begun = time.monotonic()
    connection = await Connection(refusing.port).open()
    while await connection.call("SET", "healed", "yes") != "OK":
        check(time.monotonic() - begun < HEAL_SECONDS * slack, f"{refusing} has not healed")
        await asyncio.sleep(PAUSE)
    connection.close()
    return time.monotonic() - begun


async def one_round(options, cluster, space, kind, left, load):
    leader = await in_thread(cluster.wait_leader)
    term = leader.status()["term"]
    with leader.client() as client:
        check(client.call("SET", "known", "value") == "OK", "a write before the disk is full")
    victims = {"a follower": cluster.others(leader)[:1], "the leader": [leader],
               "all": cluster.nodes}[kind]
    for node in victims:
        space.take(node, left)
    took = await use_up(space, leader, victims, left > 0, options.slack)
    for node in victims:
        space.take(node, 0)  # or a cut of the log might heal it
    refusals, reads = await look_while_full(leader, victims, options.seconds, options.slack)
    load.check()
    for node in cluster.nodes:
        check(node.running, f"{node} has ended")
        status = node.status()
        check(status["disk_full"] == (node in victims), f"{node}: disk_full is wrong: {status}")
    for node in victims:
        space.give_back(node)
    healed = await heal(leader if leader in victims else victims[0], options.slack)
    for node in cluster.nodes:
        await in_thread(cluster.wait_caught_up, node)
    check(leader.status()["term"] == term, f"somebody was elected: the disk of {kind} was full")
    load.check()
    return took, healed, statistics.median(refusals), max(reads)


async def all_rounds(options, cluster, space, ledger, history):
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, PAUSE)
    try:
        for kind in ("a follower", "the leader", "all"):
            for left in LEFT_MEBIBYTES:
                rounds = [await one_round(options, cluster, space, kind, left, load)
                          for _ in range(options.rounds // 2)]
                took, healed, refusals, reads = map(list, zip(*rounds))
                print(f"full disk of {kind}, {len(rounds)} times, {left} MiB left at first: noticed "
                      f"after {spread(took)}; a refusal took {spread(refusals)}, a lease read at "
                      f"most {spread(reads)}; writes again after {spread(healed)}", flush=True)
    finally:
        await load.stop()


def run(options):
    check(options.rounds >= 2, "--rounds: 2 at least, for both ways to fill a disk")
    disk.enter_private_mounts()
    ledger, history = Ledger("ledger"), History()
    with Cluster(options.binary, flags=PATIENT, keep=options.keep) as cluster:
        space = Space(cluster)
        try:
            cluster.start()
            asyncio.run(all_rounds(options, cluster, space, ledger, history))
            for node in cluster.nodes:
                cluster.wait_caught_up(node)
                count, _ = ledger.read_back(node)
                print(f"{node} returned all of {count} writes")
            for node in cluster.nodes:
                check(node.terminate() == 0, f"{node} did not stop cleanly")
        finally:
            for node in cluster.nodes:
                node.kill()
            space.off()
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}; ledger: {ledger.summary()}")
    check(linearizable, "the history is not linearizable")
    check(ledger.not_executed, "no write of the load was refused: nothing was full")


if __name__ == "__main__":
    main(__doc__, run, arguments)
