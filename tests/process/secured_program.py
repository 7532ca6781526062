#!/usr/bin/env python3
"""The leasehold program, and with it the library of client/, by TLS and as a user of a group that takes no others:
with a password from a file and from the environment, and with the user's certificate. What the user is refused."""

import os
import signal
import subprocess
import time

from cluster import check, main
from secured import SecuredCluster

SECONDS = 60
USERS = {
    "app": "~app:* ~leasehold/queue/app:* +@read +@write +@connection +@lease -@lease-others +@leasehold "
           "-@cluster-admin",
    # docs/operations.md (Users) names these: the queue of a lock is keys.
    "locker": "~leasehold/queue/job/* +@lease -@lease-others +set +leasehold|range +leasehold|watch "
              "+leasehold|unwatch",
}


class Program:
    """Run as one of USERS."""

    def __init__(self, cluster, user):
        self.user = user
        self._binary = cluster.binary
        self._servers = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
        self.access = cluster.environment(user)
        self.password_file = cluster.path(f"{user}.password")
        with open(self.password_file, "w", encoding="utf-8") as file:
            file.write(self.access["ACCESS_PASSWORD"] + "\n")
        os.chmod(self.password_file, 0o600)

    def by_file(self):
        return ["--tls-ca", self.access["ACCESS_CA"], "--user", self.user, "--password-file", self.password_file], {}

    def by_environment(self, password=None):
        return ["--user", self.user], {"LEASEHOLD_TLS_CA": self.access["ACCESS_CA"],
                                   "LEASEHOLD_PASSWORD": password or self.access["ACCESS_PASSWORD"]}

    def by_certificate(self, authority="ACCESS", shown="ACCESS"):
        return ["--tls-ca", self.access[f"{authority}_CA"], "--tls-cert", self.access[f"{shown}_CERT"],
                "--tls-key", self.access[f"{shown}_KEY"]], {}

    def start(self, way, command, *words):
        flags, environment = way
        return subprocess.Popen([self._binary, command, "--servers", self._servers, *flags, *words],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, **environment})

    def run(self, way, *words):
        process = self.start(way, *words)
        try:
            text, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
        check(self.access["ACCESS_PASSWORD"] not in text, f"{words} shows the password")
        return process.returncode, text.strip()

    def expect(self, way, words, said):
        status, text = self.run(way, *words)
        check(status == 0 and said in text, f"{words}: status {status}, {text!r}, not {said!r}")

    def refused(self, way, words, said):
        status, text = self.run(way, *words)
        check(status != 0 and said in text, f"{words}: status {status}, {text!r}, not {said!r}")


def commands(program, way):
    program.expect(way, ["put", "app:key", "value"], "OK")
    program.expect(way, ["get", "app:key"], "value")
    program.expect(way, ["status"], "leader")
    program.expect(way, ["lock", "app:lock", "--", "echo", "held"], "held")
    until_line(program.start(way, "elect", "app:office"), "elected")
    program.expect(way, ["lease", "list"], "")


def until_line(process, said, meanwhile=lambda: None):
    """Reads its lines until one has `said`, and ends it by a signal. `meanwhile`: after the first line."""
    try:
        lines = [process.stdout.readline()]
        meanwhile()
        while said not in lines[-1] and lines[-1]:
            lines.append(process.stdout.readline())
        check(said in lines[-1], f"{process.args[1]}: {lines}, not {said!r}")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
        check(process.returncode == 0, f"{process.args[1]} ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()


def watch(program, way):
    """It prints what exists, then what another way to log in writes."""
    value = os.urandom(8).hex()
    until_line(program.start(way, "watch", "--prefix", "app:", "--existing", "--values"), value,
               lambda: program.expect(program.by_file(), ["put", "app:watched", value], "OK"))


def refusals(program):
    good = program.by_file()
    program.refused(program.by_environment("wrong"), ["get", "app:key"], "WRONGPASS")
    program.refused((["--tls-ca", program.access["ACCESS_CA"]], {}), ["get", "app:key"], "NOAUTH")
    program.refused(good, ["get", "forbidden"], "NOPERM")
    program.refused(good, ["lock", "forbidden", "--", "true"], "NOPERM")
    began = time.monotonic()
    for words in (["member", "remove", "3"], ["snapshot"], ["transfer"], ["backup", "night"]):
        program.refused(good, words, "NOPERM")
    check(time.monotonic() - began < 5, "a user without the right was asked to wait")
    program.refused(program.by_certificate(authority="ACCESS_OTHER"), ["status"], "certificate verify failed")
    program.refused(program.by_certificate(shown="ACCESS_OTHER"), ["status"], "alert unknown ca")


def lock_alone(program):
    """With no right but to take one lock: two compete for it."""
    way = program.by_file()
    first = program.start(way, "lock", "job", "--", "sleep", "0.5")
    try:
        program.expect(way, ["lock", "job", "--", "echo", "second"], "second")
        text, _ = first.communicate(timeout=SECONDS)
        check(first.returncode == 0, f"lock as {program.user}: {first.returncode}, {text!r}")
    finally:
        first.kill()
    program.refused(way, ["lock", "another", "--", "true"], "NOPERM")
    program.refused(way, ["get", "leasehold/queue/job/1"], "NOPERM")


def run(options):
    with SecuredCluster(options.binary, USERS, keep=options.keep) as cluster:
        cluster.start()
        program = Program(cluster, "app")
        for way in (program.by_file(), program.by_environment(), program.by_certificate()):
            commands(program, way)
            watch(program, way)
        refusals(program)
        lock_alone(Program(cluster, "locker"))
        print("put, get, status, lock, elect, lease and watch, with a password and with a certificate")


if __name__ == "__main__":
    main(__doc__, run)
