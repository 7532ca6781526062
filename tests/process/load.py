"""Load on all nodes of a cluster at once, from one event loop: clients that write and read without
pause, and what measures the gap after a kill."""

import asyncio
import contextlib
import json
import statistics
import time

import resp
from cluster import Failed, check

CONNECT_TIMEOUT = 1.0
# An answer comes within the node's own limit (5 s) or not at all.
CALL_TIMEOUT = 8.0
# A client whose node is down looks again after this long.
RETRY_PAUSE = 0.02


class Connection:
    """One connection of the event loop; one command at a time."""

    def __init__(self, port, host="127.0.0.1", tls=None):
        self.port = port
        self.host = host
        self.tls = tls  # an ssl.SSLContext, if it speaks TLS
        self._reader = None
        self._writer = None
        self._parser = resp.Parser()

    @classmethod
    def to(cls, node, tls=None):
        return cls(node.port, node.host, tls)

    async def open(self, timeout=CONNECT_TIMEOUT):
        try:
            self._reader, self._writer = await asyncio.wait_for(
                asyncio.open_connection(self.host, self.port, ssl=self.tls), timeout)
        except (OSError, asyncio.TimeoutError) as error:
            raise resp.ConnectionLost(f"port {self.port}: {error}") from error
        return self

    def close(self):
        if self._writer is not None:
            self._writer.close()

    async def call(self, *words, timeout=CALL_TIMEOUT):
        self.send(words)
        return await self.answer(timeout)

    def send(self, *commands):
        """All in one go. Each has an answer() to come."""
        self._writer.write(b"".join(resp.encode(*words) for words in commands))

    async def answer(self, timeout=CALL_TIMEOUT):
        try:
            return await asyncio.wait_for(self._reply(), timeout)
        except asyncio.TimeoutError as error:
            raise resp.TimedOut(f"no answer in {timeout} s") from error
        except OSError as error:
            raise resp.ConnectionLost(str(error)) from error

    async def _reply(self):
        while True:
            whole, reply = self._parser.take()
            if whole:
                return reply
            data = await self._reader.read(1 << 16)
            if not data:
                raise resp.ConnectionLost("closed")
            self._parser.feed(data)


LOST = (resp.ConnectionLost, resp.TimedOut)


class Load:
    """Clients that run until stop(): writers of the ledger, and clients that read and write a few
    shared registers, whose history is recorded."""

    def __init__(self, nodes, ledger, history, writers, mixers, registers, pause):
        self._nodes = nodes
        self._ledger = ledger
        self._history = history
        self._registers = registers
        self._pause = pause
        self._stopping = False
        self._tasks = []
        for number in range(writers):
            self._tasks.append(asyncio.create_task(self._client(number, self._write)))
        for number in range(writers, writers + mixers):
            self._tasks.append(asyncio.create_task(self._client(number, self._mix)))

    def check(self):
        for task in self._tasks:
            if task.done() and task.exception():
                raise Failed(f"a client failed: {task.exception()!r}") from task.exception()

    async def stop(self):
        self._stopping = True
        await asyncio.wait(self._tasks)  # all, also if one failed
        self.check()

    async def _client(self, number, operation):
        """Stays with one node while that answers; after a lost connection tries the next one."""
        turn = number
        while not self._stopping:
            node = self._nodes[turn % len(self._nodes)]
            turn += 1
            connection = Connection.to(node)
            try:
                await connection.open()
                while not self._stopping:
                    await operation(number, connection)
                    await asyncio.sleep(self._pause)
            except LOST:
                await asyncio.sleep(RETRY_PAUSE)
            finally:
                connection.close()

    async def _write(self, _, connection):
        await write_once(self._ledger, connection)

    async def _mix(self, client, connection):
        history = self._history
        value = history.new_value()
        key = f"register:{value % self._registers}"
        invoked = history.now()
        if value % 3 == 0:
            reply = None
            try:
                reply = await connection.call("SET", key, value)
            finally:
                history.wrote(client, key, value, invoked, reply)
        else:
            history.read(client, key, await connection.call("GET", key), invoked)


async def write_once(ledger, connection):
    """True if acknowledged."""
    number, key, value = ledger.next()
    reply = None
    try:
        reply = await connection.call("SET", key, value)
    finally:
        ledger.record(number, reply)
    return reply == "OK"


class GapMeter:
    """From one kill on: when was the first write that was sent after it acknowledged, and when had
    a new leader answered a first read under its lease? With `any_read`: when was a first read answered,
    by any leader?

    Commands pile up at a node that knows no leader yet, so a probe never waits for the one before:
    now and then each survivor gets a write and a read on connections of their own, and what waits
    there is answered as soon as somebody leads. Not too many, or this program would be busy with
    their replies before it looks at its clock. That a read was answered by a lease is what the
    survivors' own counters say."""

    PROBE_PAUSE = 0.050
    STATUS_PAUSE = 0.003

    def __init__(self, survivors, ledger, term, any_read=False):
        self._survivors = survivors
        self._any_read = any_read
        self._ledger = ledger
        self._term = term
        self._idle = {node: [] for node in survivors}
        self._begun = None
        self.write_gap = None
        self.read_gap = None
        self._done = asyncio.Event()
        self._probes = set()
        self._failure = None

    async def prepare(self):
        """Notes what the survivors have counted so far."""
        self._pollers = {node: await Connection.to(node).open() for node in self._survivors}
        self._before = {node: self._lease_reads(await self._status(node))
                        for node in self._survivors}

    async def measure(self, seconds):
        """Begins now; call it at the kill. Fails if either gap is longer than `seconds`."""
        self._begun = time.monotonic()
        pollers = [] if self._any_read else [asyncio.create_task(self._poll(node)) for node in self._survivors]
        prober = asyncio.create_task(self._probe())
        for task in [*pollers, prober]:
            task.add_done_callback(self._ended)
        try:
            await asyncio.wait_for(self._done.wait(), seconds)
            if self._failure:
                raise self._failure
        except asyncio.TimeoutError as error:
            raise Failed(f"{seconds} s after the kill: first write {self.write_gap}, first "
                         f"read {self.read_gap}") from error
        finally:
            for task in [*pollers, prober]:
                task.cancel()
            for poller in self._pollers.values():
                poller.close()

    async def settle(self):
        """Waits for the probes that are under way: each belongs to the ledger."""
        await asyncio.gather(*self._probes)
        for connections in self._idle.values():
            for connection in connections:
                connection.close()

    def _ended(self, task):
        """Nobody else looks at the end of these tasks: one that failed would measure nothing, and not say why."""
        if not task.cancelled() and task.exception():
            self._failure = task.exception()
            self._done.set()

    def _found(self):
        if self.write_gap is not None and self.read_gap is not None:
            self._done.set()

    @staticmethod
    def _lease_reads(status):
        return status["reads"]["lease_hits"] + status["reads"]["answered_lease"]

    async def _status(self, node):
        return json.loads(await self._pollers[node].call("LEASEHOLD", "STATUS"))

    async def _poll(self, node):
        while self.read_gap is None:
            if self._lease_reads(await self._status(node)) > self._before[node]:
                gap = time.monotonic() - self._begun
                # Of one status the term is older than the counters: the node may have won an election between them.
                later = await self._status(node)
                check(later["term"] > self._term, f"{node} served a lease read in the old term")
                self.read_gap = gap
                self._found()
            await asyncio.sleep(self.STATUS_PAUSE)

    async def _probe(self):
        while not self._done.is_set():
            for node in self._survivors:
                for probe in (self._write, self._read):
                    task = asyncio.create_task(probe(node))
                    self._probes.add(task)
                    task.add_done_callback(self._probes.discard)
            await asyncio.sleep(self.PROBE_PAUSE)

    @contextlib.asynccontextmanager
    async def _connection(self, node):
        idle = self._idle[node]
        connection = idle.pop() if idle else await Connection.to(node).open()
        try:
            yield connection
        except LOST:
            connection.close()
            raise
        idle.append(connection)

    async def _write(self, node):
        with contextlib.suppress(*LOST):
            async with self._connection(node) as connection:
                if await write_once(self._ledger, connection) and self.write_gap is None:
                    self.write_gap = time.monotonic() - self._begun
                    self._found()

    async def _read(self, node):
        with contextlib.suppress(*LOST):
            async with self._connection(node) as connection:
                answered = isinstance(await connection.call("GET", "probe"), (bytes, type(None)))
                if answered and self._any_read and self.read_gap is None:
                    self.read_gap = time.monotonic() - self._begun
                    self._found()


def spread(gaps):
    return (f"median {statistics.median(gaps) * 1000:.0f} ms, maximum {max(gaps) * 1000:.0f} ms, "
            f"minimum {min(gaps) * 1000:.0f} ms")
