#!/usr/bin/env python3
"""The terms of a lease other than its time to live, at real nodes: in its grace period it stays, and a renewal
gives it back; behind a soft limit a client that asks has it soon; a lock delay keeps the name of an expired
lease, also behind the death of the leader. And `leasehold elect --grace`, stopped for longer than its
time to live: it stops to lead, and leads again."""

import signal
import time

import resp
from cluster import Cluster, Failed, check, main, wait_for
from locks_support import Held, Locks

TTL = 1.5
# Looks every 200 ms, a commit, and a machine with other work.
LATE = 1.5
LEADS = ["--ttl", "3s", "--margin", "500ms", "--max-round-trip", "300ms"]


def milliseconds(seconds):
    return str(int(seconds * 1000))


def is_refused(answer, word):
    return isinstance(answer, resp.RespError) and answer.word == word


def grace_period(locks, late):
    """Nobody else has it, its key stays, and a renewal gives it back."""
    grace = 20.0
    began = time.monotonic()
    lease, _ = locks.call("LEASE.GRANT", milliseconds(TTL), "NAME", "graced",
                          "GRACE", milliseconds(grace))
    locks.call("SET", "of graced", "v", "LEASE", str(lease))
    wait_for("its time to live is over", TTL + 10,
             lambda: (locks.left(lease) or 1) < 0)
    check(time.monotonic() - began >= TTL - 0.1, "the time to live was over too early")
    check(is_refused(locks.call("LEASE.GRANT", "1000", "NAME", "graced"), "LEASETAKEN"),
          "another has the name in the grace period")
    # The refusal ends nothing: there is no soft limit.
    time.sleep(2 * 0.2 + 0.3)
    check(locks.call("GET", "of graced") == b"v", "the key has gone in the grace period")
    check(locks.call("LEASE.RENEW", str(lease)) == [int(milliseconds(TTL))], "not given back")
    check(locks.left(lease) > 0, "its time has not begun anew")
    locks.call("LEASE.REVOKE", str(lease))

    began = time.monotonic()
    short, _ = locks.call("LEASE.GRANT", "500", "GRACE", "1500")
    wait_for("its end", 20, lambda: locks.call("LEASE.INFO", str(short)) is None)
    lived = time.monotonic() - began
    check(2.0 - 0.1 <= lived <= 2.0 + late, f"0.5 s and 1.5 s of grace were {lived:.2f} s")
    print(f"grace period: 0.5 s and 1.5 s more were {lived:.2f} s")


def soft_limit(locks, late):
    """Before its end no client gets the name, after it any client that asks."""
    began = time.monotonic()
    first, old = locks.call("LEASE.GRANT", milliseconds(TTL), "NAME", "file",
                            "GRACE", "3600000", "SOFT")

    def take():
        answer = locks.call("LEASE.GRANT", "60000", "NAME", "file")
        return None if is_refused(answer, "LEASETAKEN") else answer

    second, new = wait_for("the name behind the soft limit", TTL + 20, take)
    took = time.monotonic() - began
    check(TTL - 0.1 <= took <= TTL + late, f"taken over after {took:.2f} s of {TTL}")
    check(new > old, f"the token {new} is not above {old}")
    check(locks.call("LEASE.RENEW", str(first)) == [None], "the first one is renewed")
    locks.call("LEASE.REVOKE", str(second))
    print(f"soft limit: taken over after {took:.2f} s of {TTL}, the hard limit being an hour")


def lock_delay(locks, late):
    delay = 4.0
    lease, _ = locks.call("LEASE.GRANT", "500", "NAME", "lock", "DELAY", milliseconds(delay))
    locks.call("SET", "of lock", "v", "LEASE", str(lease))
    wait_for("the end of its key", 20, lambda: locks.call("GET", "of lock") is None)
    ended = time.monotonic()
    check(locks.call("LEASE.INFO", "NAME", "lock") is None, "somebody holds it")
    check(locks.call("LEASE.INFO", str(lease))[9] == 1, "it is not delayed")
    check(locks.call("LEASE.RENEW", str(lease)) == [None], "an expired lease is renewed")
    # The new leader gives it its whole delay again, and forgets none.
    leader = locks.cluster.wait_leader()
    leader.kill()
    killed = time.monotonic()
    locks.ports = [node.port for node in locks.cluster.others(leader)]

    def take():
        answer = locks.call("LEASE.GRANT", "60000", "NAME", "lock")
        return None if is_refused(answer, "LEASETAKEN") else answer

    second, _ = wait_for("the name behind its lock delay", delay + 40, take)
    took = time.monotonic()
    check(took - killed >= delay - 0.1, f"free {took - ended:.2f} s after the expiry")
    # Revoked, it has none.
    locks.call("LEASE.REVOKE", str(second))
    third, _ = locks.call("LEASE.GRANT", "60000", "NAME", "lock", "DELAY", milliseconds(delay))
    locks.call("LEASE.REVOKE", str(third))
    check(not is_refused(locks.call("LEASE.GRANT", "500", "NAME", "lock"), "LEASETAKEN"),
          "a lease that was revoked has a lock delay")
    print(f"lock delay: {delay} s, and a leader that died meanwhile: {took - ended:.2f} s")
    check(took - ended <= delay + 10 + late, "it was kept for too long")


def a_leader_that_was_stopped(locks):
    """It may not act when it wakes up, and then it may again: no other client led."""
    held = Held([locks.cluster.binary, "elect", "office", "--servers", locks.servers, *LEADS,
                 "--holder", "first", "--grace", "60s"])
    token = held.wait_line("elected  first").split()[-1]
    # It looks every 50 ms. If it renews before it looks, it leads again before it knows that it did not.
    for last in (False, False, True):
        held.process.send_signal(signal.SIGSTOP)
        time.sleep(3.5)
        held.process.send_signal(signal.SIGCONT)
        try:
            again = held.wait_line("again  first", 5)
            break
        except Failed:
            if last:
                raise
    check(any(line.startswith("grace  first") for line in held.lines), f"it led on: {held.lines}")
    check(again.split()[-1] == token, f"another token: {held.lines}")
    held.process.send_signal(signal.SIGTERM)
    held.end(0)


class Nodes(Locks):
    def left(self, lease):
        """How much of its time to live is left, as the leader knows; None while there is no leader."""
        leader = self.cluster.wait_leader()
        with leader.client() as client:
            return client.call("LEASE.INFO", str(lease))[11]


def run(options):
    with Cluster(options.binary) as cluster:
        cluster.start()
        cluster.wait_leader()
        locks = Nodes(cluster)
        late = LATE * options.slack
        grace_period(locks, late)
        soft_limit(locks, late)
        a_leader_that_was_stopped(locks)
        lock_delay(locks, late)


if __name__ == "__main__":
    main(__doc__, run)
