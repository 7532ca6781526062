#!/usr/bin/env python3
"""SIGTERM ends a node in good order: new clients are refused, commands are refused as not executed, what is
in flight is answered, a client that asks all the time is refused before its connection closes, another node leads,
and all that within --drain-timeout; a second signal does not wait."""

import os
import signal
import threading
import time

import resp
from cluster import Cluster, check, main, wait_for


def is_refused(client, *words):
    """A command at a node that ends is certainly not executed."""
    try:
        reply = client.call(*words)
    except resp.ConnectionLost as lost:
        reply = lost
    check(isinstance(reply, resp.RespError) and reply.not_executed,
          f"{words[0]} is not refused: {reply!r}")


def a_leader_hands_over(cluster, options):
    leader = cluster.wait_leader()
    begun = time.monotonic()
    check(leader.terminate() == 0, "status 0")
    took = time.monotonic() - begun
    for word in ("SIGTERM: draining for 5s at most", "drained in ", "leadership transferred: node ",
                 "stopping: SIGTERM", "stopped"):
        check(word in leader.log_text(), f"the log does not say {word!r}")
    with cluster.others(leader)[0].client() as client:
        check(client.call("SET", "k", "1") == "OK", "no write right after it")
    after = time.monotonic() - begun
    # Far below the lease and an election timeout.
    check(after < 0.9 * options.slack, f"{after * 1000:.0f} ms until a write, {took * 1000:.0f} "
                                       "until the end")
    print(f"a leader ended in {took * 1000:.0f} ms, and a write was answered by then or "
          f"{(after - took) * 1000:.0f} ms later")
    leader.start()
    cluster.wait_leader()


def no_thread_takes_the_signal(cluster):
    """A thread that does not block it would be given a SIGTERM that comes while the first one is busy,
    and that would end the process at once. The first one opens it while it waits for it."""
    for node in cluster.nodes:
        tasks = f"/proc/{node.process.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/status", encoding="ascii") as file:
                fields = dict(line.rstrip("\n").split(":\t", 1) for line in file)
            blocked = int(fields["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1
            check(blocked or int(task) == node.process.pid,
                  f"{node}: the thread {fields['Name']} takes SIGTERM")


class Asker(threading.Thread):
    """Writes all the time, until it is refused or its connection breaks."""

    def __init__(self, node, key):
        super().__init__()
        self._client, self._key = node.client(), key
        self.asked = 0
        self.problem = None

    def run(self):
        answered = time.monotonic()
        try:
            while True:
                reply = self._client.call("SET", self._key, "1")
                if isinstance(reply, resp.RespError):
                    self.problem = None if reply.not_executed else f"answered {reply!r}"
                    return
                self.asked += 1
                answered = time.monotonic()
                time.sleep(0.002)
        except resp.ConnectionLost:
            # This machine may be busy for longer than a node that ends waits for its clients.
            silent = time.monotonic() - answered
            self.problem = f"not told within {silent * 1000:.1f} ms" if silent < 0.05 else None
        finally:
            self._client.close()


def who_asks_all_the_time_is_told(cluster):
    leader = cluster.wait_leader()
    for node in (cluster.others(leader)[0], leader):
        askers = [Asker(node, f"asker:{i}") for i in range(8)]
        for asker in askers:
            asker.start()
        wait_for("all of them to write", 10, lambda: all(asker.asked > 3 for asker in askers))
        check(node.terminate() == 0, "status 0")
        for asker in askers:
            asker.join(20)
            check(not asker.is_alive(), "a client still waits")
            check(asker.problem is None, f"a client of {node}: {asker.problem}")
        node.start()
        cluster.wait_caught_up(node)
        cluster.wait_leader()
    print("the client that asked all the time got the refusal before its connection closed")


def send_uncommitted(leader, client, *words):
    """A write that the leader has in its log, and that no majority has: the others are paused."""
    before = leader.status()["last"]
    client.send_raw(resp.encode(*words))
    wait_for("the write to be in the log", 5, lambda: leader.status()["last"] > before)


def what_is_in_flight_is_answered(cluster, options):
    """Without a majority a write waits, and the drain with it; another command is refused meanwhile,
    a new client is not let in. Then the majority returns."""
    leader = cluster.wait_leader()
    others = cluster.others(leader)
    waiting, asking = leader.client(timeout=20), leader.client()
    # A node that has just started holds its first command until a quorum has shown it the users.
    check(asking.call("SET", "before", "1") == "OK", "no write")
    for other in others:
        other.pause()
    send_uncommitted(leader, waiting, "SET", "in-flight", "1")
    # It may have drained before, in another life.
    drains = leader.log_text().count("SIGTERM: draining")
    leader.signal(signal.SIGTERM)
    # A command that comes before it is in flight as well.
    wait_for("the drain", 5, lambda: leader.log_text().count("SIGTERM: draining") > drains)
    is_refused(asking, "SET", "late", "1")
    is_refused(asking, "GET", "in-flight")
    check(asking.call("PING") == "PONG", "what needs no store is answered")

    def door_closed():
        try:
            leader.client().close()
        except resp.ConnectionLost:
            return True
        return False
    wait_for("new clients to be refused", 5, door_closed)
    for other in others:
        other.resume()
    reply = waiting.read_reply()
    check(reply == "OK", f"the write in flight was answered {reply!r}")
    check(leader.wait_exit(15) == 0, "status 0")
    with others[0].client() as client:
        check(client.call("GET", "in-flight") == b"1", "the write is lost")
        check(client.call("GET", "late") is None, "what was refused was executed")
    waiting.close()
    asking.close()
    leader.start()
    cluster.wait_leader()
    print("what was in flight was answered, the rest refused")


def lead_with(cluster, flags):
    """The first node, started again with these flags, and leading."""
    node = cluster.nodes[0]
    cluster.wait_leader()
    node.terminate()
    node.flags = list(flags)
    node.start()
    cluster.wait_caught_up(node)
    leader = cluster.wait_leader()
    if leader is not node:
        with leader.client() as client:
            reply = client.call("LEASEHOLD", "TRANSFER", str(node.id))
        check(isinstance(reply, bytes), f"TRANSFER was answered {reply!r}")
    check(cluster.wait_leader() is node, "it does not lead")
    return node


def stuck(cluster, flags, again):
    """How long a leader without a majority, at which a write waits, takes to end."""
    leader = lead_with(cluster, flags)
    others = cluster.others(leader)
    client = leader.client(timeout=20)
    check(client.call("SET", "before", "1") == "OK", "no write")
    for other in others:
        other.pause()
    send_uncommitted(leader, client, "SET", "stuck", "1")
    begun = time.monotonic()
    leader.signal(signal.SIGTERM)
    if again:
        wait_for("the drain to begin", 5,
                 lambda: "SIGTERM: draining" in leader.log_text().rsplit("clients on", 1)[1])
        leader.signal(signal.SIGTERM)
    status = leader.wait_exit(15)
    check(status == 0, f"status {status}")
    took = time.monotonic() - begun
    client.close()
    for other in others:
        other.resume()
    leader.flags = []
    leader.start()
    print(f"without a majority it ended after {took:.2f} s ({' '.join(flags) or 'the default'}"
          f"{', a second signal' if again else ''})")
    return took


def a_bound_and_a_second_signal(cluster, options):
    took = stuck(cluster, ["--drain-timeout", "700ms"], False)
    check(took >= 0.7, "it did not wait")
    check(took < 0.7 + 2 * options.slack, "the bound did not hold")
    check(stuck(cluster, [], True) < 2 * options.slack, "a second signal did not help")
    check(stuck(cluster, ["--drain-timeout", "0s"], False) < 2 * options.slack, "it waited")


def all_at_once(cluster, options):
    begun = time.monotonic()
    for node in cluster.nodes:
        node.signal(signal.SIGTERM)
    for node in cluster.nodes:
        check(node.wait_exit(15) == 0, f"{node}: status 0")
    took = time.monotonic() - begun
    check(took < 4 * options.slack, f"three nodes ended after {took:.2f} s")
    print(f"three nodes that are ended at once need {took * 1000:.0f} ms")


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        no_thread_takes_the_signal(cluster)
        a_leader_hands_over(cluster, options)
        who_asks_all_the_time_is_told(cluster)
        what_is_in_flight_is_answered(cluster, options)
        a_bound_and_a_second_signal(cluster, options)
        cluster.wait_leader()
        all_at_once(cluster, options)


if __name__ == "__main__":
    main(__doc__, run)
