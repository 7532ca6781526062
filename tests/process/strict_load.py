"""Clients on all nodes at once, on a thread of their own, whose every request has to be answered: what is lost, or
refused where nothing may be refused, fails the test."""

import asyncio
import collections
import dataclasses
import threading
import time

import resp
from cluster import Failed, check, wait_for
from load import LOST, Connection

# After a refusal, and between two tries to connect.
RETRY_PAUSE = 0.01
CONNECT_SECONDS = 5
# A request that is still refused after this long has failed.
ANSWER_SECONDS = 10
# Registers that all clients write and read.
REGISTERS = 4


@dataclasses.dataclass
class Figures:
    """Of one part of the test."""
    requests: int = 0
    connections: int = 0
    refusals: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    slowest: float = 0.0

    def __str__(self):
        refused = ", ".join(f"{count} {word}" for word, count in sorted(self.refusals.items()))
        return (f"{self.requests} requests, {self.connections} new connections, refused and retried: "
                f"{refused or 'none'}, the slowest answer took {self.slowest * 1000:.0f} ms")


class Client:
    """One client. It keeps its connection (`fresh`: one for a few requests only), and goes to the next node when its
    own refuses or is gone."""

    def __init__(self, load, number, node, fresh, user):
        self.load = load
        self.number = number
        self.home = node
        self.node = node
        self.fresh = fresh
        self.user = user  # which of the load's TLS contexts it uses
        self.connection = None
        self.requests = 0
        self.move = False  # to a new connection, between two requests
        self.mine = None  # the newest write that was acknowledged

    async def run(self):
        try:
            while not self.load.stopping:
                await self._write()
                await self._read_back()
                await self._register()
                if self.move or (self.fresh and self.requests % 20 < 4):
                    self._hang_up()
                    self.node = self.home
                    self.move = False
                await asyncio.sleep(self.load.pause)
        finally:
            self._hang_up()

    def _hang_up(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    async def _write(self):
        ledger = self.load.ledger
        number, key, value = ledger.next()
        reply = None
        try:
            reply = await self._ask("SET", key, value)
        finally:
            ledger.record(number, reply)
        self.mine = key, value

    async def _read_back(self):
        key, value = self.mine
        reply = await self._ask("GET", key)
        check(reply == value.encode(), f"{self.node} reads {reply!r} for the acknowledged {key}={value}")

    async def _register(self):
        history = self.load.history
        value = history.new_value()
        key = f"register:{value % REGISTERS}"
        invoked = history.now()
        if value % 3 == 0:
            history.wrote(self.number, key, value, invoked, await self._ask("SET", key, value))
        else:
            history.read(self.number, key, await self._ask("GET", key), invoked)

    async def _connect(self):
        load = self.load
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            while self.node in load.closed:
                self._next()
            try:
                self.connection = await Connection.to(self.node, load.contexts.get(self.user)).open(CONNECT_SECONDS)
                load.figures.connections += 1
                return
            except LOST as error:
                check(load.nodes_end, f"{self.node} takes no new client: {error}")
                check(time.monotonic() < deadline, f"no node takes a client: {error}")
                self._next()
                await asyncio.sleep(RETRY_PAUSE)

    def _next(self):
        nodes = self.load.nodes
        self.node = nodes[(nodes.index(self.node) + 1) % len(nodes)]

    async def _ask(self, *words):
        load = self.load
        begun = time.monotonic()
        while True:
            if self.connection is None or self.node in load.closed:
                self._hang_up()
                await self._connect()
            try:
                reply = await self.connection.call(*words)
            except LOST as error:
                raise Failed(f"{words} at {self.node} was lost: {error}") from error
            if not isinstance(reply, resp.RespError):
                break
            check(reply.not_executed, f"{words} at {self.node}: {reply!r}")
            load.figures.refusals[reply.word] += 1
            check(load.nodes_end, f"{words} at {self.node} was refused: {reply!r}")
            check(time.monotonic() - begun < ANSWER_SECONDS, f"{words} is refused for ever: {reply!r}")
            self._hang_up()
            self._next()
            await asyncio.sleep(RETRY_PAUSE)
        self.requests += 1
        load.figures.requests += 1
        load.figures.slowest = max(load.figures.slowest, time.monotonic() - begun)
        return reply


class StrictLoad:
    """Context manager. `contexts` has a TLS context for each user, "" for none; without one a client speaks plainly.
    While `nodes_end` is set, a node may refuse with "not executed", and a client asks another one."""

    def __init__(self, nodes, ledger, history, users=("",), contexts=None, pause=0.005):
        self.nodes = list(nodes)
        self.ledger = ledger
        self.history = history
        self.pause = pause
        self.contexts = dict(contexts or {})
        self.nodes_end = False
        self.closed = set()  # nodes that no client asks
        self.stopping = False
        self.figures = Figures()
        self._clients = []
        for node in self.nodes:
            for user in users:
                self._clients.append(Client(self, len(self._clients), node, False, user))
            self._clients.append(Client(self, len(self._clients), node, True, users[-1]))
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        async def all_clients():
            await asyncio.gather(*(client.run() for client in self._clients))
        try:
            asyncio.run(all_clients())
        except BaseException as error:  # handed to the test's own thread
            self._error = error
            self.stopping = True

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self.stopping = True
        self._thread.join(ANSWER_SECONDS + 10)
        if kind is None:
            self.check()
            check(not self._thread.is_alive(), "the clients do not end")

    def check(self):
        if self._error is not None:
            raise Failed(f"a client: {self._error}") from self._error

    def goes_on(self, requests=5):
        """Waits until each client had that many answers more."""
        before = [client.requests for client in self._clients]

        def probe():
            self.check()
            return all(client.requests >= count + requests
                       for client, count in zip(self._clients, before))
        wait_for("answers for all clients", 2 * ANSWER_SECONDS, probe)

    def reconnect(self, user=None):
        """Each client, or those of `user`, go on with a new connection, to the node of their own."""
        asked = [client for client in self._clients if user is None or client.user == user]
        for client in asked:
            client.move = True
        wait_for("new connections of clients", ANSWER_SECONDS, lambda: self.check() or not any(c.move for c in asked))

    def take_figures(self):
        """Since the last call."""
        taken, self.figures = self.figures, Figures()
        return taken
