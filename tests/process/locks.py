#!/usr/bin/env python3
"""`leasehold lock` and `leasehold lease` as scripts use them: one holder at a time, the command's own
status, a wait that ends; the command is stopped before the lock can end, whether it listens or not;
a leader that dies costs no lock. And the story of the pause: a holder that slept through its time,
and whose write is refused by its token."""

import json
import os
import re
import signal
import subprocess
import sys
import time

from cluster import Cluster, check, main, wait_for
from locks_support import Held, Locks, runs

NO, USAGE, NOT_EXECUTED, LOST = 1, 2, 4, 6
NO_PROGRAM = 127
TTL = 3.0
# Of U = 3 s * 0.9 / 1.1 - 0.5 s; the lock's holder stops by then.
TIMING = ["--ttl", "3s", "--margin", "500ms", "--max-round-trip", "300ms"]
USABLE = TTL * 0.9 / 1.1 - 0.5
WRITER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "fenced_writer.py")


def statuses(locks):
    """The command's own; and those of what went wrong before it."""
    said = locks.run(0, "a", "sh", "-c", "echo $LEASEHOLD_LOCK $LEASEHOLD_TOKEN $LEASEHOLD_LEASE")
    name, token, lease = said.split()
    check(name == "a" and int(token) > 0 and int(lease) > 0, f"its environment: {said}")
    check(locks.holder("a") is None, "the lock outlived its command")
    locks.run(7, "a", "sh", "-c", "exit 7")
    locks.run(128 + signal.SIGKILL, "a", "sh", "-c", "kill -9 $$")
    locks.run(NO_PROGRAM, "a", "no-such-program")
    check(locks.holder("a") is None, "a command that was not found keeps the lock")
    check("unsafe lease" in locks.run(USAGE, "a", "true", flags=["--margin", "3s"]),
          "a margin that leaves nothing")
    check("unavailable lease" in locks.run(USAGE, "a", "true", flags=["--renew", "1s"]),
          "a renewal that leaves no room for another one")
    locks.run(USAGE, "a", flags=["--wait", "1s"])
    locks.run(USAGE, "a", "true", flags=["--unknown"])
    nowhere = [locks.cluster.binary, "lock", "a", "--servers", "127.0.0.1:1", "--wait", "0s",
               "--", "true"]
    check(subprocess.run(nowhere, stderr=subprocess.DEVNULL, timeout=60,
                         check=False).returncode == NOT_EXECUTED, "nobody to ask")


def by_hand(locks):
    """`leasehold lease`, an action at a time."""
    def lease(status, *words):
        done = subprocess.run([locks.cluster.binary, "lease", "--servers", locks.servers, *words],
                              capture_output=True, text=True, timeout=60, check=False)
        check(done.returncode == status, f"lease {words}: status {done.returncode}, not {status}: "
                                         f"{done.stdout}{done.stderr}")
        return done.stdout.strip()

    lease_id, word, token = lease(0, "grant", "--name", "hand", "--holder", "me",
                                  "--ttl", "1m").split()
    check(word == "token" and int(token) > 0, "a token")
    lease(NO, "grant", "--name", "hand")
    check(lease(0, "renew", lease_id) == f"{lease_id}  ttl 1m", "renewed")
    locks.call("SET", "of hand", "v")
    lease(0, "attach", lease_id, "of hand")
    lease(NO, "attach", lease_id, "no such key")
    locks.call("SET", "--json", "v")
    lease(0, "attach", lease_id, "--", "--json")
    lease(0, "detach", "--", "--json")
    line = f"{lease_id}  token {token}  ttl 1m  name hand  holder me"
    said = lease(0, "info", "--name", "hand")
    # What is left stands there if the node that leads was asked.
    check(re.sub("  left [0-9]+m?s", "", said) == f"{line}\n  of hand", f"info: {said}")
    check(lease(0, "list") == line, "list")
    info = json.loads(lease(0, "info", lease_id, "--json"))
    times = [info.pop(time) for time in ("left_ms", "asked_at_ms", "renewed_at_ms")]
    check(info == {
        "id": int(lease_id), "token": int(token), "ttl_ms": 60000, "name": "hand",
        "holder": "me", "keys": ["of hand"], "grace_ms": 0, "soft": False, "delay_ms": 0,
        "delayed": False}, f"info --json: {info}")
    check(times[0] is None or 0 < times[0] <= 60000, f"left: {times}")
    check(json.loads(lease(NO, "renew", lease_id, "999", "--json")) ==
          [{"id": lease_id, "ttl_ms": 60000}, {"id": "999", "ttl_ms": None}], "renew --json")
    lease(0, "detach", "of hand")
    lease(NO, "detach", "no such key")
    # A name is of bytes, and JSON is of text.
    other = locks.call("LEASE.GRANT", "60000", "NAME", b"\xff")[0]
    check(json.loads(lease(0, "info", str(other), "--json"))["name"] == "\ufffd", "bytes in JSON")
    check(len(json.loads(lease(0, "list", "--json"))) == 2, "bytes in a list")
    lease(0, "revoke", str(other))
    lease(0, "revoke", lease_id)
    lease(NO, "revoke", lease_id)
    lease(NO, "info", lease_id)
    check(lease(0, "list", "--json") == "[]", "an empty list")
    check(locks.call("GET", "of hand") == b"v", "a key that was taken off its lease")
    for words in (["grant", "--ttl", "10"], ["renew"], ["info"], ["info", "1", "--name", "n"], ["list", "--", "x"],
                  ["hold"], []):
        lease(USAGE, *words)


def one_at_a_time(locks, slack):
    first = locks.start("b", "cat", flags=["--holder", "the first"])
    wait_for("the first", 20, lambda: locks.holder("b") == "the first")
    check("the first" in locks.run(NO, "b", "true", flags=["--wait", "0s"]),
          "who holds it is not said")
    # The planned end: the next one need not wait for the time to live.
    second = locks.start("b", "sh", "-c", "echo in; cat", flags=["--holder", "the second"])
    time.sleep(0.3)
    check(not second.lines, "two hold it")
    first.process.send_signal(signal.SIGTERM)
    released = first.end(128 + signal.SIGTERM)
    second.wait_line("in")
    gap = time.monotonic() - released
    check(gap < 0.5 * slack, f"handed over in {gap:.3f} s")
    # Its command ends by itself at the end of its input.
    second.process.stdin.close()
    second.end(0)
    print(f"handed over in {gap * 1000:.0f} ms")


def stopped_in_time(locks, slack):
    """Without renewals the command ends before the lock, even if it ignores signals."""
    listens = locks.start("c", "sh", "-c", "trap 'echo asked; exit' TERM; echo in; "
                          "while :; do sleep 0.02; done")
    deaf = locks.start("d", "sh", "-c", "trap '' TERM; echo in; while :; do sleep 0.02; done")
    listens.wait_line("in")
    deaf.wait_line("in")
    commands = listens.child(), deaf.child()
    stopped = time.monotonic()
    for node in locks.cluster.nodes:
        node.pause()
    asked, killed = (wait_for("its end", 10, lambda: not runs(child) and time.monotonic(), 0.005)
                     - stopped for child in commands)
    listens.end(LOST)
    deaf.end(LOST)
    check("asked" in listens.lines, f"it was not asked to stop: {listens.lines}")
    for node in locks.cluster.nodes:
        node.resume()
    check(asked <= USABLE + 0.3 * slack, f"stopped {asked:.2f} s after the last renewal")
    check(killed <= TTL * 0.9 / 1.1 + 0.1, f"killed {killed:.2f} s after the last renewal")
    print(f"stopped after {asked:.2f} s of {USABLE:.2f}; the deaf one killed after {killed:.2f} s")
    locks.cluster.wait_leader(30)


def elections(locks, slack):
    """One leads at a time, observers see it, and a planned end costs no time to live."""
    def candidate(*flags):
        return Held([locks.cluster.binary, "elect", "office", "--servers", locks.servers,
                     *locks.timing, *flags])

    watching = candidate("--observe", "--json")
    watching.wait_line('{"event":"nobody"}')
    first = candidate("--holder", "first")
    old = int(first.wait_line("elected  first").split()[-1])
    watching.wait_line('{"event":"leads","holder":"first')
    second = candidate("--holder", "second")
    time.sleep(0.3)
    check(not second.lines, f"two lead: {second.lines}")
    first.process.send_signal(signal.SIGTERM)
    ended = first.end(0)
    new = int(second.wait_line("elected  second").split()[-1])
    gap = time.monotonic() - ended
    check(gap < 0.5 * slack, f"elected after {gap:.3f} s")
    check(new > old, f"the token {new} is not above {old}")
    watching.wait_line('{"event":"leads","holder":"second')
    # Ended at the nodes: the leader learns it with its next renewal, and an observer at once.
    locks.call("LEASE.REVOKE", locks.call("LEASE.INFO", "NAME", "office")[0])
    wait_for("the end of the office", 5, lambda: watching.lines.count('{"event":"nobody"}') == 2)
    second.wait_line("over  second")
    second.end(LOST)
    watching.process.send_signal(signal.SIGINT)
    watching.end(0)
    done = subprocess.run([locks.cluster.binary, "elect", "a", "b", "--servers", locks.servers],
                          stderr=subprocess.DEVNULL, timeout=60, check=False)
    check(done.returncode == USAGE, "two names")
    print(f"elected {gap * 1000:.0f} ms after a planned end")


def survives_its_leader(locks):
    held = locks.start("e", "cat", flags=["--ttl", "10s", "--margin", "1s"])
    wait_for("the holder", 20, lambda: locks.holder("e"))
    leader = locks.cluster.wait_leader()
    leader.kill()
    locks.cluster.wait_leader(30, among=locks.cluster.others(leader))
    leader.start()
    locks.cluster.wait_leader(30)
    time.sleep(1)
    check(held.process.poll() is None, f"it lost the lock with the leader: {held.lines}")
    held.process.stdin.close()
    held.end(0)


def ended_by_others(locks):
    """Who ends the lease at the nodes ends the command; who kills the holder kills it too."""
    held = locks.start("f", "sh", "-c", "trap '' TERM; echo in; while :; do sleep 0.02; done")
    held.wait_line("in")
    lease = locks.queue("f")[0][2]
    check(locks.call("LEASE.REVOKE", lease) == "OK", "the revocation")
    held.end(LOST)

    held = locks.start("f", "sh", "-c", "echo in; while :; do sleep 0.02; done")
    held.wait_line("in")
    child = held.child()
    held.process.kill()
    killed = time.monotonic()
    wait_for("the end of the orphan", 5, lambda: not runs(child))
    locks.run(0, "f", "true")
    waited = time.monotonic() - killed
    check(waited > USABLE, f"the lock of a dead holder was free after {waited:.2f} s")
    print(f"the lock of a dead holder was free after {waited:.2f} s of {TTL}")


def pause_story(locks):
    """The holder and its command are stopped past the time to live; another takes over and writes;
    the first wakes up and writes."""
    writer = [sys.executable, "-B", WRITER, *map(str, locks.ports)]
    first = locks.start("printer", *writer, flags=["--holder", "first"])
    old = int(first.wait_line("token").split()[1])
    first.tell("page first")
    first.wait_line("OK")
    child = first.child()
    first.process.send_signal(signal.SIGSTOP)
    os.killpg(child, signal.SIGSTOP)
    second = locks.start("printer", *writer, flags=["--holder", "second"])
    new = int(second.wait_line("token").split()[1])
    check(new > old, f"the token {new} is not above {old}")
    second.tell("page second")
    second.wait_line("OK")
    # The command wakes up before the process that would stop it, and sends its write.
    first.tell("page third")
    os.killpg(child, signal.SIGCONT)
    refused = first.wait_line("-FENCED")
    first.process.send_signal(signal.SIGCONT)
    first.end(LOST)
    check(locks.call("GET", "page") == b"second", "the write of an old holder was taken")
    second.process.stdin.close()
    second.end(0)
    print(f"tokens {old} and {new}; the first, woken up: {refused}")


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        locks = Locks(cluster, TIMING)
        statuses(locks)
        by_hand(locks)
        one_at_a_time(locks, options.slack)
        elections(locks, options.slack)
        survives_its_leader(locks)
        ended_by_others(locks)
        pause_story(locks)
        stopped_in_time(locks, options.slack)


if __name__ == "__main__":
    main(__doc__, run)
