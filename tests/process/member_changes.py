#!/usr/bin/env python3
"""Members come and go under light load: from three to five, then each of the first three is replaced
by a new node, then back to three, and round and round. Whoever is removed ends with status 5; a wiped
node is refused until it was removed and added again. At the end the ledger is read back from every
member, and the history of the shared registers has to be linearizable."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from cluster import Cluster, Node, built, check, free_port, main, wait_for
from history import History, Ledger
from load import Load

WRITERS = 3
MIXERS = 4
REGISTERS = 3
REMOVED_STATUS = 5
COMMAND_SECONDS = 120
WRITES_OF_A_WIPED_NODE = 30
SOON = 3.0


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.02, help="of each client")


class Members:
    """The nodes that were ever part of the group, and the program that changes who is."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.addresses = dict(p.split("=") for p in cluster.peers.split(","))
        self.live = list(cluster.nodes)

    def joiner(self, node_id, name=None):
        """A new node that is not started; it asks all who live now."""
        name = name or f"node{node_id}"
        address = f"127.0.0.1:{free_port()}"
        self.addresses[str(node_id)] = address
        join = ",".join(self.addresses[str(node.id)] for node in self.live)
        node = Node(self.cluster.binary, node_id, os.path.join(self.cluster.folder, name), None,
                    free_port(), os.path.join(self.cluster.folder, name + ".log"),
                    [*self.cluster.flags, "--join", join, "--peer-listen", address])
        self.cluster.extra.append(node)
        return node

    def address(self, node):
        return f"{node.id}={self.addresses[str(node.id)]}"

    def command(self, *words, status=0):
        servers = ",".join(f"127.0.0.1:{node.port}" for node in self.live if node.running)
        done = subprocess.run([self.cluster.binary, "member", *words, "--servers", servers],
                              capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
        check(done.returncode == status,
              f"member {' '.join(words)} ended with {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout + done.stderr

    def expect(self, *ids):
        """The list of the leader: exactly these, and all of them voters."""
        shown = json.loads(self.command("list", "--json"))
        found = [(member["id"], member["voter"]) for member in shown["members"]]
        check(found == [(node_id, True) for node_id in sorted(ids)], f"the members are {found}")
        check(shown["membership"]["committed"] and not shown["membership"]["joint"], f"{shown}")

    def ended(self, node):
        """A removed node: it says so, and ends with a status of its own."""
        status = node.wait_exit(20)
        check(status == REMOVED_STATUS, f"{node} was removed and ended with status {status}")
        check("was removed from the group" in node.log_text(), f"{node} does not say why it ended")
        self.live.remove(node)


def grow(members, first):
    """From three to five, both at once."""
    added = [members.joiner(first), members.joiner(first + 1)]
    for node in added:
        node.start()
        wait_for(f"{node} to wait", 20,
                 lambda node=node: f"member add {node.id}=" in node.log_text())
        check(node.status()["joining"], f"{node} does not say that it is joining")
    members.command("add", *(members.address(node) for node in added))
    members.live += added
    members.expect(*(node.id for node in members.live))


def replace_the_old(members, first):
    """Each of the first three goes, one after the other; the leader among them."""
    for number, old in enumerate(members.live[:3]):
        fresh = members.joiner(first + number)
        fresh.start()
        members.command("replace", str(old.id), members.address(fresh))
        members.live.append(fresh)
        members.ended(old)
    members.expect(*(node.id for node in members.live))


def shrink(members):
    """Back to three, in one change; the leader may be among those that go."""
    gone = members.live[:2]
    members.command("remove", *(str(node.id) for node in gone))
    for node in gone:
        members.ended(node)
    members.expect(*(node.id for node in members.live))


def wipe_one(members):
    """A member loses its directory."""
    lost = members.live[-1]
    lost.kill()
    shutil.rmtree(lost.data_dir)
    members.live.remove(lost)
    again = members.joiner(lost.id, f"wiped{lost.id}")
    again.start()
    wait_for(f"{again} to be refused", 20, lambda: "wiped or replaced" in again.log_text())
    check(again.running, f"{again} ended")
    members.command("remove", str(lost.id))
    members.command("add", members.address(again))
    members.live.append(again)
    members.expect(*(node.id for node in members.live))
    # Its commands are its own: it has the number of the one before, and its first incarnation.
    with again.client() as client:
        for number in range(WRITES_OF_A_WIPED_NODE):
            began = time.monotonic()
            wait_for(f"a write at {again}", 10, lambda n=number: client.call("SET", f"wiped:{n}", "x") == "OK")
            check(time.monotonic() - began < SOON, f"{again} took {time.monotonic() - began:.1f} s for a write")


# A node ends with the thread that started it (cluster.py), so this one outlives the event loop.
WORKER = ThreadPoolExecutor(max_workers=1)


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(WORKER, function, *args)


async def change(options, members, ledger, history):
    load = Load(members.live, ledger, history, WRITERS, MIXERS, REGISTERS, options.pause)
    next_id = 4
    for number in range(options.rounds):
        for step in ((grow, next_id), (replace_the_old, next_id + 2), (shrink,), (wipe_one,)):
            await in_thread(step[0], members, *step[1:])
            load.check()
        next_id += 5
        print(f"round {number + 1}: members {sorted(node.id for node in members.live)}, ledger: "
              f"{ledger.summary()}", flush=True)
    await load.stop()


def run(options):
    ledger, history = Ledger("ledger"), History()
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        members = Members(cluster)
        asyncio.run(change(options, members, ledger, history))
        cluster.wait_leader(among=members.live)
        # None of those that formed the group is left; each log knows the members by itself.
        for node in members.live:
            check(node.terminate() == 0, f"{node} did not end cleanly")
        for node in members.live:
            node.flags = [*cluster.flags]
            node.start()
        leader = cluster.wait_leader(among=members.live)
        commit = leader.status()["commit"]
        for node in members.live:
            wait_for(f"{node} to catch up", 30,
                     lambda node=node: node.status()["applied"] >= commit)
            count, found = ledger.read_back(node)
            print(f"{node} returned all of {count} writes; {found} of the {len(ledger.unknown)} "
                  "unknown ones were executed")
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    check(linearizable, "the history is not linearizable")
    check(len(ledger.acked) > 0 and len(history) > 0, "nothing was done")


if __name__ == "__main__":
    main(__doc__, run, arguments)
