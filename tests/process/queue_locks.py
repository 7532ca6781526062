#!/usr/bin/env python3
"""Locks with a queue, and registered services, as scripts use them. Processes that compete for a lock,
exclusive and shared, and for a semaphore, while leaders are killed: never more hold it than may, in
the order in which they asked, with tokens that rise. Who dies in the queue is passed. And a service
that is registered, ends, fails and comes back, as those see it who watch."""

import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from cluster import Cluster, Failed, check, main, wait_for
from locks_support import Held, Locks

NO, USAGE = 1, 2
TTL = 3.0
TIMING = ["--ttl", f"{TTL:g}s", "--margin", "500ms", "--max-round-trip", "300ms"]
# Of those that compete while leaders die: long enough that none is lost to a change of leaders on a
# busy machine. The long round trip lets a release find the next leader, or its lock would hold up
# the others to the end of its time.
PATIENT = ["--ttl", "6s", "--margin", "500ms", "--max-round-trip", "2s", "--renew", "500ms"]
PERMITS = 3
# What a holder does: it says when it began and ended, with what it holds, in one file for all.
ACT = """import os, sys, time
out = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
def say(word):
    line = f"{word} {sys.argv[2]} {os.getpid()} {os.environ['LEASEHOLD_TOKEN']} {time.monotonic()}\\n"
    os.write(out, line.encode())
say("begin")
time.sleep(float(sys.argv[3]))
say("end")
"""


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=12, help="of competition")
    parser.add_argument("--seed", type=int, default=None, help="of who asks for what")


def order(locks):
    """First come, first served; --show says who holds it and who waits."""
    first = locks.start("o", "cat", flags=["--holder", "first"])
    wait_for("the first", 20, lambda: locks.holder("o") == "first")
    waiting = []
    for i, flags in enumerate([["--shared"], ["--shared"], [], ["--shared"]]):
        waiting.append(locks.start("o", "sh", "-c", "echo in; cat",
                                   flags=["--holder", f"next{i}", *flags]))
        wait_for("the queue", 20, lambda i=i: len(locks.queue("o")) == i + 2)
    shown = show(locks, "o")
    check([line.split()[0] for line in shown] == ["holds"] + ["waits"] * 4, f"{shown}")
    check([line.split()[1] for line in shown] ==
          ["exclusive", "shared", "shared", "exclusive", "shared"], f"{shown}")
    check("next0" in shown[1] and "next3" in shown[4], f"{shown}")
    refused = locks.run(NO, "o", "true", flags=["--wait", "0s"])
    check("is held by first" in refused and "4 wait" in refused, refused)

    first.process.send_signal(signal.SIGTERM)
    released = first.end(128 + signal.SIGTERM)
    for one in waiting[:2]:
        one.wait_line("in")
    gap = time.monotonic() - released
    check(not waiting[2].lines and not waiting[3].lines, "an exclusive one was passed")
    for one in waiting[:2]:
        one.process.stdin.close()
        one.end(0)
    waiting[2].wait_line("in")
    check(not waiting[3].lines, "a shared one is beside an exclusive one")
    # A waiting client that dies is passed at the end of its time, and so is a holder that dies.
    waiting[2].process.kill()
    waiting[3].wait_line("in", seconds=TTL + 10)
    waiting[3].process.stdin.close()
    waiting[3].end(0)
    wait_for("the end of the queue", 10, lambda: not show(locks, "o"))
    print(f"two shared ones had it {gap * 1000:.0f} ms after the exclusive one")


def show(locks, name):
    done = subprocess.run([locks.cluster.binary, "lock", name, "--servers", locks.servers, "--show"],
                          capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 0, f"--show: status {done.returncode}: {done.stderr}")
    return done.stdout.splitlines()


def refusals(locks):
    for flags in (["--shared", "--permits", "2"], ["--permits", "0"], ["--permits", "many"]):
        locks.run(USAGE, "r", "true", flags=flags)
    done = subprocess.run([locks.cluster.binary, "lock", "r", "--servers", locks.servers, "--show", "--", "true"],
                          capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == USAGE, "--show with a command")
    held = locks.start("r", "cat", flags=["--permits", "2"])
    wait_for("the holder", 20, lambda: locks.queue("r"))
    said = locks.run(USAGE, "r", "true")
    check("another kind of lock" in said and "permits/2 there, exclusive here" in said, said)
    said = locks.run(USAGE, "r", "true", flags=["--permits", "3"])
    check("permits/2 there, permits/3 here" in said, said)
    held.process.stdin.close()
    held.end(0)


class Competitor(threading.Thread):
    """Runs one process after the other, in rounds of all kinds. A round that has begun is finished: so every kind
    runs, however slow the machine is."""

    KINDS = ["exclusive", "shared", "shared", "permits", "permits"]

    def __init__(self, locks, path, seed, until):
        super().__init__(daemon=True)
        self.locks, self.path, self.until = locks, path, until
        self.rng = random.Random(seed)
        self.fault = None

    def run(self):
        try:
            while time.monotonic() < self.until:
                for kind in self.rng.sample(self.KINDS, len(self.KINDS)):
                    self.step(kind)
        except Exception as fault:  # pylint: disable=broad-except
            self.fault = fault

    def step(self, kind):
        flags = {"exclusive": [], "shared": ["--shared"],
                 "permits": ["--permits", str(PERMITS)]}[kind]
        name = "semaphore" if kind == "permits" else "lock"
        words = self.locks.words(name, sys.executable, "-B", "-S", "-c", ACT, self.path, kind,
                                 f"{self.rng.uniform(0, 0.2):.3f}", flags=flags)
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == 0, f"{words}: status {done.returncode}: {done.stdout}{done.stderr}")


def competition(locks, options, seed):
    rng = random.Random(seed)
    with tempfile.NamedTemporaryFile() as file:
        until = time.monotonic() + options.seconds
        competitors = [Competitor(locks, file.name, rng.random(), until) for _ in range(8)]
        for competitor in competitors:
            competitor.start()
        kills = 0
        while time.monotonic() < until - 3:
            time.sleep(rng.uniform(1, 3))
            leader = locks.cluster.wait_leader(30)
            leader.kill()
            locks.cluster.wait_leader(30, among=locks.cluster.others(leader))
            leader.start()
            kills += 1
        for competitor in competitors:
            competitor.join(120)
            check(not competitor.is_alive(), "a lock that nobody gets")
            check(competitor.fault is None, f"{competitor.fault!r}")
        with open(file.name, encoding="ascii") as lines:
            counts = judge(lines.read().splitlines())
    print(f"{counts}; {kills} leaders were killed")


def judge(lines):
    """Never more at once than may; tokens rise from each exclusive one to the next holder."""
    holding, highest_exclusive, highest = {}, 0, 0
    counts = {"exclusive": 0, "shared": 0, "permits": 0}
    together = {"shared": 0, "permits": 0}
    events = sorted((float(line.split()[4]), line.split()) for line in lines)
    for _, (word, kind, pid, token, _) in events:
        token = int(token)
        if word == "end":
            del holding[pid]
            continue
        others = list(holding.values())
        if kind == "permits":
            at_once = 1 + others.count("permits")
            check(at_once <= PERMITS, f"{at_once} hold a semaphore of {PERMITS}")
        else:
            at_once = 1 + others.count("shared")
            check("exclusive" not in others, f"a {kind} one beside an exclusive one")
            check(kind == "shared" or at_once == 1, "an exclusive one beside shared ones")
            check(token > highest_exclusive, f"token {token} behind {highest_exclusive}")
            check(kind == "shared" or token > highest, f"token {token} behind {highest}")
            highest = max(highest, token)
            if kind == "exclusive":
                highest_exclusive = token
        if kind in together:
            together[kind] = max(together[kind], at_once)
        counts[kind] += 1
        holding[pid] = kind
    check(not holding, f"these did not end: {holding}")
    check(all(count >= 3 for count in counts.values()), f"too few: {counts}")
    check(together["shared"] > 1 and together["permits"] > 1, f"never together: {together}")
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def judges_itself():
    """What may not be has to be seen."""
    def line(word, kind, pid, token, at):
        return f"{word} {kind} {pid} {token} {at}"

    for lines in ([line("begin", "exclusive", 1, 5, 0), line("begin", "shared", 2, 6, 1)],
                  [line("begin", "shared", 1, 5, 0), line("begin", "exclusive", 2, 6, 1)],
                  [line("begin", "exclusive", 1, 5, 0), line("end", "exclusive", 1, 5, 1),
                   line("begin", "exclusive", 2, 4, 2)],
                  [line("begin", "permits", pid, 5 + pid, pid) for pid in range(PERMITS + 1)]):
        try:
            judge(lines)
        except Failed as found:
            check("hold" in str(found) or "beside" in str(found) or "token" in str(found), f"{found}")
        else:
            raise Failed(f"not seen: {lines}")


def registrations(locks):
    """Watchers see how it ended."""
    def register(key, *flags):
        return Held([locks.cluster.binary, "register", key, "10.0.0.7:80", "--servers", locks.servers,
                     *TIMING, *flags])

    def told(key, event):
        wait_for(f"{event} of {key} in {watching.lines}", TTL + 20, lambda: any(
            json.loads(line).get("key") == key and json.loads(line)["event"] == event
            for line in list(watching.lines)))

    watching = Held([locks.cluster.binary, "watch", "--prefix", "services/", "--json", "--values",
                     "--existing", "--servers", locks.servers])
    watching.wait_line("{")
    ended = register("services/a")
    ended.wait_line("registered")
    told("services/a", "set")
    check(locks.call("GET", "services/a") == b"10.0.0.7:80", "its value")
    ended.process.send_signal(signal.SIGTERM)
    ended.end(0)
    told("services/a", "revoked")
    killed = register("services/b")
    killed.wait_line("registered")
    killed.process.kill()
    told("services/b", "expired")
    check(locks.call("GET", "services/b") is None, "the key of a dead one")
    # Stopped for longer than its time: the key is gone, and back when the process continues.
    back = register("services/c", "--json")
    back.wait_line('{"event":"registered"}')
    back.process.send_signal(signal.SIGSTOP)
    told("services/c", "expired")
    back.process.send_signal(signal.SIGCONT)
    back.wait_line('{"event":"registering","why":')
    wait_for("its return", 20, lambda: locks.call("GET", "services/c"))
    check(back.lines[-1] == '{"event":"registered"}' or back.wait_line('{"event":"registered"}'), "")
    back.process.send_signal(signal.SIGINT)
    back.end(0)
    watching.process.send_signal(signal.SIGTERM)
    watching.end(0)
    for words in (["register", "k"], ["register", "k", "v", "--wait", "1s"], ["register", "k", "v", "w"]):
        done = subprocess.run([locks.cluster.binary, *words, "--servers", locks.servers],
                              stderr=subprocess.DEVNULL, timeout=60, check=False)
        check(done.returncode == USAGE, f"{words}")
    print("services came, ended, failed and came back, as those saw who watched")


def run(options):
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"--seed {seed}", flush=True)
    judges_itself()
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        locks = Locks(cluster, TIMING)
        order(locks)
        refusals(locks)
        registrations(locks)
        competition(Locks(cluster, PATIENT), options, seed)


if __name__ == "__main__":
    main(__doc__, run, arguments)
