"""Three hosts of many groups (group_host) on loopback, and what a benchmark asks and does to them."""

import json
import os
import pathlib
import signal
import subprocess
import time

import cluster as c
from ports import free_port
from proxy_process import ProxyProcess

HOSTS = (1, 2, 3)
# A status looks at all groups: asked without pause, it would take the processor time that is measured.
POLL_S = 0.05


class Host:
    """One process. Its answers come in the order of the requests."""

    def __init__(self, number, arguments, log_dir):
        self.number = number
        self.log_path = pathlib.Path(log_dir) / f"host{number}.log"
        with open(self.log_path, "ab") as log:
            self.child = subprocess.Popen([str(argument) for argument in arguments], text=True, stderr=log,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.opened_ms = None

    @property
    def pid(self):
        return self.child.pid

    def wait_open(self):
        self.opened_ms = self.answer()["opened_ms"]

    def request(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            raise c.MeasureError(f"host {self.number} has ended: see {self.log_path}")
        return json.loads(line)

    def ask(self, line):
        self.request(line)
        return self.answer()

    def kill(self):
        self.child.kill()
        self.child.wait()

    def stop(self):
        """At the end of its input it ends in good order."""
        self.child.stdin.close()
        try:
            self.child.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.kill()


class Pool:
    """Three hosts, each with a replica of each group."""

    def __init__(self, programs, folder, groups, deputy=None, links_break=False):
        self.groups = groups
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self._program = programs / "group_host"
        self._deputy = deputy
        self._places = {}  # where the others reach each host, and where it listens
        for number in HOSTS:
            reached = place()
            self._places[number] = reached, place() if links_break else reached
        self._proxy = None
        if links_break:
            targets = {number: {"listen": reached, "forward": listens}
                       for number, (reached, listens) in self._places.items()}
            self._proxy = ProxyProcess(seed=1, targets=targets, sources={})
        self.hosts = {}

    def start(self, numbers=HOSTS):
        """Returns the seconds until every group has a lease."""
        began = time.monotonic()
        for number in numbers:
            arguments = [self._program, "--id", number, "--dir", self.folder / f"host{number}", "--groups", self.groups,
                         "--hosts", ",".join(reached for reached, _ in self._places.values()),
                         "--listen", self._places[number][1]]
            if self._deputy is not None:
                arguments += ["--deputy", self._deputy]
            self.hosts[number] = Host(number, arguments, self.folder)
        for number in numbers:
            self.hosts[number].wait_open()
        return self.until("every group has a lease", lambda states: sum_of(states, "leased") == self.groups, began)

    def ask(self, line):
        """All at once."""
        for host in self.hosts.values():
            host.request(line)
        return {number: host.answer() for number, host in self.hosts.items()}

    def until(self, what, holds, began, deadline_s=120.0):
        """The seconds from `began` until holds(status of each host)."""
        while not holds(states := self.ask("status")):
            if time.monotonic() > began + deadline_s:
                raise c.MeasureError(f"{deadline_s:.0f} s are over before {what}: {states}")
            time.sleep(POLL_S)
        return time.monotonic() - began

    def settle(self):
        """Until each host leads its share, and all groups are at rest."""
        share = self.groups // len(HOSTS)
        self.until("all groups are at rest, led where they should be", lambda states:
                   sum_of(states, "at_rest") == self.groups
                   and all(state["led"] >= share for state in states.values()), time.monotonic())

    def kill(self, number):
        self.hosts.pop(number).kill()

    def shift_beats(self, random, heartbeat_s):
        """Stops each host for a part of a heartbeat: its beats leave at other times then, beside those of the others.
        How often a host wakes up depends on that."""
        for pid in self.pids():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(random.uniform(0, heartbeat_s))
            os.kill(pid, signal.SIGCONT)

    def break_link(self, one, other):
        """What is on its way waits until mend_link()."""
        self._proxy.add((one, other), [(one, other), (other, one)], {"carries": False})

    def mend_link(self, one, other):
        self._proxy.remove((one, other))

    def pids(self):
        return [host.pid for host in self.hosts.values()]

    def stop(self):
        for host in self.hosts.values():
            host.stop()
        self._end_proxy()

    def end(self):
        """At once, whatever state they are in."""
        for host in self.hosts.values():
            host.kill()
        self._end_proxy()

    def _end_proxy(self):
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None


def place():
    return f"127.0.0.1:{free_port()}"


def sum_of(states, name):
    return sum(state[name] for state in states.values())


def footprint(pid):
    """Threads, open files (sockets among them), segments of the log, and resident bytes. How many segments there are
    follows from the bytes of the log, of however many groups."""
    files = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    segments = sum(name.endswith(".seg") for name in files)
    return {"threads": len(os.listdir(f"/proc/{pid}/task")), "files": len(files) - segments, "segments": segments,
            "bytes": c.resident_kib(pid) * 1024}
