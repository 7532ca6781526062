"""What death_gaps.py measures: three members of Leasehold, and three of etcd, each in a network namespace of its own,
with one way to ask, to kill, to stop and to cut off either."""

import asyncio
import base64
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import resp
from cluster import Cluster, Failed, _die_with_parent, check, free_port, wait_for
from load import LOST, Connection

CLONE_NEWNET = 0x40000000
MEMBERS = (1, 2, 3)
CALL_SECONDS = 10.0


class Refused(Exception):
    """The operation was answered, and certainly not executed."""


class Unknown(Exception):
    """No answer, or one that leaves open whether the operation was executed."""


class LeaseholdClient:
    """One connection; one operation at a time. Values are numbers."""

    def __init__(self, node):
        self._connection = Connection.to(node)

    async def open(self):
        try:
            await self._connection.open()
        except LOST as error:
            raise Refused(str(error)) from error

    def close(self):
        self._connection.close()

    async def _call(self, *words):
        try:
            reply = await self._connection.call(*words, timeout=CALL_SECONDS)
        except LOST as error:
            raise Unknown(str(error)) from error
        if isinstance(reply, resp.RespError):
            raise (Refused if reply.not_executed else Unknown)(str(reply))
        return reply

    async def read(self, key):
        reply = await self._call("GET", key)
        return None if reply is None else int(reply)

    async def write(self, key, value):
        await self._call("SET", key, value)


class Leasehold:
    name = "Leasehold"

    def __init__(self, binary, places, keep):
        self._cluster = Cluster(binary, len(MEMBERS), keep=keep)
        peers = ",".join(f"{member}={place.peer}" for member, place in zip(MEMBERS, places))
        for node, place in zip(self._cluster.nodes, places):
            node.peers, node.host, node.namespace = peers, place.host, place.namespace
            node.flags += ["--peer-listen", place.listen]

    def __enter__(self):
        self._cluster.__enter__()
        self._cluster.start()
        return self

    def __exit__(self, *error):
        return self._cluster.__exit__(*error)

    def _node(self, member):
        return self._cluster.node(member)

    def leader(self):
        """Once all follow the same one, and have what it has committed."""
        leader = self._cluster.wait_leader(30)
        for node in self._cluster.nodes:
            self._cluster.wait_caught_up(node)
        return leader.id

    def client(self, member):
        return LeaseholdClient(self._node(member))

    def kill(self, member):
        self._node(member).process.kill()

    def kill_helper(self, member):
        """The deputy. Its node starts another one soon."""
        deputy = wait_for("the deputy", 10, self._node(member).deputy)
        os.kill(deputy, signal.SIGKILL)

    def kill_all(self, member):
        """With nobody left on its machine."""
        node = self._node(member)
        deputy = node.deputy()
        node.process.kill()
        if deputy is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(deputy, signal.SIGKILL)

    def start(self, member):
        self._node(member).kill()  # waits until it is gone
        self._node(member).start()

    def pause(self, member):
        self._node(member).signal(signal.SIGSTOP)

    def resume(self, member):
        self._node(member).resume()


class EtcdClient:
    """As above, by etcd's JSON gateway: HTTP/1.1 over one connection."""

    def __init__(self, host, port):
        self._address = host, port
        self._reader = self._writer = None

    async def open(self):
        try:
            self._reader, self._writer = await asyncio.wait_for(asyncio.open_connection(*self._address), 1)
        except (OSError, asyncio.TimeoutError) as error:
            raise Refused(str(error)) from error

    def close(self):
        if self._writer is not None:
            self._writer.close()

    async def _exchange(self, path, body):
        text = json.dumps(body)
        self._writer.write(f"POST {path} HTTP/1.1\r\nHost: etcd\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        status = int((await self._reader.readline()).split()[1])
        headers = {}
        while (line := (await self._reader.readline()).strip()):
            name, value = line.decode().split(":", 1)
            headers[name.strip().lower()] = value.strip().lower()
        if headers.get("transfer-encoding") == "chunked":
            content = b""
            while (size := int((await self._reader.readline()).strip(), 16)) > 0:
                content += await self._reader.readexactly(size)
                await self._reader.readline()
            await self._reader.readline()
        else:
            content = await self._reader.readexactly(int(headers["content-length"]))
        return status, content

    async def post(self, path, body):
        try:
            status, content = await asyncio.wait_for(self._exchange(path, body), CALL_SECONDS)
        except (OSError, EOFError, ValueError, IndexError, KeyError, asyncio.TimeoutError) as error:
            raise Unknown(repr(error)) from error
        if status != 200:
            # What was proposed may still be committed, whatever the error says.
            raise Unknown(f"{status}: {content[:200]!r}")
        return json.loads(content)

    async def read(self, key):
        reply = await self.post("/v3/kv/range", {"key": _coded(key)})
        found = reply.get("kvs")
        return int(base64.b64decode(found[0]["value"])) if found else None

    async def write(self, key, value):
        await self.post("/v3/kv/put", {"key": _coded(key), "value": _coded(str(value))})


def _coded(text):
    return base64.b64encode(text.encode()).decode()


class Etcd:
    name = "etcd"

    def __init__(self, places, keep):
        self._folder = tempfile.mkdtemp(prefix="leasehold-etcd-")
        self._keep = keep
        self._places = dict(zip(MEMBERS, places))
        self._ports = {member: free_port() for member in MEMBERS}
        self._processes = {}

    @staticmethod
    def installed():
        return shutil.which("etcd") is not None

    def __enter__(self):
        for member in MEMBERS:
            self.start(member)
        try:
            self.leader()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind, *_):
        for process in self._processes.values():
            process.kill()
            process.wait()
        if kind is not None:
            print(f"the logs of etcd are in {self._folder}")
        elif not self._keep:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _peer(self, member):
        return f"http://{self._places[member].listen}"

    def start(self, member):
        if member in self._processes:
            self._processes[member].wait()
        place = self._places[member]
        client = f"http://{place.host}:{self._ports[member]}"

        def inside():
            _die_with_parent()
            os.setpgid(0, 0)
            if place.namespace is not None and ctypes.CDLL(None).setns(place.namespace, CLONE_NEWNET) != 0:
                os._exit(127)
        with open(os.path.join(self._folder, f"{member}.log"), "ab") as log:
            self._processes[member] = subprocess.Popen(
                ["etcd", "--name", f"m{member}", "--data-dir", os.path.join(self._folder, f"m{member}"),
                 "--listen-client-urls", client, "--advertise-client-urls", client,
                 "--listen-peer-urls", self._peer(member), "--initial-advertise-peer-urls", self._peer(member),
                 "--initial-cluster", ",".join(f"m{other}={self._peer(other)}" for other in MEMBERS),
                 "--log-level", "error"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=inside)

    async def _state(self, member):
        client = self.client(member)
        try:
            await client.open()
            return await client.post("/v3/maintenance/status", {})
        finally:
            client.close()

    def leader(self):
        def probe():
            async def ask():
                return [await self._state(member) for member in MEMBERS]
            try:
                states = asyncio.run(ask())
            except (Refused, Unknown):
                return None
            leaders = {state.get("leader", "0") for state in states}
            applied = {state.get("raftAppliedIndex", "0") for state in states}
            numbers = [state["header"]["member_id"] for state in states]
            if len(leaders) != 1 or len(applied) != 1 or leaders == {"0"}:
                return None
            return MEMBERS[numbers.index(leaders.pop())]
        return wait_for("a leader of etcd", 30, probe)

    def client(self, member):
        return EtcdClient(self._places[member].host, self._ports[member])

    def kill(self, member):
        self._processes[member].kill()

    kill_all = kill

    def kill_helper(self, member):
        """There is none."""

    def pause(self, member):
        self._processes[member].send_signal(signal.SIGSTOP)

    def resume(self, member):
        self._processes[member].send_signal(signal.SIGCONT)
