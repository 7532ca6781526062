#!/usr/bin/env python3
"""Power cuts under load: of one node (half of the time the leader), and now and then of all at
once. After each cut the node's own log must hold all that it had called durable; at the end every
acknowledged write is there, and the history of the shared registers is linearizable.

With --groups N the nodes have many groups, whose entries lie in one log: it is examined group by group.

--way shim: the unsynced writes of the log are kept from its files by disk_shim.cc, and torn.
--way ext4: a file system per node that is shut down, and mounted again. Needs root.

--without-sync is the control: syncs do nothing, so the test has to find that something is lost."""

import asyncio
import json
import os
import random

import disk
import resp
from cluster import Cluster, Failed, built, check, main, wait_for
from history import History, Ledger
from load import Load

WRITERS = 6
MIXERS = 6
REGISTERS = 4
PAUSE = 0.005
DISK_MEBIBYTES = 1024
# How long the load runs between two cuts: from "in the midst of the catching up" to "at rest".
QUIET_TIMES = (0.05, 0.3, 0.8)


class Lost(Failed):
    """A node forgot what it had called durable, or the group what it had acknowledged."""


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--log-dump", required=True, type=built, help="the log_dump program")
    parser.add_argument("--shim", required=True, type=built, help="the disk_shim library")
    parser.add_argument("--way", choices=("shim", "ext4"), default="shim")
    parser.add_argument("--cuts", type=int, default=100, help="of one node")
    parser.add_argument("--cuts-of-all", type=int, default=20)
    parser.add_argument("--groups", type=int, default=1, help="that share the slots of the keys")
    parser.add_argument("--without-sync", action="store_true",
                        help="the control: once a leader leads, syncs do nothing; has to lose")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


def statuses(node, groups):
    """What the node says of each of its groups, by number; empty while it does not answer."""
    found = {}
    try:
        with node.client(2.0) as client:
            for group in range(1, groups + 1):
                if groups > 1:
                    client.call("LEASEHOLD", "GROUP", group)
                reply = client.call("LEASEHOLD", "STATUS")
                check(isinstance(reply, bytes), f"{node}: LEASEHOLD STATUS answered {reply!r}")
                found[group] = json.loads(reply)
    except (resp.ConnectionLost, resp.TimedOut):
        return found
    return found


class Power:
    """Switches nodes off and on."""

    def __init__(self, options, cluster):
        self._log_dump = options.log_dump
        self._groups = options.groups
        self._disks = {}
        self.shims = {}
        for node in cluster.nodes:
            if options.way == "ext4":
                place = os.path.join(cluster.folder, f"disk{node.id}")
                self._disks[node] = disk.LoopDisk(place, DISK_MEBIBYTES)
                node.data_dir = os.path.join(place, "data")
            if options.way == "shim" or options.without_sync:
                os.makedirs(node.data_dir, exist_ok=True)
                shim = disk.Shim(options.shim, node)
                if options.way == "shim":
                    shim.hold()
                self.shims[node] = shim

    def skip_syncs(self):
        for shim in self.shims.values():
            shim.set(skip_syncs=1)

    def cut(self, nodes):
        """Returns what each had said of its groups a moment before."""
        before = {node: statuses(node, self._groups) if node.running else {} for node in nodes}
        for node in nodes:
            node.process.kill()
        for node in nodes:
            node.kill()
        for node in nodes:
            if node in self._disks:
                self._disks[node].cut()
                self._disks[node].mount()
        return before

    def examine(self, node, before):
        """Its log, before anybody can help it."""
        if self._log_dump is None:
            return
        try:
            facts = disk.log_facts(self._log_dump, node, self._groups)
        except (Failed, OSError) as error:
            raise Lost(str(error)) from error
        for group, status in before.items():
            if status["formed"]:
                self._compare(f"{node}, group {group}", status, facts.get(group, {"last": 0, "term": 0}))

    @staticmethod
    def _compare(who, status, facts):
        # What is not committed may have been replaced meanwhile.
        durable = min(status["durable"], status["commit"])
        last, term = int(facts["last"]), int(facts["term"])
        if last < durable:
            raise Lost(f"{who}: the log ends at {last}, {durable} was durable")
        # The term that a node reports may not be durable yet; a leader has voted for itself.
        if status["role"] == "leader" and term < status["term"]:
            raise Lost(f"{who}: the term is {term}, and was {status['term']}")

    def off(self):
        for mounted in self._disks.values():
            mounted.unmount()


def leader_or_any(cluster, source):
    for node in cluster.nodes if source.random() < 0.5 else ():
        state = node.try_status()
        if state and state["role"] == "leader":
            return node
    return source.choice(cluster.nodes)


def wait_all_led(cluster, groups):
    cluster.wait_leader()
    for node in cluster.nodes if groups > 1 else ():
        wait_for(f"leaders of all groups, as {node} knows", 20,
                 lambda node=node: all(status["leader"] for status in statuses(node, groups).values()))


async def one_cut(cluster, power, nodes, groups):
    before = await in_thread(power.cut, nodes)
    for node in nodes:
        await in_thread(power.examine, node, before[node])
    for node in nodes:
        node.start()  # on this thread: a process ends with the thread that started it
    for node in nodes:
        await in_thread(wait_for, f"{node} to answer", 20, node.try_status)
    await in_thread(wait_all_led, cluster, groups)


async def all_cuts(options, cluster, power, ledger, history):
    source = random.Random(options.seed)
    plan = [1] * options.cuts + [len(cluster.nodes)] * options.cuts_of_all
    source.shuffle(plan)
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, PAUSE)
    try:
        for number, count in enumerate(plan, 1):
            await asyncio.sleep(source.choice(QUIET_TIMES))
            load.check()
            nodes = ([leader_or_any(cluster, source)] if count == 1 else cluster.nodes)
            await one_cut(cluster, power, nodes, options.groups)
            if number % 10 == 0 or number == len(plan):
                print(f"{number} of {len(plan)} cuts; writes: {ledger.summary()}", flush=True)
    finally:
        await load.stop()


def cut_and_read_back(options, cluster, power, ledger, history):
    cluster.start()
    if options.without_sync:
        power.skip_syncs()
    asyncio.run(all_cuts(options, cluster, power, ledger, history))
    for node in cluster.nodes:
        cluster.wait_caught_up(node)
        try:
            count, found = ledger.read_back(node)
        except Failed as error:
            raise Lost(str(error)) from error
        print(f"{node} returned all of {count} writes; {found} of the {len(ledger.unknown)} "
              "unknown ones were executed")
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    if not linearizable:
        raise Lost("the history is not linearizable")
    check(len(ledger.acked) > 10 * (options.cuts + options.cuts_of_all), "too few writes")


def run(options):
    print(f"--seed {options.seed}", flush=True)
    if options.way == "ext4":
        disk.enter_private_mounts()
    ledger, history = Ledger("ledger"), History()
    flags = ["--groups", str(options.groups)] if options.groups > 1 else []
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        power = Power(options, cluster)
        try:
            cut_and_read_back(options, cluster, power, ledger, history)
        except Lost as lost:
            if not options.without_sync:
                raise
            print(f"as it has to be without syncs: {lost}")
        else:
            check(not options.without_sync, "without syncs nothing was lost: this test is blind")
        finally:
            for node in cluster.nodes:
                node.kill()
            power.off()


if __name__ == "__main__":
    main(__doc__, run, arguments)
