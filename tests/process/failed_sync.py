#!/usr/bin/env python3
"""A sync of the log fails, at the leader or at a follower, under load. The node stops with a message
that names the file, with status 1: nobody knows what the disk holds, so nothing may be tried again.
The others go on, and every acknowledged write is there, also after the node was started again."""

import asyncio
import errno
import os
import random
import re

import disk
from cluster import Cluster, built, check, main
from history import History, Ledger
from load import Load

WRITERS = 6
MIXERS = 6
REGISTERS = 4
PAUSE = 0.005
STOP_SECONDS = 10
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT)


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--shim", required=True, type=built, help="the disk_shim library")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


async def one_failure(cluster, shims, victim, source):
    said = len(victim.log_text())
    error = source.choice(ERRORS)
    shims[victim].fail_sync(source.randrange(1, 40), error)
    status = await in_thread(victim.wait_exit, STOP_SECONDS)
    check(shims[victim].get("failed") > 0, f"{victim} ended before the fault")
    check(status == 1, f"{victim} ended with status {status} after a failed sync")
    words = victim.log_text()[said:]
    file = re.search(r"cannot sync (\S+)", words)
    check(file and file.group(1).startswith(os.path.join(victim.data_dir, "log") + "/") and
          os.strerror(error) in words, f"the last words of {victim} do not say what failed: {words}")
    await in_thread(cluster.wait_leader, 20, cluster.others(victim))
    await asyncio.sleep(source.random() * 0.3)
    victim.start()
    await in_thread(cluster.wait_caught_up, victim)


async def all_failures(options, cluster, shims, ledger, history):
    source = random.Random(options.seed)
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, PAUSE)
    led = 0
    try:
        for number in range(options.rounds):
            leader = await in_thread(cluster.wait_leader)
            victim = leader if number % 2 == 0 else source.choice(cluster.others(leader))
            led += victim is leader
            await one_failure(cluster, shims, victim, source)
            load.check()
    finally:
        await load.stop()
    print(f"{options.rounds} failed syncs, {led} of them at a leader: each node stopped with status "
          f"1 and named the file; writes: {ledger.summary()}")


def run(options):
    print(f"--seed {options.seed}", flush=True)
    ledger, history = Ledger("ledger"), History()
    with Cluster(options.binary, keep=options.keep) as cluster:
        shims = {}
        for node in cluster.nodes:
            os.makedirs(node.data_dir)
            shims[node] = disk.Shim(options.shim, node)
            # What was not synced is gone when the node is: a kernel that could not write a page
            # may call it clean.
            shims[node].hold()
        cluster.start()
        asyncio.run(all_failures(options, cluster, shims, ledger, history))
        for node in cluster.nodes:
            cluster.wait_caught_up(node)
            count, _ = ledger.read_back(node)
            print(f"{node} returned all of {count} writes")
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    check(linearizable, "the history is not linearizable")


if __name__ == "__main__":
    main(__doc__, run, arguments)
