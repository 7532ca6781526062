#!/usr/bin/env python3
"""The disk of one node stands still for a second and for ten, under load. A leader gives up after an
election timeout, another leads when the promises have ended, no read is stale, and the node comes
back. A follower's disk does not disturb the group."""

import asyncio
import json
import os
import time

import disk
from cluster import Cluster, Failed, built, check, main
from history import History, Ledger
from load import Connection, Load, spread

WRITERS = 6
MIXERS = 6
REGISTERS = 4
PAUSE = 0.005
LOOK_PAUSE = 0.005
LEASE = 1.0
# Above what the disk below takes for a sync while other tests use it: that would end a term, too.
ELECTION_TIMEOUT = 0.6
# What looking at it, and a busy machine, may add.
TOLERANCE = 0.3
# A follower's stalled disk must not be felt by a client of the leader: far less than any timeout.
WRITE_MAX = ELECTION_TIMEOUT


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--shim", required=True, type=built, help="the disk_shim library")
    parser.add_argument("--rounds", type=int, default=10, help="of each kind with one second")
    parser.add_argument("--long-rounds", type=int, default=3, help="of each kind with ten seconds")


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


async def watch(node, condition, seconds, what):
    """Seconds until its status fulfils the condition."""
    begun = time.monotonic()
    connection = await Connection(node.port).open()
    try:
        while True:
            status = json.loads(await connection.call("LEASEHOLD", "STATUS"))
            if condition(status):
                return time.monotonic() - begun
            check(time.monotonic() - begun < seconds, f"{node}: after {seconds} s not yet {what}")
            await asyncio.sleep(LOOK_PAUSE)
    finally:
        connection.close()


async def begin_stall(shim, node, seconds):
    """Returns once a sync of entries stands still."""
    while True:
        before = shim.get("stalled")
        shim.stall(seconds)
        deadline = time.monotonic() + 10
        while shim.get("stalled") == before:
            check(time.monotonic() < deadline, "nothing was synced")
            await asyncio.sleep(0.001)
        durable = node.status()["durable"]
        await asyncio.sleep(LOOK_PAUSE * 20)
        if node.status()["durable"] == durable:
            return
        # The sync was of a file that the log makes ahead: entries go on beside it.
        await asyncio.sleep(seconds)


async def leader_stalls(cluster, shims, seconds, slack):
    """(until it gave up, until there was a leader again)"""
    leader = await in_thread(cluster.wait_leader)
    term = leader.status()["term"]
    survivors = cluster.others(leader)
    await begin_stall(shims[leader], leader, seconds)
    limit = ELECTION_TIMEOUT + LEASE + 2 * ELECTION_TIMEOUT + TOLERANCE
    gave_up, *led = await asyncio.gather(
        watch(leader, lambda s: s["role"] != "leader" or s["term"] > term,
              ELECTION_TIMEOUT + TOLERANCE * slack, "given up"),
        *(watch(node, lambda s: s["term"] > term and s["leader"] != 0,
                limit * slack, "led by another") for node in survivors))
    check(leader.running, f"{leader} has ended")
    # It returns when its disk does.
    await in_thread(cluster.wait_leader, 20 + seconds)
    await in_thread(cluster.wait_caught_up, leader)
    return gave_up, max(led)


async def follower_stalls(cluster, shims, seconds, slack):
    """The longest write at the leader meanwhile."""
    leader = await in_thread(cluster.wait_leader)
    before = leader.status()
    follower = cluster.others(leader)[0]
    connection = await Connection(leader.port).open()
    await begin_stall(shims[follower], follower, seconds)
    longest = 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        check(await connection.call("SET", "beside", "a stall") == "OK", "a write was refused")
        longest = max(longest, time.monotonic() - begun)
    connection.close()
    after = leader.status()
    check(after["role"] == "leader" and after["term"] == before["term"],
          "a follower's slow disk ended the leader's term")
    check(longest < WRITE_MAX * slack, f"beside a follower's stall a write took {longest:.3f} s")
    await in_thread(cluster.wait_caught_up, follower)
    check(leader.status()["term"] == before["term"], "the leader changed when the disk returned")
    return longest


async def all_stalls(options, cluster, shims, ledger, history):
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, PAUSE)
    try:
        for seconds, rounds in ((1, options.rounds), (10, options.long_rounds)):
            gave_up, led, longest = [], [], []
            for _ in range(rounds):
                times = await leader_stalls(cluster, shims, seconds, options.slack)
                gave_up.append(times[0])
                led.append(times[1])
                load.check()
                longest.append(await follower_stalls(cluster, shims, seconds, options.slack))
                load.check()
            if rounds:
                print(f"{seconds} s at the leader, {rounds} times: it gave up after: "
                      f"{spread(gave_up)}; all others were led again after: {spread(led)}")
                print(f"{seconds} s at a follower: the longest write at the leader: "
                      f"{spread(longest)}", flush=True)
    finally:
        await load.stop()


def run(options):
    ledger, history = Ledger("ledger"), History()
    flags = ["--election-timeout", f"{ELECTION_TIMEOUT * 1000:.0f}ms"]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        shims = {}
        for node in cluster.nodes:
            os.makedirs(node.data_dir)
            shims[node] = disk.Shim(options.shim, node)
        cluster.start()
        asyncio.run(all_stalls(options, cluster, shims, ledger, history))
        for node in cluster.nodes:
            cluster.wait_caught_up(node)
            count, _ = ledger.read_back(node)
            print(f"{node} returned all of {count} writes")
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}; ledger: {ledger.summary()}")
    if not linearizable:
        raise Failed("the history is not linearizable")


if __name__ == "__main__":
    main(__doc__, run, arguments)
