#!/usr/bin/env python3
"""Leases of clients at real nodes: one that is renewed lives and writes nothing to the log; one that
nobody renews ends with its keys, in time; the death of the leader ends none early; and a holder that
slept past its time finds that its token is too old."""

import time

import resp
from cluster import Cluster, Failed, check, main, wait_for

TTL = 2.0
# Looks every 200 ms, a commit, and a machine with other work.
LATE = 3.0


def arguments(parser):
    parser.add_argument("--ttl", type=float, default=TTL, help="of the leases, in seconds")


class Leases:
    """Commands at any node, again at another one while there is no leader."""

    def __init__(self, cluster):
        self._nodes = cluster.nodes

    def call(self, *words):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for node in self._nodes:
                if not node.running:
                    continue
                try:
                    with node.client() as client:
                        answer = client.call(*words)
                except (resp.ConnectionLost, resp.TimedOut):
                    continue
                # No command here except a grant does harm when it is executed twice.
                if not isinstance(answer, resp.RespError) or not answer.not_executed:
                    return answer
            time.sleep(0.05)
        raise Failed(f"no answer to {words}")


def refused(word, answer):
    check(isinstance(answer, resp.RespError) and answer.word == word,
          f"expected {word}, not {answer!r}")


def run(options):
    with Cluster(options.binary) as cluster:
        cluster.start()
        leader = cluster.wait_leader()
        leases = Leases(cluster)
        milliseconds = str(int(options.ttl * 1000))

        # Renewed at the leader: it lives, and the log stands still.
        kept, old = leases.call("LEASE.GRANT", milliseconds, "NAME", "kept")
        refused("LEASETAKEN", leases.call("LEASE.GRANT", milliseconds, "NAME", "kept"))
        leases.call("SET", "of kept", "v", "LEASE", str(kept))
        with leader.client() as client:
            before = leader.status()["commit"]
            for _ in range(int(3 * options.ttl / 0.3)):
                check(client.call("LEASE.RENEW", str(kept)) == [int(milliseconds)], "renewed")
                time.sleep(0.3)
            wrote = leader.status()["commit"] - before
        check(wrote == 0, f"renewals wrote {wrote} entries")
        check(leases.call("GET", "of kept") is not None, "the key of a lease that was renewed")

        # By its name, wherever an id may stand, and at every node.
        named, _ = leases.call("LEASE.GRANT", "60000", "NAME", "server1Lease")
        for node in cluster.nodes:
            with node.client() as client:
                key = f"/servers/{node.id}"
                check(client.call("SET", key, "v", "LEASE", "server1Lease") == "OK", f"{node}: SET by name")
                check(client.call("LEASE.ATTACH", "server1Lease", key) == 1, f"{node}: ATTACH by name")
                check(client.call("LEASE.RENEW", "server1Lease", str(named)) == [60000, 60000], f"{node}: RENEW")
        check(len(leases.call("LEASE.INFO", "server1Lease")[5]) == 3, "INFO by name")
        check(leases.call("LEASE.REVOKE", "server1Lease") == "OK", "REVOKE by name")
        refused("NOLEASE", leases.call("SET", "/servers/1", "v", "LEASE", "server1Lease"))

        # The leader dies: every lease has its whole time again, and ends behind it.
        leader.kill()
        killed = time.monotonic()
        cluster.wait_leader(among=cluster.others(leader))
        check(leases.call("GET", "of kept") is not None, "the lease ended with the leader")
        wait_for("the end of the lease", 2 * options.ttl + 20,
                 lambda: leases.call("LEASE.INFO", str(kept)) is None)
        lived = time.monotonic() - killed
        check(lived >= options.ttl - 0.3, f"the lease ended {lived:.2f} s after its last renewal")
        check(leases.call("GET", "of kept") is None, "the key of a lease that has ended")

        # Another has the name, and the first one wakes up.
        began = time.monotonic()
        second, new = leases.call("LEASE.GRANT", milliseconds, "NAME", "kept")
        check(new > old, f"the token {new} is not above {old}")
        check(leases.call("SET", "guarded", "second", "TOKEN", str(new)) == "OK", "the second")
        refused("FENCED", leases.call("SET", "guarded", "first", "TOKEN", str(old)))
        check(leases.call("GET", "guarded") == b"second", "an older token has written")
        wait_for("the end of the second lease", options.ttl + 20,
                 lambda: leases.call("LEASE.INFO", str(second)) is None)
        lived = time.monotonic() - began
        check(options.ttl - 0.1 <= lived <= options.ttl + LATE * options.slack,
              f"a lease of {options.ttl} s lived for {lived:.2f} s")
        print(f"the last lease lived for {lived:.2f} s of {options.ttl}")


if __name__ == "__main__":
    main(__doc__, run, arguments)
