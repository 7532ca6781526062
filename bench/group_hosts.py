"""Three hosts of many groups (group_host) on loopback, and what a benchmark asks and does to them."""

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import cluster as c
from ports import free_port

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "process"))
from frame_proxy import HEADER_BYTES, Frames, hello_from  # noqa: E402

HOSTS = (1, 2, 3)
READ_BYTES = 1 << 16


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


class Relay:
    """Stands before each host and carries every connection, unless the link between its two ends is
    broken: then what is on its way waits. In a thread of its own."""

    def __init__(self, places):
        """`places`: by host the two ports, of the relay and of the host itself."""
        self._places = places
        self._broken = set()
        self._loop = asyncio.new_event_loop()
        self._whole = None
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def break_link(self, one, other):
        self._on_loop(lambda: self._broken.add(frozenset((one, other))))

    def mend(self):
        def mend():
            self._broken.clear()
            self._whole.set()
            self._whole.clear()
        self._on_loop(mend)

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _on_loop(self, do):
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (do(), done.set()))
        done.wait()

    def _run(self, ready):
        asyncio.set_event_loop(self._loop)
        self._whole = asyncio.Event()
        for target, (port, _) in self._places.items():
            async def accepted(reader, writer, target=target):
                await self._connection(reader, writer, target)
            self._loop.run_until_complete(asyncio.start_server(accepted, "127.0.0.1", port))
        ready.set()
        self._loop.run_forever()

    async def _connection(self, reader, writer, target):
        onward = None
        try:
            hello = await Frames(reader).next()
            link = frozenset((hello_from(hello[HEADER_BYTES:]), target))
            answers, onward = await asyncio.open_connection("127.0.0.1", self._places[target][1])
            onward.write(hello)
            await asyncio.gather(self._carry(reader, onward, link), self._carry(answers, writer, link))
        except (OSError, EOFError, ValueError, IndexError):
            pass  # as between any two hosts
        finally:
            for leg in (writer, onward):
                if leg is not None:
                    leg.close()

    async def _carry(self, reader, writer, link):
        while True:
            data = await reader.read(READ_BYTES)
            if not data:
                raise EOFError
            while link in self._broken:
                await self._whole.wait()
            writer.write(data)
            await writer.drain()


class Pool:
    """Three hosts, each with a replica of each group."""

    def __init__(self, programs, folder, groups, deputy=None, relay=False):
        self.groups = groups
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self._program = programs / "group_host"
        self._deputy = deputy
        self._ports = {number: (free_port(), free_port() if relay else None) for number in HOSTS}
        self.relay = Relay(self._ports) if relay else None
        self.hosts = {}

    def start(self, numbers=HOSTS):
        """Returns the seconds until every group has a lease."""
        began = time.monotonic()
        for number in numbers:
            near, behind = self._ports[number]
            arguments = [self._program, "--id", number, "--dir", self.folder / f"host{number}", "--groups", self.groups,
                         "--hosts", ",".join(f"127.0.0.1:{port}" for port, _ in self._ports.values()),
                         "--listen", f"127.0.0.1:{behind or near}"]
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
            time.sleep(0.002)
        return time.monotonic() - began

    def settle(self):
        """Until each host leads its share, and all groups are at rest."""
        share = self.groups // len(HOSTS)
        self.until("all groups are at rest, led where they should be", lambda states:
                   sum_of(states, "at_rest") == self.groups
                   and all(state["led"] >= share for state in states.values()), time.monotonic())

    def kill(self, number):
        self.hosts.pop(number).kill()

    def cpu_ns(self):
        return c.cpu_ns([host.pid for host in self.hosts.values()])

    def pids(self):
        return [host.pid for host in self.hosts.values()]

    def stop(self):
        for host in self.hosts.values():
            host.stop()
        if self.relay is not None:
            self.relay.close()


def sum_of(states, name):
    return sum(state[name] for state in states.values())


def footprint(pid):
    """Threads, open files (sockets among them), and resident bytes."""
    return {"threads": len(os.listdir(f"/proc/{pid}/task")), "files": len(os.listdir(f"/proc/{pid}/fd")),
            "bytes": c.resident_kib(pid) * 1024}


def end_all(pools):
    for pool in pools:
        for host in pool.hosts.values():
            if host.child.poll() is None:
                host.child.send_signal(signal.SIGKILL)
                host.child.wait()
