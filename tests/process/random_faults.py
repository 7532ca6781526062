#!/usr/bin/env python3
"""Random kills, ends and pauses of random nodes under load. At the end everything is healed: the
ledger has to be read back in full, and the history of the shared registers has to be
linearizable."""

import asyncio
import random

from cluster import Cluster, built, check, main
from history import History, Ledger
from load import Load

WRITERS = 6
MIXERS = 9
REGISTERS = 3
# A pause may be far shorter and far longer than lease and election timeout together.
PAUSES = (0.05, 0.3, 0.9, 1.1, 1.5, 3.0)
DOWN_TIMES = (0.0, 0.2, 1.0, 3.0)
QUIET_TIMES = (0.1, 0.5, 1.5, 2.5)


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


async def one_fault(node, source):
    """Does something to `node` and undoes it."""
    kind = source.choice(("kill", "kill", "terminate", "pause", "pause", "pause"))
    if kind == "pause":
        await in_thread(node.pause)
        await asyncio.sleep(source.choice(PAUSES))
        node.resume()
        return kind
    if kind == "kill":
        await in_thread(node.kill)
    else:
        status = await in_thread(node.terminate)
        check(status == 0, f"{node} ended with status {status} after SIGTERM")
    await asyncio.sleep(source.choice(DOWN_TIMES))
    node.start()
    return kind


def leader_or_any(cluster, source):
    """Half of the faults hit the leader, if there is one."""
    if source.random() < 0.5:
        for node in cluster.nodes:
            state = node.try_status()
            if state and state["role"] == "leader":
                return node
    return source.choice(cluster.nodes)


async def torment(options, cluster, ledger, history):
    source = random.Random(options.seed)
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, 0.005)
    end = asyncio.get_running_loop().time() + options.seconds
    faults = {}
    while asyncio.get_running_loop().time() < end:
        victims = {await in_thread(leader_or_any, cluster, source)}
        # Now and then two at once: then there is no quorum.
        if source.random() < 0.25:
            victims.add(source.choice(cluster.nodes))
        ordered = sorted(victims, key=lambda node: node.id)
        for kind in await asyncio.gather(*(one_fault(node, source) for node in ordered)):
            faults[kind] = faults.get(kind, 0) + 1
        await asyncio.sleep(source.choice(QUIET_TIMES))
        load.check()
    await in_thread(cluster.wait_leader, 30)
    await load.stop()
    return faults


def run(options):
    print(f"--seed {options.seed}", flush=True)
    ledger, history = Ledger("ledger"), History()
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        faults = asyncio.run(torment(options, cluster, ledger, history))
        term = cluster.wait_leader().status()["term"]
        print(f"faults: {faults}; the term is {term}; ledger: {ledger.summary()}", flush=True)
        for node in cluster.nodes:
            cluster.wait_caught_up(node)
            count, found = ledger.read_back(node)
            print(f"{node} returned all of {count} writes; {found} of the {len(ledger.unknown)} "
                  "unknown ones were executed")
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    check(linearizable, "the history is not linearizable")
    check(len(ledger.acked) > 0 and len(history) > 0, "nothing was done")


if __name__ == "__main__":
    main(__doc__, run, arguments)
