#!/usr/bin/env python3
"""Keys that end by themselves at real nodes: none ends early, each ends in time and everywhere; every
node tells what is left; the death of the leader ends none early; a restart of all forgets none."""

import time

import resp
from client_leases import Leases
from cluster import Cluster, check, main, wait_for

TTL = 2.0
# Two looks of 200 ms each, a commit, and a machine with other work.
LATE = 3.0
KEYS = 300


def arguments(parser):
    parser.add_argument("--ttl", type=float, default=TTL, help="of the keys, in seconds")


def call(node, *words):
    with node.client() as client:
        answer = client.call(*words)
    check(not isinstance(answer, resp.RespError), f"{words} at {node}: {answer}")
    return answer


def lives_as_long_as_it_should(cluster, options, keys):
    ttl = str(int(options.ttl * 1000))
    began = time.monotonic()
    for i in range(KEYS):
        check(call(cluster.nodes[i % 3], "SET", f"{keys}{i}", "v", "PX", ttl) == "OK", "SET")
        if time.monotonic() - began > options.ttl / 2:
            break
    last = time.monotonic()
    call(cluster.nodes[0], "SET", f"{keys} kept", "v", "PX", ttl)
    check(call(cluster.nodes[1], "PERSIST", f"{keys} kept") == 1, "PERSIST")
    for node in cluster.nodes:
        left = call(node, "PTTL", f"{keys}0")
        check(left != -2 or time.monotonic() - began >= options.ttl, f"{node} has not the key")
        check(left <= int(ttl), f"{node} tells {left} ms of {ttl}")
    while True:
        before = time.monotonic()
        count = call(cluster.nodes[2], "EXISTS", f"{keys}0", f"{keys}{i}")
        if count < 2:
            check(time.monotonic() - began >= options.ttl, "a key ended early")
            break
        check(before - began < options.ttl + LATE * options.slack, "the first key does not end")
        time.sleep(0.01)
    names = [f"{keys}{j}" for j in range(i + 1)]
    wait_for("the end of all keys", options.ttl + LATE * options.slack,
             lambda: all(call(node, "EXISTS", *names) == 0 for node in cluster.nodes))
    lived = time.monotonic() - last
    check(lived >= options.ttl - 0.05, f"all keys were gone {lived:.2f} s after the last was set")
    check(call(cluster.nodes[1], "EXISTS", f"{keys} kept") == 1, "a key that was made to last")
    print(f"{len(names)} keys of {options.ttl} s were gone {lived:.2f} s after the last was set")


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        leader = cluster.wait_leader()
        lives_as_long_as_it_should(cluster, options, "first")

        # The leader dies just before the end: the key has its whole time again, and ends behind it.
        any_node = Leases(cluster)
        began = time.monotonic()
        call(leader, "SET", "k", "v", "PX", str(int(options.ttl * 1000)))
        time.sleep(options.ttl * 0.7)
        leader.kill()
        cluster.wait_leader(among=cluster.others(leader))
        wait_for("the end of the key", 2 * options.ttl + 20,
                 lambda: any_node.call("EXISTS", "k") == 0)
        lived = time.monotonic() - began
        check(lived >= options.ttl, f"the key ended {lived:.2f} s after it was set")
        print(f"with a new leader the key lived for {lived:.2f} s")

        # All of them start again from their disks.
        leader.start()
        call(cluster.others(leader)[0], "SET", "k", "v", "PX", str(int(options.ttl * 1000)))
        for node in cluster.nodes:
            node.kill()
        cluster.start()
        check(any_node.call("PTTL", "k") > 0, "the key was forgotten")
        wait_for("the end of the key behind a restart", 2 * options.ttl + 20,
                 lambda: any_node.call("EXISTS", "k") == 0)
        lives_as_long_as_it_should(cluster, options, "second")


if __name__ == "__main__":
    main(__doc__, run, arguments)
