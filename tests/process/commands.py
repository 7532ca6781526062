#!/usr/bin/env python3
"""Every command of the table, one by one, at every node of a cluster of three; and the same at a
redis-server, whose replies have to be the same bytes but where command_cases.py says why not."""

import os
import re
import shutil
import socket
import subprocess

from cluster import Cluster, Failed, check, free_port, main, wait_for
from command_cases import CASES
import resp

REPLY_SECONDS = 10
FAILURES_SHOWN = 30


def arguments(parser):
    parser.add_argument("--docs", help="docs/resp.md, which has to name every command")


class RawClient:
    """Returns replies as the bytes that came."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=REPLY_SECONDS)
        self._file = self._socket.makefile("rb")

    def close(self):
        self._file.close()
        self._socket.close()

    def call(self, words):
        self._socket.sendall(resp.encode(*words))
        return self.read()

    def read(self):
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise resp.ConnectionLost(f"in the midst of a reply: {line!r}")
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=!" and rest != b"-1":
            return line + self._file.read(int(rest) + 2)
        if kind in b"*%~>":
            count = int(rest) * (2 if kind == b"%" else 1)
            return line + b"".join(self.read() for _ in range(max(count, 0)))
        return line


def sorted_reply(raw):
    """The pieces of a reply, in order: two replies that differ in order alone are equal."""
    return sorted(raw.split(b"\r\n"))


class Redis:
    """A redis-server of its own. Context manager."""

    def __init__(self, folder):
        self.port = free_port()
        self._process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir",
             folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        wait_for("redis-server to answer", 10, self._answers)
        return self

    def _answers(self):
        try:
            with resp.Client(self.port, 1) as client:
                return client.call("PING") == "PONG"
        except (resp.ConnectionLost, resp.TimedOut):
            return False

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()


def empty(port):
    with resp.Client(port, REPLY_SECONDS) as client:
        keys = client.call("KEYS", "*")
        if keys:
            client.call("DEL", *keys)
        # Redis counts a key that has expired until it gets round to removing it, and no KEYS shows it.
        if client.call("DBSIZE") != 0:
            client.call("FLUSHALL")


def tell(port, case, protocol):
    client = RawClient(port)
    try:
        if protocol == 3:
            client.call(["HELLO", "3"])
        replies = []
        for words in case.story:
            try:
                replies.append(client.call(words))
            except socket.timeout as error:
                raise resp.TimedOut(f"{words} at port {port}") from error
        return replies
    finally:
        client.close()


def judge(case, node, protocol, our_replies, redis_replies):
    where = f"{node}, RESP{protocol}"
    last = len(case.story) - 1
    for i, (words, our) in enumerate(zip(case.story, our_replies)):
        special = i == last and case.kind in ("differs", "ours")
        if special:
            check(re.match(case.pattern, our), f"{where}: {words} was answered {our[:200]!r}, which "
                                               f"does not fit {case.pattern!r}")
        if case.kind == "ours":
            continue
        theirs = redis_replies[i]
        if special:
            check(our != theirs, f"{where}: {words} is answered as in Redis, {our[:200]!r}: the "
                                 "difference is gone, take it off the list")
        elif case.kind == "unordered":
            check(sorted_reply(our) == sorted_reply(theirs),
                  f"{where}: {words} was answered {our[:300]!r}, by Redis {theirs[:300]!r}")
        else:
            check(our == theirs,
                  f"{where}: {words} was answered {our[:200]!r}, by Redis {theirs[:200]!r}")


def check_coverage(node, docs):
    """Every command of the table has a case, and a place in the docs."""
    with node.client() as client:
        described = client.call("COMMAND", "DOCS")
    names = []
    for name, facts in zip(described[::2], described[1::2]):
        names.append(name.decode())
        facts = dict(zip(facts[::2], facts[1::2]))
        names += [sub.decode() for sub in facts.get(b"subcommands", [])[::2]]
    covered = {name for case in CASES for name in case.covers}
    check(not set(names) - covered, f"no case for {sorted(set(names) - covered)}")
    check(not covered - set(names), f"cases for what is no command: {sorted(covered - set(names))}")
    if docs:
        with open(docs, encoding="utf-8") as page:
            text = page.read()
        words = set(re.findall(r"[A-Z][A-Z-]+(?:\.[A-Z]+)*", text))
        missing = [name for name in names
                   if not set(name.upper().split("|")) <= words]
        check(not missing, f"docs/resp.md does not name {missing}")
    print(f"{len(names)} commands and subcommands, all of them covered")


def run(options):
    check(shutil.which("redis-server"), "redis-server is not installed: see packages-develop.txt")
    with Cluster(options.binary, keep=options.keep) as cluster:
        ports = {node.id: node.port for node in cluster.nodes}
        addresses = ",".join(f"{i}=127.0.0.1:{port}" for i, port in ports.items())
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
        leader = cluster.start()
        check_coverage(leader, options.docs)
        followers = cluster.others(leader)
        with Redis(cluster.folder) as redis:
            replies = compared = 0
            failures = []
            for number, case in enumerate(CASES):
                # Each case at the leader in both protocols, and at a follower in one.
                for node, protocol in ((leader, 2), (leader, 3),
                                       (followers[number % 2], 2 + number // 2 % 2)):
                    empty(node.port)
                    empty(redis.port)
                    our = tell(node.port, case, protocol)
                    theirs = tell(redis.port, case, protocol) if case.kind != "ours" else None
                    try:
                        judge(case, node, protocol, our, theirs)
                    except Failed as failure:
                        failures.append(str(failure))
                    replies += len(our)
                    compared += len(our) if theirs is not None else 0
        check(not failures, f"{len(failures)} replies are wrong:\n  " +
              "\n  ".join(failures[:FAILURES_SHOWN]))
        reasons = {}
        for case in CASES:
            if case.kind == "differs":
                reasons.setdefault(case.reason, []).append(" ".join(case.story[-1]))
        print(f"{len(CASES)} stories, {replies} replies, {compared} of them beside those of Redis. "
              "Differences on purpose:")
        for reason, commands in sorted(reasons.items()):
            print(f"  {reason}: {'; '.join(commands)}")


if __name__ == "__main__":
    main(__doc__, run, arguments)
