#!/usr/bin/env python3
"""The replicated SQLite of examples/sqlite as three processes, one of which is killed or paused in each round, under
load: the history of its rows is linearizable, every replica has the same sound database in the end, and a read under
the lease costs what the same query costs without."""

import argparse
import itertools
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "process"))
from cluster import check, wait_for  # noqa: E402
from history import History  # noqa: E402

KEYS = 4
# The lease, and what a leader needs to be known as gone: a pause outlasts both.
PAUSE_S = 2.0
ANSWER_S = 30.0
# Many rounds of the load have more than that, so a replica that was away needs a copy of the database.
LOG_TAIL = 16384
TEXTS = ("ok", "error: not executed", "error: unknown")
# Values that replicas do not share, or may not: functions, tables of SQLite about itself.
DIFFERS = ("random()", "hex(fts3_tokenizer('simple'))", "sqlite_version()", "unixepoch()", "last_insert_rowid()",
           "sin(1)", "(SELECT count(*) FROM dbstat)", "(SELECT mem FROM sqlite_stmt)",
           "(SELECT file FROM pragma_database_list)")


class Ended(Exception):
    """The process has ended before it answered."""


class Replica:
    def __init__(self, program, number, folder, addresses):
        self.number = number
        self.folder = pathlib.Path(folder) / str(number)
        self._command = [program, "--log-tail", str(LOG_TAIL), str(number), str(self.folder), *addresses]
        self._log = open(pathlib.Path(folder) / f"{number}.log", "ab")  # pylint: disable=consider-using-with
        self.status = ""
        self.copies = 0  # received by processes that have ended
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            self._command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)

    def ask(self, process, sql):
        """The first line of the answer, and its rows."""
        try:
            process.stdin.write(sql + "\n")
            process.stdin.flush()
            head = process.stdout.readline().rstrip("\n")
            counted = re.match(r"ok (\d+) rows", head)
            rows = [process.stdout.readline() for _ in range(int(counted[1]) if counted else 0)]
        except (OSError, ValueError) as error:
            raise Ended from error
        if not head or any(not row.endswith("\n") for row in rows):
            raise Ended
        return head, [row.rstrip("\n") for row in rows]

    def look(self, process):
        self.status = self.ask(process, ".status")[0]

    def kill(self):
        self.copies += self.received()
        self.process.kill()
        self.process.wait()

    def received(self):
        found = re.search(r"copies received (\d+)", self.status)
        return int(found[1]) if found else 0

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(60) == 0, f"replica {self.number} did not end well")

    def leads(self):
        return f"leader {self.number}," in self.status


class Client(threading.Thread):
    """Reads, writes, and compares rows at one replica, until stopped."""

    def __init__(self, replica, history, seed):
        super().__init__(daemon=True)
        self._replica = replica
        self._history = history
        self._random = random.Random(seed)
        self._names = itertools.count()
        self.stopped = threading.Event()
        self.failure = None
        self.done = 0

    def run(self):
        try:
            while not self.stopped.is_set():
                process = self._replica.process
                name = next(self._names) * 3 + self._replica.number - 1  # its calls come one after the other
                try:
                    self._replica.look(process)
                    for _ in range(20):
                        if self.stopped.is_set() or not self.one(process, name):
                            break
                except Ended:
                    time.sleep(0.02)
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error

    def one(self, process, name):
        """False: what it did last may still be executed."""
        key, value = f"row{self._random.randrange(KEYS)}", self._history.new_value()
        kind = self._random.randrange(3)
        began = self._history.now()
        if kind == 0:
            head, rows = self._replica.ask(process, f"SELECT value FROM registers WHERE name = '{key}'")
            check(head.startswith(TEXTS), f"a read was answered {head!r}")
            if head.startswith("ok"):
                self._history.read(name, key, rows[0] if rows else None, began)
                self.done += 1
            return True
        sql = (f"INSERT INTO registers VALUES ('{key}', {value}) "
               "ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        expect = None
        if kind == 1:
            _, rows = self._replica.ask(process, f"SELECT value FROM registers WHERE name = '{key}'")
            if rows:
                expect = int(rows[0])
                sql = f"UPDATE registers SET value = {value} WHERE name = '{key}' AND value = {expect}"
        try:
            head, _ = self._replica.ask(process, sql)
        except Ended:
            head = TEXTS[2]
        check(head.startswith(TEXTS), f"a write was answered {head!r}")
        changed = head.startswith("ok 0 rows, 1 changed")
        unknown = head.startswith(TEXTS[2])
        if expect is None and (changed or unknown):
            self._history.wrote(name, key, value, began, "OK" if changed else None)
        elif expect is not None and (changed or unknown):
            self._history.swapped(name, key, expect, value, began, changed)
        self.done += changed
        return not unknown


def contents(replica):
    """Of its file, once the replica has ended."""
    with sqlite3.connect(replica.folder / "database" / "data.db") as database:
        sound = database.execute("PRAGMA integrity_check").fetchall()
        check(sound == [("ok",)], f"replica {replica.number}: {sound}")
        return [database.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
                for table in ("registers", "sqlite_master")]


def rounds(options, replicas, clients):
    chance = random.Random(options.seed)
    for number in range(1, options.rounds + 1):
        leader = next((one for one in replicas if one.leads()), replicas[0])
        victim = leader if number % 2 else chance.choice(replicas)
        pause = chance.random() < 0.5
        before = sum(client.done for client in clients)
        if pause:
            os.kill(victim.process.pid, signal.SIGSTOP)
        else:
            victim.kill()
        time.sleep(PAUSE_S)
        if pause:
            os.kill(victim.process.pid, signal.SIGCONT)
        else:
            victim.start()
        time.sleep(0.5)
        for client in clients:
            check(client.failure is None, f"{client.failure}")
        done = sum(client.done for client in clients) - before
        role = "the leader" if victim is leader else "a follower"
        print(f"round {number}: replica {victim.number}, {role}, was {'paused' if pause else 'killed'}; {done} calls "
              "beside it", flush=True)


def seen_everywhere(replicas):
    """Every replica answers a read behind the last write, so it has executed everything."""
    wait_for("a last write", 30, lambda: replicas[0].ask(
        replicas[0].process, "INSERT OR REPLACE INTO registers VALUES ('last', 1)")[0].startswith("ok"))
    for one in replicas:
        wait_for(f"replica {one.number} has the last write", 60, lambda one=one: one.ask(
            one.process, "SELECT value FROM registers WHERE name = 'last'")[1] == ["1"])
        one.look(one.process)
        one.copies += one.received()


def time_reads(replicas, limit):
    def timed():
        for one in replicas:
            one.look(one.process)
            if one.leads():
                return one.ask(one.process, ".time 5000 SELECT value FROM registers WHERE name = 'row1'")[0]
        return None
    answer = wait_for("a leader that reads", 30, timed)
    found = re.match(r"ok (\d+) ns with the lease, (\d+) ns without", answer)
    check(found, f".time was answered {answer!r}")
    ratio = int(found[1]) / int(found[2])
    print(f"a read: {answer[3:]}: {ratio:.2f} x")
    check(ratio <= limit, f"a read under the lease costs more than {limit} x")


def what_differs_is_refused(replica):
    def ask(sql):
        return replica.ask(replica.process, sql)[0]
    for value in DIFFERS:
        answer = ask(f"INSERT INTO registers SELECT 'never', {value}")
        check(answer.startswith("error: ") and not answer.startswith(TEXTS[1:]), f"{value}: {answer}")
    check(ask("CREATE TABLE own (a, b DEFAULT (sin(1)))").startswith("ok"), "a table")
    check(ask("INSERT INTO own (a) VALUES (1)").startswith("error: a function"), "a default that differs")
    others = "INSERT INTO own VALUES (json('[1]'), upper(substr('abc', 2)) || round(2.5))"
    check(ask(others).startswith("ok"), others)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="sqlite_node")
    parser.add_argument("--checker", required=True, help="leasehold_check, or 'leasehold check'")
    parser.add_argument("--work", required=True, help="a folder for the replicas")
    parser.add_argument("--port", type=int, required=True, help="of the first replica; the others have the next two")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--read-limit", type=float, default=1.3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    shutil.rmtree(options.work, ignore_errors=True)
    os.makedirs(options.work)
    addresses = [f"127.0.0.1:{options.port + i}" for i in range(3)]
    replicas = [Replica(options.program, number, options.work, addresses) for number in (1, 2, 3)]
    history = History()
    try:
        made = "CREATE TABLE IF NOT EXISTS registers (name TEXT PRIMARY KEY, value INTEGER)"
        wait_for("a table", 30, lambda: replicas[0].ask(replicas[0].process, made)[0].startswith("ok"))
        what_differs_is_refused(replicas[0])
        clients = [Client(one, history, options.seed + one.number) for one in replicas]
        for client in clients:
            client.start()
        rounds(options, replicas, clients)
        for client in clients:
            client.stopped.set()
            client.join(ANSWER_S)
            check(not client.is_alive() and client.failure is None, f"a client: {client.failure}")
        seen_everywhere(replicas)
        time_reads(replicas, options.read_limit)
        for one in replicas:
            one.end()
    finally:
        for one in replicas:
            one.process.kill()
    linearizable, verdict = history.judge(*shlex.split(options.checker))
    print(f"history of {len(history)} calls: {verdict}")
    check(linearizable, "the history is not linearizable")
    all_contents = [contents(one) for one in replicas]
    check(all_contents[0] == all_contents[1] == all_contents[2], "the databases differ")
    copies = sum(one.copies for one in replicas)
    print(f"each replica has the same sound database; {copies} copies were sent to replicas that had been away")
    check(options.rounds < 4 or copies > 0, "no replica has needed a copy of the database")


if __name__ == "__main__":
    main()
