#!/usr/bin/env python3
"""The settings of a group: nodes that were started with different numbers follow one set of them; a change
under load costs no lease and no write; what would be unsafe is refused with its inequality."""

import json
import subprocess
import threading
import time

from cluster import Cluster, check, main, wait_for

# Of the first member, whose settings the group forms with: the defaults of `serve`.
USABLE_MS = 808.182
WRITES_MIN = 50


def arguments(parser):
    parser.add_argument("--changes", type=int, default=6, help="changes of the settings under load")


class Program:
    """`leasehold settings` of one cluster."""

    def __init__(self, cluster):
        self.binary = cluster.binary
        self.servers = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)

    def settings(self, *words, servers=True, status=0):
        where = ["--servers", self.servers] if servers else []
        done = subprocess.run([self.binary, "settings", *words, *where], capture_output=True, text=True, timeout=60,
                              check=False)
        said = done.stdout + done.stderr
        check(done.returncode == status, f"settings {words} ended with {done.returncode}: {said}")
        return said

    def shown(self):
        return json.loads(self.settings("show", "--json"))


class Load:
    """A writer at the leader and one at a follower: every write has to be acknowledged."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.done = 0
        self.failed = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._write, args=(node,)) for node in nodes]

    def _write(self, node):
        with node.client(10) as client:
            while not self.stopping.is_set():
                reply = client.call("SET", f"k{node.id}", "v")
                if reply == "OK":
                    self.done += 1
                else:
                    self.failed.append(f"{node}: {reply}")
                self.stopping.wait(0.002)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def settings_of(node):
    with node.client(10) as client:
        return json.loads(client.call("LEASEHOLD", "SETTINGS"))


def longest_lease(node, seconds):
    """The most that `node` shows of its lease within `seconds`, in milliseconds."""
    end = time.monotonic() + seconds
    longest = 0.0
    while time.monotonic() < end:
        longest = max(longest, node.status()["lease_left"])
    return longest


def one_set_of_numbers(cluster, program):
    shown = program.shown()
    check(shown["agreed"] and shown["committed"], f"the group has agreed on nothing: {shown}")
    expected = {"lease": "1s", "max-clock-drift": "0.1", "margin": "10ms", "usable": "808181818ns"}
    wrong = {name: shown.get(name) for name, value in expected.items() if shown.get(name) != value}
    check(not wrong, f"these are not the first member's: {wrong}")
    for node in cluster.nodes:
        own = settings_of(node)
        check(own["lease"] == "1s", f"{node} follows {own}")
    # The node that was started with no drift and no margin leads, and uses no more than the group allows.
    reckless = cluster.node(2)
    subprocess.run([cluster.binary, "transfer", "--to", "2", "--servers", program.servers], check=True, timeout=60,
                   stdout=subprocess.DEVNULL)
    leader = cluster.wait_leader()
    check(leader is reckless, f"{leader} leads, not {reckless}")
    longest = longest_lease(reckless, 1.0)
    check(USABLE_MS * 0.7 < longest <= USABLE_MS, f"a lease of {longest} ms, and the group allows {USABLE_MS}")
    return longest


def changes_under_load(cluster, program, count):
    leader = cluster.wait_leader()
    term = leader.status()["term"]
    leases = ["3s", "1s", "9s", "900ms"]
    with Load([leader, cluster.others(leader)[0]]) as load:
        for change in range(count):
            lease = leases[change % len(leases)]
            program.settings("set", f"lease={lease}", f"heartbeat={90 + change}ms")
            status = leader.status()
            check(status["role"] == "leader" and status["term"] == term, f"a change of leaders: {status}")
            check(status["lease_left"] > 0, f"no lease after change {change}: {status}")
            check(program.shown()["lease"] == lease, f"the lease is not {lease}")
        wait_for("writes", 20, lambda: load.done > WRITES_MIN)
    check(not load.failed, f"writes that were refused: {load.failed[:3]}")
    return load.done


def refusals(program):
    said = program.settings("set", "margin=60s", status=4)
    check("unsafe lease: D * (1 - rho) / (1 + rho) - sigma must be above zero" in said, said)
    said = program.settings("set", "lease=600s", status=4)
    check("at most 10 times" in said, said)
    said = program.settings("set", "colour=red", status=2)
    check("no setting of a group" in said, said)
    said = program.settings("set", status=2)
    check("name a setting" in said, said)
    said = program.settings("shwo", status=2)
    check("did you mean show?" in said, said)
    said = program.settings("check", "lease=2s", servers=False)
    check("allowed: U = " in said, said)
    said = program.settings("check", "heartbeat=500ms", servers=False, status=4)
    check("unavailable lease" in said, said)
    said = program.settings("show")
    check("A leader may use U = " in said and "max-clock-drift" in said, said)


def lease_reads_off(cluster, program):
    program.settings("set", "lease=1s", "heartbeat=100ms", "lease-reads=off")
    for node in cluster.nodes:
        wait_for(f"{node} without a lease", 10, lambda node=node: node.status()["lease_left"] == 0)
        with node.client(10) as client:
            check(client.call("SET", "plain", "v") == "OK", f"{node} takes no write")
            check(client.call("GET", "plain") == b"v", f"{node} answers no read")
    program.settings("set", "lease-reads=on")
    cluster.wait_leader()


def run(options):
    with Cluster(options.binary) as cluster:
        cluster.node(2).flags += ["--max-clock-drift", "0", "--margin", "0ms"]
        cluster.node(3).flags += ["--lease", "3s"]
        cluster.start()
        program = Program(cluster)
        longest = one_set_of_numbers(cluster, program)
        writes = changes_under_load(cluster, program, options.changes)
        refusals(program)
        lease_reads_off(cluster, program)
        program.settings("set", "lease=2s")
        node = cluster.node(3)
        check(node.terminate() == 0, f"{node} did not end well")
        node.start()
        cluster.wait_leader()
        own = settings_of(node)
        check(own["lease"] == "2s", f"after its restart {node} follows {own}")
        print(f"a leader without drift and margin of its own showed {longest:.1f} ms of lease at most; "
              f"{options.changes} changes of the lease beside {writes} writes, none refused")


if __name__ == "__main__":
    main(__doc__, run, arguments)
