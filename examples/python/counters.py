#!/usr/bin/env python3
"""Three nodes of named counters in one process, over TCP on loopback, with their logs on disk. A real program runs one
node per machine.

    LEASEHOLD_LIBRARY=.../libleasehold.so.0 ./counters.py [PORT]"""

import contextlib
import sys
import tempfile
import threading

import leasehold


class Counters:
    """A command is "NAME AMOUNT", its result the new total. The same commands give the same results at every node."""

    def __init__(self):
        self.lock = threading.Lock()
        self.totals = {}

    def apply(self, command):
        try:
            name, amount = command.decode().split()
            amount = int(amount)
        except ValueError:
            return b"error: say NAME AMOUNT"
        with self.lock:
            self.totals[name] = self.totals.get(name, 0) + amount
            return str(self.totals[name]).encode()

    def total(self, name):
        with self.lock:
            return self.totals.get(name, 0)


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 7480  # and the two behind it
    peers = {number: f"127.0.0.1:{port + number - 1}" for number in (1, 2, 3)}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as open_nodes:
        machines = [Counters() for _ in peers]
        nodes = [open_nodes.enter_context(leasehold.Node(machines[number - 1], id=number, peers=peers,
                                                         data_dir=f"{folder}/node{number}", lease="1s"))
                 for number in peers]
        # Any node takes commands; the first waits until the three have met and elected a leader.
        for node in nodes:
            print("apples are", node.propose(b"apples 5", timeout=20).decode())
        print(nodes[0].propose(b"apples", timeout=20).decode())
        # Any node serves linearizable reads: first the engine's word, then our own memory.
        for node, machine in zip(nodes, machines):
            by_lease = node.read(timeout=20)
            print(f"node {node.state()['id']} reads {machine.total('apples')} apples,",
                  "by its lease" if by_lease else "by the leader's word")
            if machine.total("apples") != 15:
                sys.exit("that is not linearizable")


if __name__ == "__main__":
    main()
