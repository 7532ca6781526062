#!/usr/bin/env python3
"""A node with many groups is removed from some of them and added again while it runs, then from all of them, also
while it is down, and clients write. It comes back with its directory, as a replica with a number of its own, also if
it is killed on the way; nothing that was acknowledged is lost, and with the node and one other up every group has a
leader."""

import json
import os
import random
import subprocess
import time

from cluster import Background, Cluster, Failed, check, main, wait_for
from history import Ledger
from many_groups import SECONDS, Load, all_led, has_leaders

REMOVED_STATUS = 5


def arguments(parser):
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--kills", type=int, default=3)


class Pool:
    """The nodes, and the program that changes the members."""

    def __init__(self, options, cluster):
        self.options = options
        self.cluster = cluster
        self.addresses = dict(p.split("=") for p in cluster.peers.split(","))

    def member(self, *words, status=0):
        servers = ",".join(f"127.0.0.1:{node.port}" for node in self.cluster.nodes if node.running)
        done = subprocess.run([self.options.binary, "member", *words, "--servers", servers],
                              capture_output=True, text=True, timeout=120, check=False)
        said = done.stdout + done.stderr
        check(done.returncode == status, f"{words} ended with {done.returncode}: {said}")
        return said

    def add(self, node, *words, status=0):
        return self.member("add", f"{node.id}={self.addresses[str(node.id)]}", *words, status=status)

    def at(self, node, group):
        """What the node says of a group."""
        with node.client() as client:
            check(client.call("LEASEHOLD", "GROUP", str(group)) == "OK", f"LEASEHOLD GROUP {group}")
            return json.loads(client.call("LEASEHOLD", "STATUS"))

    def number(self, node, group):
        return self.at(node, group)["id"]

    def waits(self, node, groups):
        try:
            wait_for(f"{node} to wait for groups {groups}", SECONDS,
                     lambda: all(self.at(node, group)["joining"] for group in groups), pause=0.05)
        except Failed as failure:
            said = [json.dumps(self.at(node, group)) for group in groups]
            raise Failed(f"{failure}; it says: {'; '.join(said)}") from failure

    def all_follow(self):
        for node in self.cluster.nodes:
            wait_for(f"all leaders, as {node} sees them", SECONDS,
                     lambda node=node: all_led(node, self.cluster.nodes, self.options.groups))


def noted(node, group):
    """Its file says that it was removed from the group, which is exchanged at the next start only."""
    path = os.path.join(node.data_dir, "REPLICAS")
    if not os.path.exists(path):
        return False
    with open(path, encoding="ascii") as file:
        return any(line.split()[0] == str(group) and line.endswith("removed\n") for line in file.readlines()[1:])


def replaced(node, group, times):
    """Its file says that the next replica waits."""
    path = os.path.join(node.data_dir, "REPLICAS")
    if not os.path.exists(path):
        return False
    with open(path, encoding="ascii") as file:
        return f"{group} {node.id + 10000 * times} waits\n" in file.readlines()


def from_some(pool, node):
    """From the last group, and then again. It serves the others all the while."""
    last = pool.options.groups
    for round_ in (1, 2, 3):
        pool.member("remove", str(node.id), "--group", str(last))
        if round_ < 3:
            wait_for("the removal to be noted", SECONDS, lambda: noted(node, last) or replaced(node, last, round_))
            # Where it deletes the old replica.
            for _ in range(pool.options.kills):
                node.kill()
                node.start()
                time.sleep(random.uniform(0, 0.5))
        pool.waits(node, [last])
        check(node.running, f"{node} ended, though it has other groups")
        check(pool.number(node, last) == node.id + 10000 * round_, f"round {round_}: {pool.number(node, last)}")
        check(pool.number(node, 1) == node.id, "the replica of another group")
        said = pool.add(node) if round_ == 2 else pool.add(node, "--group", str(last))
        check(f"node {node.id} is a voter" in said, said)
    check("groups were so already" in pool.add(node), "added twice")
    pool.all_follow()


def from_all(pool, node):
    """It ends, waits when it is started again, and is added to all groups."""
    groups = pool.options.groups
    pool.member("remove", str(node.id))
    check(node.wait_exit(SECONDS) == REMOVED_STATUS, "the status of a node that was removed")
    node.start()
    pool.waits(node, range(1, groups + 1))
    said = pool.add(node)
    check(said.count(f"node {node.id} is a voter") == groups, said)
    check(pool.number(node, 1) == node.id + 10000, f"{pool.number(node, 1)}")
    check(pool.number(node, groups) == node.id + 40000, f"{pool.number(node, groups)}")
    pool.all_follow()


def while_it_is_down(pool, node):
    """It has not heard of it, and has forgotten nothing: it is added as the replica that it was."""
    node.kill()
    pool.member("remove", str(node.id))
    node.start()
    wait_for("the node to answer", SECONDS, node.try_status)
    said = pool.add(node)
    check(said.count(f"node {node.id} is a voter") == pool.options.groups, said)
    check(pool.number(node, 1) == node.id + 10000, f"{pool.number(node, 1)}")
    pool.all_follow()


def lives_with(pool, node, ledger):
    """The group of the users and all others need the node now. They know the way to it."""
    other, down = pool.cluster.others(node)
    down.kill()
    for one in (node, other):
        wait_for("leaders of all groups", SECONDS, lambda one=one: has_leaders(one))
        ledger.read_back(one)
    with node.client() as client:
        for number in range(50):
            check(client.call("SET", f"end{number}", "1") == "OK", "SET")
    said = subprocess.run([pool.options.binary, "transfer", "--to", str(node.id), "--group", str(pool.options.groups),
                           "--servers", f"127.0.0.1:{node.port},127.0.0.1:{other.port}"],
                          capture_output=True, text=True, timeout=60, check=False).stdout
    check(f"node {node.id} leads" in said, said)
    node.kill()
    node.start()
    for one in (node, other):
        wait_for("leaders of all groups", SECONDS, lambda one=one: has_leaders(one))
        ledger.read_back(one)
    down.start()
    pool.all_follow()


def from_the_group_of_the_users(pool, node):
    """Only from that: it serves no other group either, and does not begin again without users beside them."""
    begun_again = "group 1: this node was removed from it, and deleted"
    before = node.log_text().count(begun_again)
    pool.member("remove", str(node.id), "--group", "1")
    check(node.wait_exit(SECONDS) == REMOVED_STATUS, "the status of a node that has left group 1")
    check(noted(node, 1), "it has not noted that it was removed from group 1")
    node.start()
    check(node.wait_exit(SECONDS) == REMOVED_STATUS, "the status of a node that has left group 1 before")
    check(before == 1 and node.log_text().count(begun_again) == before, "group 1 began again, without users")
    check("it serves nothing any more" in node.log_text(), "it did not say why it ends")


def run(options):
    flags = ["--groups", str(options.groups)]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in cluster.nodes)
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
        cluster.start()
        pool = Pool(options, cluster)
        pool.all_follow()
        node = cluster.nodes[2]
        load = Load(cluster.others(node))
        with Background(load.step):
            from_some(pool, node)
            from_all(pool, node)
            while_it_is_down(pool, node)
        check(len(load.ledger.acked) > 100, load.ledger.summary())
        load.ledger.read_back(node)
        lives_with(pool, node, load.ledger)
        from_the_group_of_the_users(pool, node)
        print(f"{node} was removed from group {options.groups} three times and from all {options.groups} twice, "
              f"and came back each time; {load.ledger.summary()}")


if __name__ == "__main__":
    main(__doc__, run, arguments)
