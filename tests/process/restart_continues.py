#!/usr/bin/env python3
"""A group forms once. A node that is started again on its folder continues as the same node: the same
uuid, a higher incarnation, nothing forgotten, and the group is not formed again."""

from cluster import Cluster, check, main, wait_for

REFUSAL_SECONDS = 8


def settled(node):
    """Its status, once it answers."""
    return wait_for(f"a status of {node}", 10, node.try_status)


def form(cluster):
    """One after the other, so that each has to wait for who is missing."""
    started = []
    for node in cluster.nodes:
        node.start()
        started.append(node.id)
        missing = [n.id for n in cluster.nodes if n.id not in started]
        if not missing:
            break
        # The node itself may be among them: it has confirmed nothing before it knows everybody.
        wait_for(f"{node} to miss {missing}", 10, lambda n=node, m=missing: set(m) <= set(
            (n.try_status() or {"missing": []})["missing"]))
        check(not settled(node)["formed"], f"{node} has formed a group without {missing}")
        with node.client(timeout=REFUSAL_SECONDS) as client:
            reply = client.call("SET", "too", "early")
        check(getattr(reply, "word", None) == "NOLEADER", f"before the group: SET gave {reply!r}")
    cluster.wait_leader()
    for node in cluster.nodes:
        check(node.status()["formed"], f"{node} has not formed")


def write(node, key, value):
    with node.client() as client:
        reply = client.call("SET", key, value)
    check(reply == "OK", f"SET {key} at {node} was answered {reply!r}")


def expect(node, values):
    with node.client() as client:
        for key, value in values.items():
            reply = client.call("GET", key)
            check(reply == value.encode(), f"{key} at {node} reads {reply!r}, not {value!r}")


def check_same_self(node, before):
    after = settled(node)
    check(after["formed"], f"{node} came back without its group")
    check(after["uuid"] == before["uuid"], f"{node} came back under another uuid")
    check(after["incarnation"] > before["incarnation"], f"{node} came back with incarnation "
          f"{after['incarnation']} after {before['incarnation']}")
    check(after["term"] >= before["term"], f"{node} came back in an older term")
    # What is committed may be durable at the two others only.
    check(after["last"] >= before["durable"], f"{node} lost durable entries: its log ends at "
          f"{after['last']}, {before['durable']} was durable")
    return after


def restart_each(cluster, values, how, name):
    for node in cluster.nodes:
        before = node.status()
        how(node)
        node.start()
        after = check_same_self(node, before)
        cluster.wait_caught_up(node)
        values[f"{name}:{node.id}"] = f"written after {name} of {node.id}"
        write(node, f"{name}:{node.id}", values[f"{name}:{node.id}"])
        expect(node, values)
        print(f"{name}, {node}: incarnation {before['incarnation']} -> {after['incarnation']}, "
              f"uuid {after['uuid']}", flush=True)


def restart_all(cluster, values):
    """First one alone: it knows its group, and does not form one of its own."""
    before = {node: node.status() for node in cluster.nodes}
    for node in cluster.nodes:
        node.kill()
    first, second, third = cluster.nodes
    first.start()
    check_same_self(first, before[first])
    with first.client(timeout=REFUSAL_SECONDS) as client:
        for words in (("SET", "alone", "1"), ("GET", "alone")):
            reply = client.call(*words)
            check(getattr(reply, "word", None) == "NOLEADER", f"alone: {words} gave {reply!r}")
    second.start()
    check_same_self(second, before[second])
    cluster.wait_leader(among=[first, second])
    expect(second, values)
    write(second, "two", "are a quorum")
    values["two"] = "are a quorum"
    third.start()
    check_same_self(third, before[third])
    cluster.wait_caught_up(third)
    expect(third, values)
    with third.client() as client:
        check(client.call("GET", "alone") is None, "a write that was refused is there")


def group_of_one(options):
    """The smallest group forms and continues as well."""
    with Cluster(options.binary, size=1, keep=options.keep) as cluster:
        node = cluster.start()
        write(node, "one", "value")
        for how in (lambda: check(node.terminate() == 0, "no clean end"), node.kill):
            before = node.status()
            how()
            cluster.start()
            check_same_self(node, before)
            expect(node, {"one": "value"})


def run(options):
    group_of_one(options)
    with Cluster(options.binary, flags=["--command-timeout", "2s"], keep=options.keep) as cluster:
        form(cluster)
        values = {"first": "value"}
        write(cluster.nodes[0], "first", "value")
        members = {node: [m["id"] for m in node.status()["members"]] for node in cluster.nodes}
        restart_each(cluster, values, lambda node: check(node.terminate() == 0, "no clean end"),
                     "SIGTERM")
        restart_each(cluster, values, lambda node: node.kill(), "kill -9")
        restart_all(cluster, values)
        for node in cluster.nodes:
            check(members[node] == [m["id"] for m in node.status()["members"]],
                  f"the membership changed at {node}")
            # Each start says so once; only the first of them follows a formation.
            formed = node.log_text().count("the group has formed")
            check(formed == 1, f"{node} says {formed} times that its group has formed")


if __name__ == "__main__":
    main(__doc__, run)
