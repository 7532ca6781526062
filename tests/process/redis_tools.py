#!/usr/bin/env python3
"""The real redis-cli and redis-benchmark against every node. With --tls by TLS and as a user of a group that
takes no others, and what that user is refused."""

import os
import shutil
import subprocess

from cluster import PATIENT, check, main
from secured import SecuredCluster

COMMAND_SECONDS = 60
# redis-benchmark reads two settings of the server.
USERS = {"tools": "~cli:* ~key:* ~counter:* +@read +@write +@connection +info +cluster +config|get +acl|whoami"}


def arguments(parser):
    parser.add_argument("--requests", type=int, default=20000, help="per benchmark")
    parser.add_argument("--tls", action="store_true", help="by TLS and as a user")


class Tools:
    """What is run at one node. `access`: of SecuredCluster.environment, so nothing if the group is plain."""

    def __init__(self, node, access):
        self.node = node
        self.access = access

    def __repr__(self):
        return repr(self.node)

    def tls(self, authority="ACCESS", certificate=None):
        if not self.access:
            return []
        flags = ["--tls", "--cacert", self.access[f"{authority}_CA"]]
        if certificate:
            flags += ["--cert", self.access[f"{certificate}_CERT"], "--key", self.access[f"{certificate}_KEY"]]
        return flags

    def cli(self, *words, status=0):
        """By the user's password, which redis-cli takes from its environment."""
        if not self.access:
            return self.run("redis-cli", *words, status=status)
        return self.run("redis-cli", *self.tls(), "--user", self.access["ACCESS_USER"], *words, status=status,
                        password=self.access["ACCESS_PASSWORD"])

    def run(self, program, *words, status=0, password=None):
        command = [program, "-p", str(self.node.port), *words]
        run = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False,
                             env={**os.environ, **({"REDISCLI_AUTH": password} if password else {})})
        text = run.stdout + run.stderr
        check(run.returncode == status, f"{' '.join(command)}: status {run.returncode}: {text[-2000:]}")
        return text.rstrip("\n")


def expect(tools, words, answer, status=0):
    got = tools.cli(*words, status=status)
    check(got == answer, f"redis-cli {' '.join(words)} at {tools} printed {got!r}, not {answer!r}")


def speak(everywhere, tools):
    key = f"cli:{tools.node.id}"
    expect(tools, ["PING"], "PONG")
    expect(tools, ["ECHO", "hello"], "hello")
    expect(tools, ["SET", key, "1"], "OK")
    for reader in everywhere:
        expect(reader, ["GET", key], "1")
    expect(tools, ["INCR", key], "2")
    expect(tools, ["SET", key, "x", "NX"], "")
    expect(tools, ["SET", key, "x", "XX"], "OK")
    expect(tools, ["EXISTS", key, "cli:nothing"], "1")
    expect(tools, ["DEL", key], "1")
    expect(tools, ["GET", key], "")
    expect(tools, ["SELECT", "0"], "OK")
    expect(tools, ["-3", "SET", key, "resp3"], "OK")
    expect(tools, ["-3", "GET", key], "resp3")
    check("# Replication" in tools.cli("INFO"), "INFO lacks a section")
    check("not supported" in tools.cli("SAVE"), "SAVE was not refused")


def follow_cluster(everywhere):
    """redis-cli in cluster mode: it finds every key from any node."""
    for tools in everywhere:
        for i in range(5):
            check(tools.cli("-c", "SET", f"cli:cluster:{i}", str(tools.node.id)) == "OK", "SET with -c")
            check(tools.cli("-c", "GET", f"cli:cluster:{i}") == str(tools.node.id), "GET with -c")
        slots = tools.cli("CLUSTER", "SLOTS").split()
        check(slots[:2] == ["0", "16383"] and len(slots) >= 5, f"CLUSTER SLOTS: {slots}")
        scanned = tools.cli("--scan", "--pattern", "cli:cluster:?").split()
        check(sorted(scanned) == [f"cli:cluster:{i}" for i in range(5)], f"--scan found {scanned}")


def benchmark(tools, requests, *flags):
    text = tools.run("redis-benchmark", *login(tools), "-t", "ping,get,set,incr,mset", "-n", str(requests), "-c", "20",
                     "-q", *flags)
    lines = [line.strip() for line in text.replace("\r", "\n").split("\n")
             if "requests per second" in line]
    lower = text.lower()
    for word in ("error", "warning", "noleader", "tryagain", "unknownoutcome", "noauth", "noperm"):
        check(word not in lower, f"redis-benchmark at {tools} complains: {text[-2000:]}")
    check(len(lines) == 6, f"redis-benchmark at {tools} ran {len(lines)} of 6 tests: {text[-2000:]}")
    for line in lines:
        print(f"{tools} {' '.join(flags) or '-P 1'}: {line}", flush=True)


def login(tools, **changes):
    """redis-benchmark takes a password only from its command line."""
    access = {**tools.access, **changes}
    return [*tools.tls(), "--user", access["ACCESS_USER"], "-a", access["ACCESS_PASSWORD"]] if access else []


def refusals(tools):
    user, password = tools.access["ACCESS_USER"], tools.access["ACCESS_PASSWORD"]
    for what, said, text in (
            ("a wrong password", "WRONGPASS", tools.run("redis-cli", *tools.tls(), "--user", user, "PING",
                                                        password="wrong")),
            ("no user", "NOAUTH Authentication required.", tools.run("redis-cli", *tools.tls(), "PING")),
            ("another key", "NOPERM No permissions to access a key", tools.cli("GET", "forbidden")),
            ("a command of operators", "'leasehold|member' command", tools.cli("LEASEHOLD", "MEMBER", "LIST")),
            ("a server of another authority", "certificate verify failed", tools.run(
                "redis-cli", *tools.tls("ACCESS_OTHER"), "PING", status=1)),
            ("a certificate of another authority", "Error: ", tools.run(
                "redis-cli", *tools.tls(certificate="ACCESS_OTHER"), "PING", status=1)),
            ("no TLS", "this port speaks TLS only", tools.run("redis-cli", "PING")),
            ("a benchmark with a wrong password", "WRONGPASS", tools.run(
                "redis-benchmark", *login(tools, ACCESS_PASSWORD="wrong"), "-t", "get", "-n", "1", status=1)),
            ("a benchmark without a user", "NOAUTH", tools.run(
                "redis-benchmark", *tools.tls(), "-t", "get", "-n", "1", status=1)),
            ("a benchmark on another key", "NOPERM", tools.run(
                "redis-benchmark", *login(tools), "-n", "1", "GET", "forbidden", status=1))):
        check(said in text, f"{what} at {tools}: {text!r} does not say {said!r}")
        check(password not in text, f"{what} at {tools}: a tool shows the password")
    who = tools.run("redis-cli", *tools.tls(certificate="ACCESS"), "ACL", "WHOAMI")
    check(who == user, f"the user of a certificate is {who!r}")


def run(options):
    for name in ("redis-cli", "redis-benchmark"):
        check(shutil.which(name), f"{name} is not installed: see packages-develop.txt")
    with SecuredCluster(options.binary, USERS if options.tls else None, flags=PATIENT, keep=options.keep) as cluster:
        leader = cluster.start()
        print(f"{leader} leads")
        everywhere = [Tools(node, cluster.environment("tools")) for node in cluster.nodes]
        for tools in everywhere:
            speak(everywhere, tools)
            if options.tls:
                refusals(tools)
        follow_cluster(everywhere)
        before = {node.id: node.status() for node in cluster.nodes}
        for tools in everywhere:
            benchmark(tools, options.requests)
            benchmark(tools, options.requests, "-P", "16")
        for node in cluster.nodes:
            status = node.status()
            for kind, name in (("clients", "commands_refused"), ("clients", "protocol_errors"),
                               ("writes", "dropped"), ("writes", "unknown"), ("reads", "refused")):
                more = status[kind][name] - before[node.id][kind][name]
                check(more == 0, f"{node}: {kind} {name} rose by {more}")
            check(status["term"] == before[node.id]["term"], "the leader changed meanwhile")


if __name__ == "__main__":
    main(__doc__, run, arguments)
