#!/usr/bin/env python3
"""Cluster clients of other projects, unmodified: ruby-redis, phpredis and redis-py of Debian, ioredis of npm, and
go-redis. Each writes and reads without a pause while leaders are killed, one after the other: after each kill it has
to go on by itself, on the object that it has, and nothing that was acknowledged is lost. With --groups the slots are
shared by many groups, and before each kill leaders move from node to node; all the while slots move from group to
group, and at first, before any kill, no call of a client may fail.

A client that is not installed is skipped, and the test says so. ioredis is taken from --ioredis, else npm fetches it
into the folder of the test; go-redis from --go-redis, else Go builds it. With --tls by TLS and as a user of a group
that takes no others."""

import collections
import os
import random
import subprocess
import threading
import time

import moving_slots
from cluster import Failed, Skipped, built, check, main, wait_for
from foreign_programs import go_program, ioredis_modules
from secured import SecuredCluster

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = ("ruby", "php", "redis-py", "ioredis", "go-redis")
# What a client may take for one call, and again for the call that asks for the layout.
GOES_ON_SECONDS = 20
MORE_VALUES = 20
# Of a client whose call meets a slot that moves.
MOVES = ("slot of the key is moving", "is not of this group")
USERS = {name: f"~{name}:* +@read +@write +@connection +info +cluster +command" for name in CLIENTS}


def arguments(parser):
    parser.add_argument("--clients", default=",".join(CLIENTS), help=f"of {', '.join(CLIENTS)}")
    parser.add_argument("--tls", action="store_true", help="by TLS and as a user")
    parser.add_argument("--kills", type=int, default=20, help="of leaders")
    parser.add_argument("--groups", type=int, default=1, help="that share the slots")
    parser.add_argument("--moving-seconds", type=float, default=20,
                        help="with --groups: how long slots move before the first kill")
    parser.add_argument("--passes-on", default="", metavar="A,B",
                        help="clients that are known to show their callers -TRYAGAIN of a slot that moves")
    parser.add_argument("--ioredis", metavar="FOLDER", help="a node_modules folder that has ioredis")
    parser.add_argument("--go-redis", metavar="PROGRAM", type=built, help="the program of clients/cluster_go_redis.go")


def works(*command, environment=None):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                              env=environment).returncode == 0
    except FileNotFoundError:
        return False


class Client:
    """A program of clients/, and what it says."""

    def __init__(self, name, options, cluster):
        self.name = name
        self.acknowledged = set()
        self.failed = collections.Counter()
        self.wrong = []
        environment = {**os.environ, **cluster.environment(name)}
        if name == "ruby":
            command, file = ["ruby"], "cluster_ruby.rb"
            if not works("ruby", "-e", "require 'redis'"):
                raise Skipped("ruby: ruby-redis is not here: make deps installs it")
        elif name == "php":
            command, file = ["php", "-d", "display_errors=0", "-d", "log_errors=0"], "cluster_php.php"
            if not works("php", "-d", "display_errors=stderr", "-r", "exit(class_exists('RedisCluster') ? 0 : 1);"):
                raise Skipped("php: php-cli and php-redis are not here: make deps installs them")
        elif name == "redis-py":
            # Debian's redis-py is there for Debian's Python.
            command, file = ["/usr/bin/python3", "-B"], "cluster_redis_py.py"
            if not works("/usr/bin/python3", "-c", "import redis.cluster"):
                raise Skipped("redis-py: python3-redis is not here: make deps installs it")
        elif name == "go-redis":
            command, file = [go_program(options.go_redis, "cluster_go_redis", cluster.folder)], None
        else:
            command, file = ["nodejs"], "cluster_ioredis.js"
            environment["NODE_PATH"] = ioredis_modules(options.ioredis, cluster.folder)
            if not works("nodejs", "-e", "require('ioredis')", environment=environment):
                raise Skipped("ioredis: nodejs cannot load it")
        if file:
            command.append(f"{HERE}/clients/{file}")
        ports = [str(node.port) for node in cluster.nodes]
        self._process = subprocess.Popen([*command, *ports],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, env=environment)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "ok":
                self.acknowledged.add(int(rest))
            elif word == "failed":
                self.failed[rest[:80]] += 1
            elif word:
                self.wrong.append(line.strip())

    def goes_on(self, seconds):
        """It writes MORE_VALUES from here on. Returns the time to the first one."""
        before = len(self.acknowledged)
        begun = time.monotonic()
        try:
            wait_for(f"{self.name} to write again", seconds,
                     lambda: len(self.acknowledged) > before or not self.running)
            first = time.monotonic() - begun
            wait_for(f"{self.name} to go on", seconds,
                     lambda: len(self.acknowledged) >= before + MORE_VALUES or not self.running)
        except Failed as error:
            raise Failed(f"{error}; it said {dict(self.failed)} {self.wrong[:5]}") from error
        check(self.running, f"{self.name} ended by itself: {self.wrong} {dict(self.failed)}")
        return first

    def met_moves(self):
        """How many of its calls failed because a slot moved."""
        return sum(count for text, count in self.failed.items() if any(word in text for word in MOVES))

    @property
    def running(self):
        return self._process.poll() is None

    def finish(self):
        self._process.stdin.close()
        status = self._process.wait(20)
        self._reader.join(20)
        check(status == 0, f"{self.name} ended with {status}: {self.wrong}")
        check(not self.wrong, f"{self.name}: {self.wrong[:5]}")

    def kill(self):
        self._process.kill()
        self._process.wait()


def move_leaders(cluster, groups):
    """A few groups get other leaders. A group that has none at the moment, or transfers, stays as it is."""
    for _ in range(max(1, groups // 4)):
        group = random.randint(1, groups)
        node = random.choice(cluster.nodes)
        with node.client() as client:
            check(client.call("LEASEHOLD", "GROUP", group) == "OK", f"LEASEHOLD GROUP {group}")
            client.call("LEASEHOLD", "TRANSFER")


def kill_leaders(options, cluster, clients):
    longest = dict.fromkeys((client.name for client in clients), 0.0)
    for number in range(options.kills):
        leader = cluster.wait_leader()
        if options.groups > 1:
            move_leaders(cluster, options.groups)
            # Each node leads some of them.
            leader = random.choice(cluster.nodes)
        leader.kill()
        for client in clients:
            took = client.goes_on(GOES_ON_SECONDS * options.slack)
            longest[client.name] = max(longest[client.name], took)
        cluster.wait_leader(among=cluster.others(leader))
        leader.start()
        cluster.wait_caught_up(leader)
        print(f"kill {number + 1}: all go on", flush=True)
    return longest


def while_slots_move(options, cluster, clients):
    """Nothing else happens, so no call may fail. Then leaders die, and no call may fail for a slot that moves."""
    longest = {}
    with moving_slots.MovingSlots(cluster, options.groups) as moving:
        failed = {client: sum(client.failed.values()) for client in clients}
        until = time.monotonic() + options.moving_seconds
        while time.monotonic() < until:
            time.sleep(0.2)
            moving.check()
        for client in clients:
            client.goes_on(GOES_ON_SECONDS * options.slack)
            failed[client] = sum(client.failed.values()) - failed[client]
            print(f"{client.name}: {len(client.acknowledged)} values written, {failed[client]} calls failed: "
                  f"{dict(client.failed)}", flush=True)
        print(moving.summary(), flush=True)
        wrong = [client for client in clients if failed[client] > client.met_moves()]
        check(not wrong, f"calls failed while slots moved: {[(client.name, dict(client.failed)) for client in wrong]}")
        longest = kill_leaders(options, cluster, clients)
    moving.settle(GOES_ON_SECONDS * options.slack)
    print(moving.summary(), flush=True)
    for client in clients:
        if client.met_moves():
            print(f"{client.name}: {client.met_moves()} calls failed for slots that moved", flush=True)
    known = options.passes_on.split(",")
    wrong = [client.name for client in clients if client.met_moves() and client.name not in known]
    check(not wrong, f"calls of {wrong} failed for slots that moved")
    return longest


def read_back(cluster, client):
    with cluster.wait_leader().client(30) as reader:
        for number in sorted(client.acknowledged):
            value = reader.call("GET", f"{client.name}:{number}")
            check(value == str(number).encode(), f"{client.name}:{number} was acknowledged and is {value!r}")


def start_clients(options, cluster):
    clients = []
    skipped = []
    for name in options.clients.split(","):
        check(name in CLIENTS, f"{name} is none of {CLIENTS}")
        try:
            clients.append(Client(name, options, cluster))
        except Skipped as reason:
            skipped.append(str(reason))
            print(f"skipped: {reason}", flush=True)
    if not clients:
        raise Skipped("; ".join(skipped))
    return clients


def run(options):
    with SecuredCluster(options.binary, USERS if options.tls else None, keep=options.keep) as cluster:
        addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in cluster.nodes)
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
            if options.groups > 1:
                node.flags += ["--groups", str(options.groups)]
        cluster.start()
        clients = start_clients(options, cluster)
        try:
            for client in clients:
                client.goes_on(GOES_ON_SECONDS * options.slack)
            longest = (while_slots_move if options.groups > 1 else kill_leaders)(options, cluster, clients)
            for client in clients:
                client.finish()
                read_back(cluster, client)
        finally:
            for client in clients:
                client.kill()
        for client in clients:
            print(f"{client.name}: {len(client.acknowledged)} values written and kept, "
                  f"{sum(client.failed.values())} calls failed, at most {longest[client.name]:.1f} s "
                  f"without one; {options.kills} leaders of {options.groups} groups died")


if __name__ == "__main__":
    main(__doc__, run, arguments)
