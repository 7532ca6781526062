"""The four workloads of a chaos run. Each runs for one round at a time, beside writers of a ledger,
and is judged when the round has healed:

registers  reads of every mode and writes, as a history for the checker
cas        compare-and-set by WATCH and EXEC, and reads, as a history
sessions   counters and appends under their numbers, each executed once (exactly_once.py)
bank       transfers between accounts by MULTI: no reader may see a sum that was never there
"""

import asyncio
import random
import threading
import types
import zlib

import exactly_once
import resp
from chaos_watch import Violation
from cluster import Failed, check, wait_for
from history import History, Ledger
from load import LOST, Connection, Load

WRITERS = 2
MIXERS = 6
PAUSE_SECONDS = 0.008
# A client that was refused comes again a little later.
REFUSED_PAUSE_SECONDS = 0.03
CALL_SECONDS = 3.0
REGISTERS = 4
STALE_BOUND_MS = 400
# Reads that a stopped node finds unread when it goes on: it must not answer them from its old state.
UNREAD_CONNECTIONS = 4
UNREAD_READS = 30
UNREAD_CLIENT = 100
# Keys of compare-and-set are left after this many tries: orders of few operations are searched fast.
SWAPS_OF_A_KEY = 60
ACCOUNTS = 6
OPENING_BALANCE = 1000
SESSION_CLIENTS = 6
SESSION_GIVE_UP = 4.0  # times exactly_once.GIVE_UP_SECONDS


class Workload:
    """One round: `prepare`, `begin`, when all has healed `end`, then `judge`, which raises
    Violation."""

    name = None

    def __init__(self, cluster, number, seed):
        self.cluster = cluster
        self.number = number
        self.source = random.Random(f"{seed}:{number}:load")
        self.ledger = Ledger(f"ledger:{number}")
        self.history = History()
        self.load = None

    def keys(self):
        """Those that many clients use just now: their slots move."""
        return []

    def staying_keys(self):
        """Those of which the slots must not move."""
        return []

    def prepare(self):
        """What the round needs to be there, written before any fault."""

    def begin(self):
        self.load = RoundLoad(self, self.cluster.nodes)

    def check(self):
        self.load.check()

    async def end(self):
        await self.load.stop()

    async def abandon(self):
        """Ends it after something went wrong: no further complaints."""
        await asyncio.gather(self.end(), return_exceptions=True)

    def judge(self, checker):
        for node in self.cluster.nodes:
            self.read_back(node)
        if len(self.history) > 0:
            linearizable, verdict = self.history.judge(checker)
            if not linearizable:
                raise Violation(f"the history of round {self.number} is not linearizable: "
                                f"{verdict}")

    def read_back(self, node):
        """Every acknowledged write is there."""
        try:
            self.ledger.read_back(node)
        except Failed as error:
            raise Violation(str(error)) from error

    def operations(self):
        return len(self.history) + len(self.ledger.acked)

    async def operate(self, client, connection):
        """One operation of one client."""
        raise NotImplementedError

    async def open_unread(self, node):
        """Connections on which a node that is about to be stopped will find commands unread."""
        return []

    def send_unread(self, connections):
        """The node is stopped and will go on in a moment."""


class RoundLoad(Load):
    """The clients of load.py, of which the mixers do what the workload says."""

    def __init__(self, workload, nodes):
        self._workload = workload
        super().__init__(nodes, workload.ledger, workload.history, WRITERS, MIXERS, 0,
                         PAUSE_SECONDS)

    async def _mix(self, client, connection):
        await self._workload.operate(client, connection)


async def pause_if_refused(reply):
    if isinstance(reply, resp.RespError):
        await asyncio.sleep(REFUSED_PAUSE_SECONDS)


class Registers(Workload):
    name = "registers"
    MODES = (("lease", 6), ("quorum", 2), ("log", 1), ("stale", 3))

    def __init__(self, *args):
        super().__init__(*args)
        self._unread = []

    def keys(self):
        return [f"register:{self.number}:{i}" for i in range(REGISTERS)]

    async def operate(self, client, connection):
        key = f"register:{self.number}:{self.source.randrange(REGISTERS)}"
        if self.source.random() < 0.35:
            await self._write(client, connection, key)
        else:
            await self._read(client, connection, key)

    async def _write(self, client, connection, key):
        value = self.history.new_value()
        invoked = self.history.now()
        reply = None
        try:
            reply = await connection.call("SET", key, value, timeout=CALL_SECONDS)
        finally:
            self.history.wrote(client, key, value, invoked, reply)
        await pause_if_refused(reply)

    async def _read(self, client, connection, _):
        """Often several at once: a node that was stopped finds them all unread."""
        modes, weights = zip(*self.MODES)
        mode = self.source.choices(modes, weights)[0]
        words = {"lease": (), "stale": ("LEASEHOLD", "READ", "stale", f"{STALE_BOUND_MS}ms"),
                 }.get(mode, ("LEASEHOLD", "READ", mode))
        keys = [f"register:{self.number}:{self.source.randrange(REGISTERS)}"
                for _ in range(self.source.choice((1, 1, 1, 4, 12)))]
        invoked = self.history.now()
        if mode == "stale":
            # It may be answered as of any instant within its bound: that is a read that began then.
            invoked -= STALE_BOUND_MS * 1_000_000
        connection.send(*((*words, "GET", key) for key in keys))
        for key in keys:
            reply = await connection.answer(CALL_SECONDS)
            self.history.read(client, key, reply, invoked)
        await pause_if_refused(reply)


    async def open_unread(self, node):
        connections = []
        try:
            for _ in range(UNREAD_CONNECTIONS):
                connections.append(await Connection.to(node).open())
                await connections[-1].call("PING", timeout=1)
        except LOST:
            pass  # those that answer are enough
        return connections

    def send_unread(self, connections):
        for number, connection in enumerate(connections):
            keys = [f"register:{self.number}:{self.source.randrange(REGISTERS)}"
                    for _ in range(UNREAD_READS)]
            invoked = self.history.now()
            connection.send(*(("GET", key) for key in keys))
            self._unread.append(asyncio.create_task(
                self._read_unread(UNREAD_CLIENT + number, connection, keys, invoked)))

    async def _read_unread(self, client, connection, keys, invoked):
        try:
            for key in keys:
                self.history.read(client, key, await connection.answer(CALL_SECONDS), invoked)
        except LOST:
            pass
        finally:
            connection.close()

    async def end(self):
        await super().end()
        await asyncio.gather(*self._unread)


class CompareAndSet(Workload):
    name = "cas"

    def __init__(self, *args):
        super().__init__(*args)
        self._tries = 0

    def _key(self):
        return f"cas:{self.number}:{self._tries // SWAPS_OF_A_KEY}:{self._tries % 2}"

    def keys(self):
        return [self._key()]

    async def operate(self, client, connection):
        self._tries += 1
        key = self._key()
        expect = await self._get(client, connection, key, ("WATCH", key))
        if expect is None:
            return
        await asyncio.sleep(self.source.choice((0, 0, 0.002)))
        value = self.history.new_value()
        invoked = self.history.now()
        reply = None
        try:
            reply = await self._swap(connection, key, value)
        finally:
            unknown = reply is None or isinstance(reply, resp.RespError) and reply.unknown
            if unknown or reply == ["OK"]:
                self.history.swapped(client, key, expect[0], value, invoked, not unknown)
        check(unknown or reply in (["OK"], "changed") or reply.not_executed or
              reply.word == "EXECABORT", f"EXEC was answered {reply!r}")
        await pause_if_refused(reply)

    async def _get(self, client, connection, key, before):
        """A list of the value, read after `before`; None if either was refused."""
        reply = await connection.call(*before, timeout=CALL_SECONDS)
        if reply != "OK":
            await pause_if_refused(reply)
            return None
        invoked = self.history.now()
        reply = await connection.call("GET", key, timeout=CALL_SECONDS)
        self.history.read(client, key, reply, invoked)
        if isinstance(reply, resp.RespError):
            await connection.call("UNWATCH", timeout=CALL_SECONDS)
            await pause_if_refused(reply)
            return None
        return [None if reply is None else int(reply)]

    @staticmethod
    async def _swap(connection, key, value):
        await connection.call("MULTI", timeout=CALL_SECONDS)
        await connection.call("SET", key, value, timeout=CALL_SECONDS)
        reply = await connection.call("EXEC", timeout=CALL_SECONDS)
        return "changed" if reply is None else reply


class Bank(Workload):
    """A transfer leaves a note of itself, under a key of its own, in the same transaction. So at
    the end the notes say what the balances have to be. All keys of a round are of one slot."""

    name = "bank"

    def __init__(self, *args):
        super().__init__(*args)
        self._accounts = [f"{{bank:{self.number}}}account:{i}" for i in range(ACCOUNTS)]
        self._transfers = []
        self._acked = set()
        self._sums = 0

    def keys(self):
        return self._accounts[:1]

    def prepare(self):
        words = [word for name in self._accounts for word in (name, OPENING_BALANCE)]

        def opened():
            with self.cluster.nodes[0].client() as client:
                return client.call("MSET", *words) == "OK"
        wait_for("the accounts to be opened", 10, opened)

    def operations(self):
        return self._sums + len(self._transfers) + len(self.ledger.acked)

    async def operate(self, client, connection):
        if self.source.random() < 0.5:
            await self._look(connection)
        else:
            await self._transfer(connection)

    async def _look(self, connection):
        words = self.source.choice(((), (), ("LEASEHOLD", "READ", "quorum"),
                                    ("LEASEHOLD", "READ", "stale", f"{STALE_BOUND_MS}ms")))
        reply = await connection.call(*words, "MGET", *self._accounts, timeout=CALL_SECONDS)
        if isinstance(reply, resp.RespError):
            await pause_if_refused(reply)
            return
        self._sums += 1
        # A stale read may be older than the accounts.
        if words[-2:-1] == ("stale",) and None in reply:
            return
        total = sum(int(balance or 0) for balance in reply)
        if total != ACCOUNTS * OPENING_BALANCE:
            raise Violation(f"the accounts of round {self.number} hold {total} together, not "
                            f"{ACCOUNTS * OPENING_BALANCE}: {reply}")

    async def _transfer(self, connection):
        source, target = self.source.sample(range(ACCOUNTS), 2)
        amount = self.source.randint(1, 50)
        number = len(self._transfers)
        self._transfers.append((source, target, amount))
        call = connection.call
        await call("MULTI", timeout=CALL_SECONDS)
        await call("DECRBY", self._accounts[source], amount, timeout=CALL_SECONDS)
        await call("INCRBY", self._accounts[target], amount, timeout=CALL_SECONDS)
        await call("SET", self._note(number), amount, timeout=CALL_SECONDS)
        reply = await call("EXEC", timeout=CALL_SECONDS)
        if isinstance(reply, list):
            self._acked.add(number)
        else:
            check(isinstance(reply, resp.RespError) and
                  (reply.unknown or reply.not_executed or reply.word == "EXECABORT"),
                  f"EXEC was answered {reply!r}")
            if not reply.unknown:
                self._transfers[number] = None
        await pause_if_refused(reply)

    def _note(self, number):
        return f"{{bank:{self.number}}}transfer:{number}"

    def read_back(self, node):
        super().read_back(node)
        balances = [OPENING_BALANCE] * ACCOUNTS
        with node.client(timeout=20) as client:
            notes = []
            for begin in range(0, len(self._transfers), 500):
                notes += client.pipeline([("GET", self._note(number)) for number in
                                          range(begin, min(begin + 500, len(self._transfers)))])
            found = [int(balance) for balance in client.call("MGET", *self._accounts)]
        for number, (transfer, note) in enumerate(zip(self._transfers, notes)):
            if note is None:
                if number in self._acked:
                    raise Violation(f"{node}: transfer {number} was acknowledged and is not there")
                continue
            if transfer is None:
                raise Violation(f"{node}: transfer {number} was answered as not executed and is "
                                "there")
            source, target, amount = transfer
            balances[source] -= amount
            balances[target] += amount
        if balances != found:
            raise Violation(f"{node}: the balances are {found}, by the notes {balances}")


class Sessions(Workload):
    name = "sessions"

    def __init__(self, cluster, number, seed):
        super().__init__(cluster, number, seed)
        self._stop = threading.Event()
        options = types.SimpleNamespace(seed=zlib.crc32(seed.encode()), slack=SESSION_GIVE_UP,
                                        without_sessions=False)
        kinds = [exactly_once.Adder, exactly_once.Appender, exactly_once.Pipeliner]
        self._tag = f"{{sessions:{number}}}"
        self._clients = [kinds[i % 3](number * 100 + i, cluster, options, self._stop, self._tag)
                         for i in range(SESSION_CLIENTS)]

    def staying_keys(self):
        """A session is of the group that has its keys, and stays there."""
        return [self._tag]

    def begin(self):
        for client in self._clients:
            client.start()
        super().begin()

    def check(self):
        super().check()
        for client in self._clients:
            if client.error is not None:
                raise Violation(f"client {client.number}: {client.error!r}") from client.error

    async def end(self):
        self._stop.set()
        await super().end()
        for client in self._clients:
            await asyncio.get_running_loop().run_in_executor(None, client.join, 60)
            check(not client.is_alive(), f"client {client.number} does not end")
        self.check()

    async def operate(self, client, connection):
        """The sessions have threads of their own."""
        await asyncio.sleep(0.2)

    def judge(self, checker):
        super().judge(checker)
        try:
            exactly_once.judge(self.cluster, self._clients)
            exactly_once.repeat_the_last(self.cluster, self._clients)
        except Failed as error:
            raise Violation(str(error)) from error

    def operations(self):
        return sum(client.sequence for client in self._clients) + len(self.ledger.acked)


WORKLOADS = {kind.name: kind for kind in (Registers, CompareAndSet, Sessions, Bank)}
