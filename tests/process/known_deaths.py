#!/usr/bin/env python3
"""Leaders whose end is known, or seems to be, under load. A leader is stopped past everything while its deputy is
killed: nobody leads before its lease is over, and it answers no stale read when it goes on. A leader is killed, and its
deputy is doubled, cut off, or late by seconds. A notice of an earlier life comes again, and a forged one: they move
nothing, and the forged ones are counted. The history of all is linearizable."""

import asyncio
import os
import shutil
import signal
import sys
import time

from cluster import Cluster, built, check, main, wait_for
from history import History, Ledger
from load import Load

DEPUTY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "odd_deputy.py")
WRITERS = 4
MIXERS = 8
REGISTERS = 3
LEASE, ELECTION_TIMEOUT = 1.0, 0.3
# A leader is found by what is known, far below the lease; or by time.
KNOWN = 0.4
BY_TIME = 1.1 * (LEASE + 4 * ELECTION_TIMEOUT)
# The promise of the last heartbeat may be this old when the leader ends or is stopped.
BEAT = 0.2
WATCHED = 1.0
LATE_NOTICE = 2.5


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--rounds", type=int, default=21)


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


class Story:
    def __init__(self, options, cluster):
        self.options = options
        self.cluster = cluster

    def folder(self, node):
        return node.data_dir + ".deputy"

    def prepare(self, node):
        """Gives it a deputy that obeys tell()."""
        os.makedirs(self.folder(node))
        program = os.path.join(self.folder(node), "deputy")
        with open(DEPUTY, encoding="utf-8") as source, open(program, "w", encoding="utf-8") as made:
            made.write(f"#!{sys.executable} -BS\n")
            shutil.copyfileobj(source, made)
        os.chmod(program, 0o755)
        node.flags += ["--deputy", program]
        self.tell(node, "on_time")

    def tell(self, node, mode):
        new = os.path.join(self.folder(node), "mode.new")
        with open(new, "w", encoding="ascii") as file:
            file.write(mode)
        os.rename(new, os.path.join(self.folder(node), "mode"))

    def next_leader(self, old, term):
        """How long until one of the others leads in a later term."""
        begun = time.monotonic()

        def leads():
            for node in self.cluster.others(old):
                status = node.try_status()
                if status and status["role"] == "leader" and status["term"] > term and status["lease_left"] > 0:
                    return status
            return None
        status = wait_for("the next leader", 20, leads, pause=0.003)
        return time.monotonic() - begun, status

    def unmoved(self, nodes, before):
        """The leader and the term stay, for a while."""
        end = time.monotonic() + WATCHED
        while time.monotonic() < end:
            for node in nodes:
                status = node.status()
                check((status["leader"], status["term"]) == (before["leader"], before["term"]),
                      f"{node} follows {status['leader']} in term {status['term']}, it was "
                      f"{before['leader']} in {before['term']}")
            time.sleep(0.02)

    def refused(self, leader):
        return [int(node.info()["end_notices_refused"]) for node in self.cluster.others(leader)]

    # Each begins with a leader that all follow.

    def stopped(self, leader, term, deputy_is_new):
        if deputy_is_new:
            old = leader.deputy()
            os.kill(old, signal.SIGKILL)
            wait_for("another deputy", 10, lambda: leader.deputy() not in (None, old))
            time.sleep(BEAT)  # it hears where to send
        leader.pause()
        if not deputy_is_new:
            os.kill(leader.deputy(), signal.SIGKILL)
        gap, _ = self.next_leader(leader, term)
        check(gap >= LEASE - BEAT, f"another led {gap:.3f} s after the leader was stopped")
        check(gap <= BY_TIME * self.options.slack, f"nobody led for {gap:.3f} s")
        leader.resume()
        return gap

    def stopped_without_deputy(self, leader, term):
        return self.stopped(leader, term, False)

    def stopped_with_new_deputy(self, leader, term):
        return self.stopped(leader, term, True)

    def killed(self, leader, term, mode, known):
        self.tell(leader, mode)
        leader.signal(signal.SIGKILL)
        gap, status = self.next_leader(leader, term)
        if known:
            check(gap <= KNOWN * self.options.slack, f"nobody led for {gap:.3f} s")
        else:
            check(gap >= LEASE - BEAT, f"another led after {gap:.3f} s, and nobody had told it anything")
            check(gap <= BY_TIME * self.options.slack, f"nobody led for {gap:.3f} s")
        if mode == "late":
            time.sleep(max(LATE_NOTICE - gap - WATCHED / 2, 0))
            self.unmoved(self.cluster.others(leader), status)
        leader.kill()
        self.tell(leader, "on_time")
        leader.start()
        return gap

    def doubled(self, leader, term):
        return self.killed(leader, term, "twice", True)

    def cut_off(self, leader, term):
        return self.killed(leader, term, "cut_off", False)

    def late(self, leader, term):
        return self.killed(leader, term, "late", False)

    def replayed(self, leader, term):
        """The next process of a leader leads, and its deputy tells of the end of the one before."""
        self.killed(leader, term, "on_time", True)
        self.cluster.wait_caught_up(leader)
        with self.cluster.wait_leader().client() as client:
            client.call("LEASEHOLD", "TRANSFER", str(leader.id))
        wait_for("it to lead again", 10, lambda: self.cluster.wait_leader() is leader)
        self.tell(leader, "replay")
        self.unmoved(self.cluster.nodes, leader.status())
        self.tell(leader, "on_time")
        return 0

    def forged(self, leader, term):
        before = self.refused(leader)
        self.tell(leader, "forge")
        self.unmoved(self.cluster.nodes, {"leader": leader.id, "term": term})
        self.tell(leader, "on_time")
        check(all(now > then for now, then in zip(self.refused(leader), before)), "forged notices were not counted")
        return 0


EVENTS = (Story.stopped_without_deputy, Story.doubled, Story.cut_off, Story.replayed, Story.late, Story.forged,
          Story.stopped_with_new_deputy)


async def rounds(options, cluster, ledger, history):
    story = Story(options, cluster)
    for node in cluster.nodes:
        story.prepare(node)
    await in_thread(cluster.start)
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, 0.01)
    for number in range(options.rounds):
        event = EVENTS[number % len(EVENTS)]
        leader = await in_thread(cluster.wait_leader)
        wait_for("its deputy", 10, lambda: leader.deputy() is not None)
        await asyncio.sleep(0.5)
        term = (await in_thread(leader.status))["term"]
        gap = await in_thread(event, story, leader, term)
        print(f"{number + 1}/{options.rounds} {event.__name__}: {leader} led; {gap * 1000:.0f} ms", flush=True)
        await in_thread(cluster.wait_caught_up, leader)
        load.check()
    await load.stop()
    # Nodes end with the thread that started them, and those threads end with this loop.
    for node in cluster.nodes:
        count, _ = await in_thread(ledger.read_back, node)
    print(f"every node returned all of {count} writes")


def run(options):
    ledger, history = Ledger("ledger"), History()
    flags = ["--lease", f"{LEASE:g}s", "--election-timeout", f"{ELECTION_TIMEOUT * 1000:g}ms"]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        asyncio.run(rounds(options, cluster, ledger, history))
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    check(linearizable, "the history is not linearizable")


if __name__ == "__main__":
    main(__doc__, run, arguments)
