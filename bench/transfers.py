#!/usr/bin/env python3
"""How long do requests wait while the leadership is transferred by plan: Leasehold, and etcd where it
is installed, in one run, by turns.

Three members of each on loopback, with their defaults, their data on this disk. The same clients for
both: at each member a reader (linearizable) and a writer, each with a request every few milliseconds, and
none while one is unanswered. `LEASEHOLD TRANSFER` and `etcdctl move-leader` ask the leader, in blocks that
alternate A B B A; the next transfer waits until every client has been answered since the last. What is
reported is, for each transfer, the longest wait of a read and of a write at any member. etcd is spoken to
through its JSON gateway, which makes each request slower and changes the wait for a new leader little: "at
rest" says how long requests wait without a transfer, in spans of the same length."""

import argparse
import base64
import http.client
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from cluster import Cluster, MeasureError, Process, Resp, free_port, machine

TAIL_S = 0.03
START_DEADLINE_S = 30.0
KEYS = 16


def ports(count):
    found = set()
    while len(found) < count:
        found.add(free_port())
    return sorted(found)


class Leasehold:
    name = "Leasehold"

    def __init__(self, program, directory):
        self._cluster = Cluster(program, directory)
        self.members = [1, 2, 3]

    def start(self):
        self._cluster.start()

    def stop(self):
        self._cluster.stop()

    def leader(self):
        return self._cluster.wait_for_lease()

    def transfer(self, leader, to):
        connection = Resp(self._cluster.client_ports[leader])
        try:
            connection.command("LEASEHOLD", "TRANSFER", to)
        finally:
            connection.close()

    def client(self, member):
        connection = Resp(self._cluster.client_ports[member])
        return (lambda key: connection.command("GET", key),
                lambda key, value: connection.command("SET", key, value))


class Etcd:
    name = "etcd"

    def __init__(self, directory):
        self._directory = pathlib.Path(directory)
        self.members = [1, 2, 3]
        found = ports(6)
        self._ports = dict(zip(self.members, found[:3]))
        self._peer_ports = dict(zip(self.members, found[3:]))
        self._processes = []
        self._ids = {}

    def start(self):
        peers = ",".join(f"m{m}=http://127.0.0.1:{port}" for m, port in self._peer_ports.items())
        for member, port in self._ports.items():
            client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{self._peer_ports[member]}"
            self._processes.append(Process(
                f"etcd{member}",
                ["etcd", "--name", f"m{member}", "--data-dir", self._directory / f"e{member}",
                 "--listen-client-urls", client, "--advertise-client-urls", client,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", peers, "--initial-cluster-state", "new",
                 "--log-level", "error"], self._directory))
        self.leader()

    def stop(self):
        for process in self._processes:
            process.stop()

    @property
    def addresses(self):
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    @property
    def pids(self):
        return [process.pid for process in self._processes]

    def _post(self, connection, path, body):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise MeasureError(f"etcd answered {response.status}: {text[:200]!r}")
        return json.loads(text)

    def _status(self, member):
        connection = http.client.HTTPConnection("127.0.0.1", self._ports[member], timeout=10)
        try:
            return self._post(connection, "/v3/maintenance/status", {})
        finally:
            connection.close()

    def leader(self):
        """Once all follow the same one."""
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline:
            try:
                states = {member: self._status(member) for member in self.members}
                self._ids = {member: int(state["header"]["member_id"])
                             for member, state in states.items()}
                leaders = {int(state.get("leader", 0)) for state in states.values()}
                if len(leaders) == 1 and 0 not in leaders:
                    leader = leaders.pop()
                    return next(m for m, number in self._ids.items() if number == leader)
            except (OSError, MeasureError, http.client.HTTPException, StopIteration):
                pass
            time.sleep(0.02)
        raise MeasureError(f"etcd has no leader: see {self._directory}")

    def transfer(self, leader, to):
        done = subprocess.run(
            ["etcdctl", "--endpoints", f"127.0.0.1:{self._ports[leader]}", "move-leader",
             f"{self._ids[to]:x}"], env={"ETCDCTL_API": "3", "PATH": "/usr/bin:/bin"},
            executable=shutil.which("etcdctl"), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MeasureError(f"etcdctl move-leader: {done.stderr.strip()[-300:]}")

    def client(self, member):
        connection = http.client.HTTPConnection("127.0.0.1", self._ports[member], timeout=10)

        def coded(text):
            return base64.b64encode(text.encode()).decode()
        return (lambda key: self._post(connection, "/v3/kv/range", {"key": coded(key)}),
                lambda key, value: self._post(connection, "/v3/kv/put",
                                              {"key": coded(key), "value": coded(value)}))


class Load:
    """The clients of one system while the block runs."""

    def __init__(self, system, interval_s):
        self._system = system
        self._interval = interval_s
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self.done = []  # (kind, begun, end, failures)
        self._newest = {}  # by client: when its newest answered request began
        self._threads = [threading.Thread(target=self._run, args=(member, kind), daemon=True)
                         for member in system.members for kind in ("read", "write")]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for thread in self._threads:
            thread.join(20)

    def _run(self, member, kind):
        calls = self._system.client(member)
        time.sleep(random.random() * self._interval)
        number = 0
        while not self._stopping.is_set():
            time.sleep(self._interval)
            begun = time.monotonic()
            number += 1
            failures = 0
            while not self._stopping.is_set():
                try:
                    key = f"key{number % KEYS}"
                    calls[0](key) if kind == "read" else calls[1](key, f"{member}-{number}")
                    break
                except (OSError, MeasureError, http.client.HTTPException):
                    failures += 1
                    calls = self._system.client(member)
            with self._lock:
                self.done.append((kind, begun, time.monotonic(), failures))
                self._newest[(member, kind)] = begun

    def settle(self):
        """Until every client was answered a request that it made from now on."""
        since = time.monotonic()
        while time.monotonic() < since + START_DEADLINE_S:
            with self._lock:
                if len(self._newest) == len(self._threads) and min(self._newest.values()) > since:
                    return
            time.sleep(0.005)
        raise MeasureError(f"{self._system.name}: a client is not answered")

    def longest(self, begun, ended):
        """The longest wait, by kind, of requests between the two instants, and failed attempts."""
        found = {"read": 0.0, "write": 0.0}
        failures = 0
        with self._lock:
            part = list(self.done)
        for kind, sent, end, failed in part:
            if end >= begun and sent <= ended:
                found[kind] = max(found[kind], end - sent)
                failures += failed
        return found, failures


def block(system, count, interval_s, found):
    with Load(system, interval_s) as load:
        load.settle()
        windows, rests = [], []
        for _ in range(count):
            begun = time.monotonic()
            time.sleep(0.01)
            rests.append((begun, time.monotonic() + TAIL_S))
            time.sleep(0.1)
            leader = system.leader()
            to = random.choice([member for member in system.members if member != leader])
            begun = time.monotonic()
            system.transfer(leader, to)
            windows.append((begun, time.monotonic() + TAIL_S))
            time.sleep(0.1)
            load.settle()
    for name, spans in (("", windows), (" at rest", rests)):
        for span in spans:
            longest, failures = load.longest(*span)
            for kind, seconds in longest.items():
                found.setdefault(f"{system.name}, {kind}{name}", []).append(seconds * 1000)
            found.setdefault(f"{system.name}, failed attempts{name}", []).append(failures)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--program", default=root / "build/release/server/leasehold")
    parser.add_argument("--transfers", type=int, default=40, help="of each system")
    parser.add_argument("--blocks", type=int, default=4, help="of each system")
    parser.add_argument("--interval-ms", type=float, default=5)
    parser.add_argument("--directory", help="where the data goes; default: a temporary one")
    parser.add_argument("--json", help="write every figure to this file")
    options = parser.parse_args()
    sys.setswitchinterval(0.0002)
    found = {}
    with tempfile.TemporaryDirectory(prefix="leasehold-transfers-", dir=options.directory) as folder:
        systems = [Leasehold(options.program, folder)]
        if shutil.which("etcd") and shutil.which("etcdctl"):
            systems.append(Etcd(folder))
        else:
            print("etcd and etcdctl are not installed (Debian: etcd-server, etcd-client): "
                  "Leasehold alone")
        try:
            for system in systems:
                system.start()
            order = [system for pair in range((options.blocks + 1) // 2)
                     for system in systems + systems[::-1]]
            for system in order:
                block(system, max(options.transfers // options.blocks, 1),
                      options.interval_ms / 1000, found)
        finally:
            for system in systems:
                system.stop()
    print(f"{'the longest wait, ms':34} {'p50':>8} {'p90':>8} {'p99':>8} {'max':>8} {'n':>5}")
    for name, values in sorted(found.items()):
        if "failed" in name:
            print(f"{name:34} {sum(values):>8} in all")
        else:
            print(f"{name:34} " + " ".join(f"{quantile(values, share):8.1f}"
                                           for share in (0.5, 0.9, 0.99, 1)) + f" {len(values):5}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "found": found}, file, indent=1)


if __name__ == "__main__":
    try:
        main()
    except MeasureError as error:
        sys.exit(f"transfers.py: {error}")
