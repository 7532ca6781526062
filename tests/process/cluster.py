"""Three real `leasehold serve` processes on free ports of the loopback interface, under a temporary
folder, and what a test does to them. Whatever happens, no process outlives the test."""

import argparse
import atexit
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import resp

# Behind this folder: both have a cluster.py.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
from ports import free_port  # noqa: E402

PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000
LOG_LINES_SHOWN = 30
SKIPPED_STATUS = 77
# What no node may ever say, whether the test notices its end or not.
BUGS = ("assertion failed", "Sanitizer", "runtime error:", "terminate called")


class Failed(Exception):
    """The test's own verdict."""


class Skipped(Exception):
    """What the test needs is not here."""


def check(condition, message):
    if not condition:
        raise Failed(message)


def snapshot_files(node):
    """What has arrived of a snapshot and is kept; the first one makes the folder."""
    folder = os.path.join(node.data_dir, "snapshot")
    return os.listdir(folder) if os.path.isdir(folder) else []


def wait_for(what, seconds, probe, pause=0.01):
    """The first true value of probe(). Fails after `seconds`, naming `what` and the last error."""
    deadline = time.monotonic() + seconds
    trouble = None
    while True:
        try:
            value = probe()
            if value:
                return value
        except (resp.ConnectionLost, resp.TimedOut) as error:
            trouble = error
        if time.monotonic() >= deadline:
            because = f" (the last error: {trouble})" if trouble else ""
            raise Failed(f"waited {seconds} s in vain for {what}{because}")
        time.sleep(pause)


def built(path):
    """The type of a flag that names a program or a library of the build."""
    if not os.path.isfile(path):
        raise argparse.ArgumentTypeError(f"{path} does not exist: build it first (README.md)")
    return os.path.abspath(path)


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


_processes = set()


@atexit.register
def _kill_all():
    for process in list(_processes):
        if process.poll() is None:
            process.kill()
            process.wait()


def _is_zombie(number):
    try:
        with open(f"/proc/{number}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ended before, or while, it was read
        return True


class Node:
    """One replica: its settings, its process while there is one, its log file. Without `peers` it
    joins a group, or is part of one. `place` stays, also when another member takes this one's."""

    def __init__(self, binary, node_id, data_dir, peers, port, log_path, flags=()):
        self.binary = binary
        self.id = self.place = node_id
        self.data_dir = data_dir
        self.peers = peers
        self.join = None  # whom it asks, in the place of `peers`
        self.port = port
        self.log_path = log_path
        self.flags = list(flags)
        self.environment = {}  # what it gets beyond the test's own
        self.host = "127.0.0.1"  # where clients reach it
        self.tls = None  # an ssl.SSLContext, if it wants TLS of its clients
        self.user = None  # a name and its password, if it wants a user
        self.namespace = None  # a descriptor of the network namespace that it runs in, if another
        self.process = None
        self._log_start = 0

    def __repr__(self):
        return f"node {self.id}"

    @property
    def peer_port(self):
        """None for a stranger that is not among its own peers."""
        if self.peers is None:
            return None
        address = dict(p.split("=") for p in self.peers.split(",")).get(str(self.id))
        return int(address.rsplit(":", 1)[1]) if address else None

    def command(self):
        peers = ["--peers", self.peers] if self.peers else ["--join", self.join] if self.join else []
        # From another network namespace an address is none of the loopback: neither a client's nor a peer's.
        local = self.host == "127.0.0.1"
        open_door = [] if local else ["--protected-mode", "no", "--allow-plain-peers", "on"]
        return [self.binary, "serve", "--id", str(self.id), "--data-dir", self.data_dir, *peers,
                "--listen", f"{self.host}:{self.port}", *open_door, *self.flags]

    def become(self, node_id, join):
        """Another member, which knows nothing and asks `join`: the one before has lost its disk."""
        check(not self.running, f"{self} runs still")
        shutil.rmtree(self.data_dir)
        self.id, self.peers, self.join = node_id, None, join

    def start(self):
        check(not self.running, f"{self} runs already")
        with open(self.log_path, "ab") as log:
            self._log_start = log.tell()
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, preexec_fn=self._before_start,
                                            env={**os.environ, **self.environment})
        _processes.add(self.process)

    def _before_start(self):
        _die_with_parent()
        os.setpgid(0, 0)  # Ctrl-C is for the test, which then does what it wants with its nodes
        libc = ctypes.CDLL(None)
        if self.namespace is not None and libc.setns(self.namespace, CLONE_NEWNET) != 0:
            os._exit(127)

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        check(self.running, f"{self} does not run")
        self.process.send_signal(number)

    def kill(self):
        """kill -9, and waits until it is gone."""
        if self.running:
            self.process.kill()
        self._gone(5)

    def terminate(self, seconds=15):
        """SIGTERM. Returns the exit status; 0 if the program had not even begun, and the system
        ended the process."""
        self.signal(signal.SIGTERM)
        status = self._gone(seconds)
        return 0 if status == -signal.SIGTERM and not self.said_anything() else status

    def pause(self):
        """SIGSTOP; returns once every thread of it stands still."""
        self.signal(signal.SIGSTOP)
        wait_for(f"{self} to stand still", 5, self._stopped, pause=0.001)

    def resume(self):
        self.signal(signal.SIGCONT)

    def wait_exit(self, seconds):
        """Waits until the process ends by itself. Returns the exit status."""
        return self._gone(seconds)

    def _gone(self, seconds):
        if self.process is None:
            return None
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{self} did not end within {seconds} s") from error
        _processes.discard(self.process)
        return status

    def _stopped(self):
        tasks = f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/stat", encoding="ascii", errors="replace") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] != "T":
                    return False
        return True

    def deputy(self):
        """The number of its deputy's process; None: it has none just now."""
        children = []
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/children", encoding="ascii") as file:
                children += [int(word) for word in file.read().split()]
        return next((child for child in children if not _is_zombie(child)), None)

    def client(self, timeout=5.0):
        return resp.Client(self.port, timeout, self.host, self.tls, self.user)

    def status(self, timeout=2.0):
        with self.client(timeout) as client:
            reply = client.call("LEASEHOLD", "STATUS")
        check(isinstance(reply, bytes), f"{self}: LEASEHOLD STATUS answered {reply!r}")
        return json.loads(reply)

    def try_status(self):
        """None while it does not answer."""
        if not self.running:
            return None
        try:
            return self.status()
        except (resp.ConnectionLost, resp.TimedOut):
            return None

    def info(self):
        with self.client() as client:
            text = client.call("INFO").decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def log_text(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                return log.read()
        except FileNotFoundError:
            return ""

    def said_anything(self):
        """Since it was started last."""
        return os.path.getsize(self.log_path) > self._log_start


# Flags of a test that judges the term: a disk that stands still for a moment, beside other tests, must not cost the
# leader its role.
PATIENT = ["--lease", "3s", "--election-timeout", "3s"]


class Cluster:
    """Context manager. At the end everything is killed; the folder stays if the test failed and
    was told to keep it."""

    def __init__(self, binary, size=3, flags=(), keep=False):
        self.binary = binary
        self.flags = list(flags)
        self.keep = keep
        self.folder = tempfile.mkdtemp(prefix="leasehold-process-")
        peer_ports = [free_port() for _ in range(size)]
        self.peers = ",".join(f"{i}=127.0.0.1:{port}" for i, port in enumerate(peer_ports, 1))
        self.nodes = [self.make_node(i, f"node{i}") for i in range(1, size + 1)]
        self.extra = []

    def make_node(self, node_id, name, peers=None, flags=()):
        """A node that is not started. `name` is that of its folder and of its log."""
        return Node(self.binary, node_id, os.path.join(self.folder, name), peers or self.peers,
                    free_port(), os.path.join(self.folder, name + ".log"), [*self.flags, *flags])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for node in self.nodes + self.extra:
            if node.running:
                with contextlib.suppress(Failed):
                    node.kill()
        bugs = [f"{node}: {line}" for node in self.nodes + self.extra
                for line in node.log_text().splitlines() if any(bug in line for bug in BUGS)]
        if kind is not None or bugs:
            for node in self.nodes + self.extra:
                self.show_log(node)
        if self.keep:
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        if kind is None:
            check(not bugs, f"a bug: {bugs[:1]}")

    @staticmethod
    def show_log(node):
        lines = node.log_text().splitlines()[-LOG_LINES_SHOWN:]
        print(f"--- the last lines of the log of {node} ({os.path.basename(node.log_path)})",
              file=sys.stderr)
        for line in lines:
            print("    " + line, file=sys.stderr)

    def start(self, seconds=20):
        """Starts all and waits for a leader with a lease that all agree on."""
        for node in self.nodes:
            node.start()
        return self.wait_leader(seconds)

    def node(self, node_id):
        return next(node for node in self.nodes if node.id == node_id)

    def at(self, place):
        return next(node for node in self.nodes if node.place == place)

    def others(self, node):
        return [other for other in self.nodes if other is not node]

    def wait_leader(self, seconds=20, among=None):
        """The leader, once it holds a lease and every node of `among` (default: all) follows it."""
        among = among or self.nodes

        def probe():
            states = {node: node.try_status() for node in among}
            dead = [node for node in among if not node.running]
            check(not dead, f"{dead} ended by itself")
            if any(state is None for state in states.values()):
                return None
            leaders = [node for node, state in states.items()
                       if state["role"] == "leader" and state["lease_left"] > 0]
            agreed = {(state["leader"], state["term"]) for state in states.values()}
            return leaders[0] if len(leaders) == 1 and len(agreed) == 1 else None
        return wait_for("one leader with a lease", seconds, probe)

    def wait_caught_up(self, node, seconds=30):
        """Until `node` has applied what the leader has committed by now."""
        leader = self.wait_leader(seconds)
        commit = leader.status()["commit"]
        wait_for(f"{node} to catch up to {commit}", seconds,
                 lambda: (node.try_status() or {"applied": -1})["applied"] >= commit)


def main(description, run, arguments=lambda parser: None):
    """The frame of each test program: flags, exit status, and the time it took. Status 77: it
    cannot run here, and why was printed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", required=True, type=built, help="the leasehold program")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the nodes")
    parser.add_argument("--slack", type=float, default=1.0,
                        help="factor on the limits of time, for builds that are slow on purpose")
    parser.add_argument("--no-memory-limit", action="store_true",
                        help="for builds whose memory says nothing, as under sanitizers")
    arguments(parser)
    options = parser.parse_args()
    # A ctest time limit ends this process: let the clean-up run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    try:
        run(options)
    except Skipped as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED_STATUS)
    except (Failed, resp.ConnectionLost, resp.TimedOut, resp.ProtocolError) as error:
        print(f"FAILED: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)
    print(f"passed in {time.monotonic() - begun:.1f} s")


class Background:
    """Runs `step()` again and again on a thread until the block ends; the first exception fails
    the block."""

    def __init__(self, step):
        self._step = step
        self._stop = threading.Event()
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            while not self._stop.is_set():
                self._step()
        except BaseException as error:  # handed to the test's own thread
            self._error = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self._stop.set()
        self._thread.join(30)
        if kind is None:
            self.check()

    def check(self):
        if self._error is not None:
            raise Failed(f"in the background: {self._error!r}") from self._error
