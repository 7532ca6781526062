#!/usr/bin/env python3
"""A leader is stopped past its lease, a new one overwrites keys, and only then do reads of these
keys arrive in the sockets of the stopped one. When it goes on, it finds them unread: none may be
answered with what was overwritten.

With --shim it is the leader's machine that is stopped, as a host stops a virtual machine: its clocks
do not see how long they stood still, and what tells it is the marker of the VM clock. The node has to
be back as a new incarnation. Without it (--no-marker) the lease of the stopped leader outlives its
promises, and stale answers are expected.

With --expect-stale the verdict is turned around, and the first stale answer ends the test: for a build
without the lease check, on which it has to fail without this flag."""

import os
import time

from cluster import Cluster, Failed, built, check, main, wait_for
from history import History
from machine_clock import Clock, VmClock

import resp

KEYS = 120
SOCKETS = 4
# For its first 16 commands a connection is with the thread that gives way to all others: to the one
# too that would read that there is a new leader.
PROVING_COMMANDS = 40
# For the checker's explanations only.
SETUP, STOPPED, WRITER, OTHER = 0, 1, 2, 3


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--expect-stale", action="store_true")
    parser.add_argument("--shim", type=built, help="the clock_shim library: stop machines, not processes")
    parser.add_argument("--no-marker", action="store_true", help="nothing tells a node of the stop")


class Machine:
    """The virtual machine of one node: what its clocks have lost, and the page of its VM clock."""

    def __init__(self, node, shim, folder, told):
        self.clock = Clock(shim, node)
        self.vm_clock = VmClock(os.path.join(folder, f"vmclock{node.id}"))
        node.flags += ["--vm-clock", self.vm_clock.path if told else "off"]
        self.stopped_at = None

    def stopped(self):
        self.stopped_at = time.monotonic()

    def goes_on(self):
        self.clock.lost(time.monotonic() - self.stopped_at)
        self.vm_clock.disrupted()


def overwrite(history, node, client, keys):
    """A new value under every key, each acknowledged."""
    values = {}
    with node.client() as connection:
        for key in keys:
            values[key] = history.new_value()
            invoked = history.now()
            reply = connection.call("SET", key, values[key])
            history.wrote(client, key, values[key], invoked, reply)
            check(reply == "OK", f"SET at {node} was answered {reply!r}")
    return values


def open_sockets(leader):
    """Connections that the leader's threads for proven clients have: each has answered."""
    clients = [leader.client(timeout=15) for _ in range(SOCKETS)]
    for client in clients:
        for _ in range(PROVING_COMMANDS):
            check(client.call("PING") == "PONG", "no PONG")
    return clients


def write_gets(history, clients, keys):
    """All in one go. Returns who asked what when."""
    asked = []
    for number, client in enumerate(clients):
        part = keys[number::len(clients)]
        invoked = history.now()
        client.send_raw(b"".join(resp.encode("GET", key) for key in part))
        asked += [(client, key, invoked) for key in part]
    return asked


def read_unread(client):
    """The answer; None: the node closed the connection without one."""
    try:
        return client.read_reply()
    except resp.ConnectionLost:
        return None


def one_round(history, cluster, machines, number):
    leader = cluster.wait_leader()
    others = cluster.others(leader)
    keys = [f"stopped:{number}:{i}" for i in range(KEYS)]
    overwrite(history, leader, SETUP, keys)
    clients = open_sockets(leader)
    before = leader.status()
    leader.pause()
    machine = machines.get(leader)
    if machine:
        machine.stopped()
    try:
        successor = cluster.wait_leader(among=others)
        check(successor.status()["term"] > before["term"], "the term did not rise")
        fresh = overwrite(history, successor, WRITER, keys)
        asked = write_gets(history, clients, keys)
    finally:
        if machine:
            machine.goes_on()
        leader.resume()
    answered = refused = stale = 0
    for client, key, invoked in asked:
        reply = read_unread(client)
        if reply is not None:
            history.read(STOPPED, key, reply, invoked)
        if reply is None or isinstance(reply, resp.RespError):
            refused += 1
        else:
            answered += 1
            stale += reply != str(fresh[key]).encode()
    for client in clients:
        client.close()
    with successor.client() as connection:
        for key in keys:
            invoked = history.now()
            history.read(OTHER, key, connection.call("GET", key), invoked)
    print(f"round {number}: {leader} stopped, {successor} took over; of {len(asked)} unread GETs "
          f"{answered} were answered, {stale} of them stale, {refused} refused", flush=True)
    wait_for(f"{leader} to follow", 20, lambda: cluster.wait_leader() is not None)
    return len(asked), stale, leader, before


def check_new_incarnation(node, before):
    """The process went on, and is another start of the node."""
    after = wait_for(f"{node} to be back", 20, node.try_status)
    check(after["uuid"] == before["uuid"] and after["incarnation"] > before["incarnation"],
          f"{node} did not begin anew: it was {before['uuid']} {before['incarnation']}, and is "
          f"{after['uuid']} {after['incarnation']}")
    check("starting again, as a new incarnation" in node.log_text(), f"{node} does not say why")


def run(options):
    history = History()
    asked = stale = number = 0
    with Cluster(options.binary, keep=options.keep) as cluster:
        told = not options.no_marker
        machines = {node: Machine(node, options.shim, cluster.folder, told)
                    for node in cluster.nodes if options.shim}
        cluster.start()
        for number in range(1, options.rounds + 1):
            round_asked, round_stale, leader, before = one_round(history, cluster, machines, number)
            if machines and told:
                check_new_incarnation(leader, before)
            asked += round_asked
            stale += round_stale
            if stale and options.expect_stale:
                break  # one is enough: this test can see them
    linearizable, verdict = history.judge(options.checker)
    print(f"{number} rounds, {asked} unread GETs, {stale} stale answers; the history: "
          f"{verdict}")
    if not options.expect_stale:
        check(stale == 0 and linearizable, "a stopped leader served what was overwritten")
    elif stale == 0:
        raise Failed("not one stale answer: this test cannot see what it is there to see")
    else:
        check(not linearizable, "the checker passed a history with stale answers")


if __name__ == "__main__":
    main(__doc__, run, arguments)
