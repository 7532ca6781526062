"""Starts what is measured: a cluster of three nodes, the floors, Redis; and asks them things."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from ports import free_port

START_DEADLINE_S = 30.0


class MeasureError(Exception):
    """Something that makes the run worthless, in a sentence for a person."""


class Resp:
    """A blocking connection in the Redis protocol, for a few questions."""

    def __init__(self, port, timeout=10.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    @staticmethod
    def request(words):
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                                     for word in encoded)

    def command(self, *words):
        self.socket.sendall(self.request(words))
        return self.reply()

    def pipeline(self, commands):
        """Sends all of them at once. Few enough that their replies fit into the buffers between."""
        self.socket.sendall(b"".join(map(self.request, commands)))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"-":
            raise MeasureError(f"the server answered: {rest.decode()}")
        if kind == b"$":
            if rest == b"-1":
                return None
            return self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        raise MeasureError(f"not a reply: {line!r}")


class Process:
    """A child process with a log file."""

    def __init__(self, name, arguments, log_dir, read_address=False, environment=None):
        self.name = name
        self.log_path = pathlib.Path(log_dir) / f"{name}.log"
        self.log = open(self.log_path, "ab")
        self.child = subprocess.Popen(
            [str(argument) for argument in arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if read_address else self.log, stderr=self.log,
            env={**os.environ, **(environment or {})})
        self.port = None
        if read_address:
            line = self.child.stdout.readline().decode()
            if not line.startswith("listening "):
                raise MeasureError(f"{name} did not start: see {self.log_path}")
            self.port = int(line.rsplit(":", 1)[1])

    @property
    def pid(self):
        return self.child.pid

    def tree(self):
        """The process and its children."""
        pids = [self.pid]
        for pid in pids:
            for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                pids += [int(child) for child in children.read_text().split()]
        return pids

    def stop(self, how=signal.SIGTERM):
        if self.child.poll() is None:
            self.child.send_signal(how)
            try:
                self.child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.log.close()


def cpu_ns(pids):
    """CPU time that the processes have used so far."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except (OSError, ValueError, IndexError):
                pass  # the thread has ended
    return total


def pin(pids, cores):
    """Lets every thread of the processes run on `cores` only."""
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            try:
                os.sched_setaffinity(int(task.name), cores)
            except OSError:
                pass  # the thread has ended


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise MeasureError(f"process {pid} has no resident memory: it has ended")


class Cluster:
    """Replicas of `leasehold serve` on loopback, three unless `members` says more; `flags` gives those of a node by its
    number, `environment` what its environment has besides, and `before` the words of a program that runs it."""

    def __init__(self, program, directory, flags=lambda node: [], members=3, environment=lambda node: {}, before=()):
        self.program = program
        self.flags = flags
        self.environment = environment
        self.before = before
        self.directory = pathlib.Path(directory)
        self.client_ports = {node: free_port() for node in range(1, members + 1)}
        peer_ports = {node: free_port() for node in self.client_ports}
        self.peers = ",".join(f"{node}=127.0.0.1:{port}" for node, port in peer_ports.items())
        self.processes = {}

    def start(self, deadline_s=START_DEADLINE_S):
        for node in self.client_ports:
            self.start_node(node)
        return self.wait_for_lease(deadline_s)

    def start_node(self, node):
        self.processes[node] = Process(
            f"node{node}",
            [*self.before, self.program, "serve", "--id", node, "--data-dir", self.directory / f"n{node}",
             "--peers", self.peers, "--listen", f"127.0.0.1:{self.client_ports[node]}", *self.flags(node)],
            self.directory, environment=self.environment(node))

    def stop(self, how=signal.SIGTERM):
        for process in self.processes.values():
            if process.child.poll() is None:
                process.child.send_signal(how)
        for process in self.processes.values():
            process.stop(how)
        self.processes = {}

    def status(self, node):
        connection = Resp(self.client_ports[node])
        try:
            return json.loads(connection.command("LEASEHOLD", "STATUS"))
        finally:
            connection.close()

    def leader_counters(self, leader):
        status = self.status(leader)
        if status["role"] != "leader":
            raise MeasureError(f"node {leader} lost the leadership during the run; measure again")
        return {"term": status["term"], "last": status["last"], "log_bytes": status["log_bytes"],
                **status["reads"], **status["node"]}

    def wait_for_lease(self, deadline_s=START_DEADLINE_S):
        """The node that leads with a valid lease and that all follow."""
        deadline = time.monotonic() + deadline_s
        while time.monotonic() < deadline:
            for node, process in self.processes.items():
                if process.child.poll() is not None:
                    raise MeasureError(f"node {node} ended: see {process.log_path}")
            try:
                states = {node: self.status(node) for node in self.client_ports}
            except OSError:
                states = {}
            leaders = {state["leader"] for state in states.values()}
            leader = leaders.pop() if len(leaders) == 1 else None
            if leader in states and states[leader]["lease_left"] > 0:
                return leader
            time.sleep(0.02)
        raise MeasureError(f"no leader with a lease in {deadline_s:g} s: see {self.directory}")


def start_redis(directory, tls=None, flags=(), before=()):
    """A Redis without persistence, or None where there is no redis-server. `tls`: certificate, key and authority; then
    it has a `tls_port` too. `before`: the words of a program that runs it."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    port = free_port()
    tls_port = free_port() if tls else None
    protection = ["--tls-port", tls_port, "--tls-cert-file", tls[0], "--tls-key-file", tls[1], "--tls-ca-cert-file",
                  tls[2], "--tls-auth-clients", "no"] if tls else []
    process = Process("redis-tls" if tls else "redis", [*before, program, "--port", port, "--save", "",
                                                        "--appendonly", "no", "--dir", directory, *protection,
                                                        *flags], directory)
    process.port, process.tls_port = port, tls_port
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            connection = Resp(port)
            connection.command("PING")
            connection.close()
            return process
        except OSError:
            time.sleep(0.02)
    raise MeasureError(f"redis-server did not start: see {process.log_path}")


def load(programs, command, port, keys, value_bytes, history=None, judged_keys=1):
    """`load` writes every key once, pipelined, `verify` reads it back. Returns the seconds. `history`: a file, for what
    was asked of the first `judged_keys` and answered."""
    recorded = ["--history", history] if history else []
    done = subprocess.run(
        [str(word) for word in (
            programs / "bench_client", "--keys", keys, "--value-bytes", value_bytes, "--judged-keys", judged_keys,
            command, "--address", f"127.0.0.1:{port}", "--depth", 512, *recorded)], capture_output=True, text=True)
    if done.returncode != 0:
        raise MeasureError(f"{command}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if result["failures"]:
        raise MeasureError(f"{command}: {result['failures']} of {keys} keys are wrong, the first "
                           f"is {result['first_failure']!r}")
    return result["elapsed_ns"] / 1e9


class Client:
    """bench_client in its mode `blocks`: one block at a time. A target is an operation and a port or an
    address. `flags` are further ones of the program, not of the mode. `judges`: of targets, by their names."""

    def __init__(self, program, targets, setups, keys, value_bytes, warmup, log_dir, flags=(), judges=None):
        self.warmup = warmup
        judges = judges or {}
        judged = ["--judged-keys", max(judge.keys for judge in judges.values())] if judges else []
        arguments = [program, "--keys", keys, "--value-bytes", value_bytes, *flags, *judged, "blocks",
                     "--warmup", warmup]
        for name, (operation, place) in targets.items():
            address = place if isinstance(place, str) else f"127.0.0.1:{place}"
            arguments += ["--target", f"{name}={operation}@{address}"]
        for name, words in setups.items():
            arguments += ["--setup", f"{name}={words}"]
        for name, judge in judges.items():
            arguments += ["--history", f"{name}={judge.file()}"]
        self.log_path = pathlib.Path(log_dir) / "client.log"
        self.log = open(self.log_path, "ab")
        self.child = subprocess.Popen([str(argument) for argument in arguments], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=self.log)

    def block(self, name, operations):
        self.child.stdin.write(f"{name} {operations}\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            message = self.log_path.read_text().strip().splitlines()
            raise MeasureError(f"bench_client ended: {message[-1] if message else 'no message'}")
        result = json.loads(line)
        if result["failures"]:
            raise MeasureError(f"{name}: {result['failures']} of {operations} requests failed, "
                               f"the first with {result['first_failure']!r}")
        return result

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.log.close()


def machine():
    """What the figures depend on."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"processor": model, "cores": os.cpu_count(), "kernel": os.uname().release,
            "load_average_at_start": os.getloadavg()[0]}
