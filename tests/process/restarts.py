#!/usr/bin/env python3
"""Restarts of all three nodes under load, each in a random order and at random instants: in good order, killed, killed
after their deputies or together with them. No acknowledged write is lost, and the history is linearizable. Each node
that runs has one deputy of below 2 MiB and a few descriptors; the deputies of processes that have ended are gone soon;
a node whose deputy is killed again and again keeps neither descriptors nor zombies."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import time

from cluster import Cluster, _is_zombie, built, check, main, wait_for
from history import History, Ledger
from load import Load

WRITERS = 6
MIXERS = 6
REGISTERS = 4
# Each node ends within this time of the beginning of a restart, and is away for as long at most.
SPAN = 0.4
WAYS = ("terminate", "kill", "kill behind its deputy", "kill with its deputy")
# A deputy speaks for a second, of which it may see the beginning late on a busy machine.
DEPUTY_GONE_SECONDS = 5
DEPUTY_KIB_MAX = 2048
DEPUTY_DESCRIPTORS_MAX = 6


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--restarts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--deputy-kills", type=int, default=4,
                        help="of one node, which pauses behind each, every time for twice as long")


def processes_of(program):
    """The numbers of the processes that run it."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and os.readlink(f"/proc/{entry}/exe").split(" (deleted)")[0] == program:
                found.append(int(entry))
    return found


def descriptors(process):
    return len(os.listdir(f"/proc/{process}/fd"))


def still_descriptors(process):
    """None: their number still changes."""
    before = descriptors(process)
    time.sleep(2.0)
    return before if descriptors(process) == before else None


def resident_kib(process):
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def zombies(process):
    children = []
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as file:
            children += file.read().split()
    return sum(_is_zombie(int(child)) for child in children)


def end(node, way):
    deputy = node.deputy()
    if way == "kill behind its deputy" and deputy is not None:
        os.kill(deputy, signal.SIGKILL)
    node.process.send_signal(signal.SIGTERM if way == "terminate" else signal.SIGKILL)
    if way == "kill with its deputy" and deputy is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(deputy, signal.SIGKILL)


async def restart(node, draw):
    await asyncio.sleep(draw.random() * SPAN)
    end(node, draw.choice(WAYS))
    await asyncio.sleep(draw.random() * SPAN)
    while node.running:
        await asyncio.sleep(0.002)
    node.kill()
    node.start()


def look_at_deputies(cluster, program):
    """Every node has one, and there is no other."""
    def alone():
        deputies = {node.deputy() for node in cluster.nodes}
        return None not in deputies and deputies == set(processes_of(program)) and deputies
    deputies = wait_for("one deputy for each node, and no other", DEPUTY_GONE_SECONDS, alone, pause=0.02)
    for deputy in deputies:
        check(resident_kib(deputy) <= DEPUTY_KIB_MAX, f"a deputy takes {resident_kib(deputy)} KiB")
        check(descriptors(deputy) <= DEPUTY_DESCRIPTORS_MAX, f"a deputy has {descriptors(deputy)} descriptors")
    return max(map(resident_kib, deputies))


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


async def restarts(options, cluster, ledger, history, program):
    draw = random.Random(options.seed)
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, 0.01)
    largest = 0
    for number in range(1, options.restarts + 1):
        await asyncio.gather(*(restart(node, draw) for node in cluster.nodes))
        leader = await in_thread(cluster.wait_leader, 30)
        largest = max(largest, await in_thread(look_at_deputies, cluster, program))
        load.check()
        if number % 10 == 0 or number == options.restarts:
            print(f"{number} restarts of all; {leader} leads; the largest deputy had {largest} KiB; writes: "
                  f"{ledger.summary()}", flush=True)
    await load.stop()


def kill_deputies(node, kills):
    """A node outlives its deputies, and keeps nothing of them."""
    before = wait_for("the connections of the restarted nodes", 60, lambda: still_descriptors(node.process.pid))
    for _ in range(kills):
        gone = wait_for("the next deputy", 60, node.deputy)
        os.kill(gone, signal.SIGKILL)
        wait_for("its end", 5, lambda: node.deputy() != gone)
    wait_for("the last deputy", 60, node.deputy)
    wait_for("no zombie", 5, lambda: zombies(node.process.pid) == 0)
    # Clients have gone meanwhile, and none has come. A peer may connect once more before it closes the old connection.
    wait_for(f"no more than the {before} descriptors before {kills} deputies", 15,
             lambda: descriptors(node.process.pid) <= before)


def run(options):
    ledger, history = Ledger("ledger"), History()
    with Cluster(options.binary, keep=options.keep) as cluster:
        # A file of its own shows whose deputies they are.
        program = os.path.join(cluster.folder, "leasehold-deputy")
        shutil.copy(os.path.join(os.path.dirname(options.binary), "leasehold-deputy"), program)
        for node in cluster.nodes:
            node.flags += ["--deputy", program]
        cluster.start()
        asyncio.run(restarts(options, cluster, ledger, history, program))
        kill_deputies(cluster.nodes[0], options.deputy_kills)
        for node in cluster.nodes:
            count, found = ledger.read_back(node)
            print(f"{node} returned all of {count} writes; {found} of the {len(ledger.unknown)} unknown ones were "
                  f"executed")
        for node in cluster.nodes:
            check(node.terminate() == 0, f"{node} did not end in good order")
        # The one of the last leader tells of its end, and nobody is left to answer.
        wait_for("the deputies to end behind their nodes", DEPUTY_GONE_SECONDS, lambda: not processes_of(program))
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    check(linearizable, "the history is not linearizable")


if __name__ == "__main__":
    main(__doc__, run, arguments)
