#!/usr/bin/env python3
"""Slots move from group to group while clients write and read at every node, and a node is killed now and then. The
history of the keys that move is linearizable, no acknowledged write is lost, every move comes to its end by itself,
each SCAN returns all keys that nobody writes, what is to be executed once is, watchers at every node hear of the last
write, and in the end each slot is in one group, with all of its keys and no others."""

import asyncio
import random
import time

import resp
from cluster import Cluster, built, check, main, wait_for
from history import History, Ledger
from load import LOST, Connection, Load
from many_groups import all_led, has_leaders
from slots import COUNT, as_map, owners

WRITERS = 6
MIXERS = 9
REGISTERS = 6
COUNTERS = 3
# A move of a few keys takes some commits; behind a killed leader an election more.
MOVE_SECONDS = 60
LED_SECONDS = 60
WATCHED = ("watched:0", "watched:1")
HEARD_SECONDS = 60


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--kills", type=int, default=4, help="of nodes, in the middle of moves")
    parser.add_argument("--keys", type=int, default=3000, help="that nobody writes meanwhile")
    parser.add_argument("--seed", type=int, default=1)


async def moves_of(node):
    connection = await Connection.to(node).open()
    try:
        return [as_map(move) for move in await connection.call("LEASEHOLD", "SLOTS")]
    finally:
        connection.close()


async def settled(node):
    """No move is under way."""
    end = time.monotonic() + MOVE_SECONDS
    while True:
        try:
            moves = await moves_of(node)
        except (resp.ConnectionLost, resp.TimedOut):
            moves = None
        if moves == []:
            return
        check(time.monotonic() < end, f"moves that do not end: {moves}\n{node.log_text()[-3000:]}")
        await asyncio.sleep(0.02)


class Mover:
    def __init__(self, options, cluster):
        self._options = options
        self._cluster = cluster
        self._draw = random.Random(options.seed)
        self._hot = []
        self.took = []
        self.cancelled = 0

    async def prepare(self):
        connection = await Connection.to(self._cluster.nodes[0]).open()
        registers = [f"register:{number}" for number in range(REGISTERS)]
        for key in registers + [f"counter:{number}" for number in range(COUNTERS)] + list(WATCHED):
            self._hot.append(await connection.call("CLUSTER", "KEYSLOT", key))
        connection.close()

    def _slots(self):
        """Those of the registers and many others, or only these."""
        some = {str(slot) for slot in self._hot if self._draw.random() < 0.5}
        first = self._draw.randrange(COUNT - 600)
        some.add(f"{first}-{first + self._draw.randrange(600)}")
        return sorted(some)

    async def move(self, kill):
        node = self._draw.choice(self._cluster.nodes)
        begun = time.monotonic()
        to = str(self._draw.randint(1, self._options.groups))
        connection = await Connection.to(node).open()
        reply = await connection.call("LEASEHOLD", "SLOTS", "MOVE", *self._slots(), "TO", to)
        check(isinstance(reply, int) or reply.not_executed or reply.unknown or "on their way" in reply.text,
              f"LEASEHOLD SLOTS MOVE: {reply!r}")
        if kill:
            await asyncio.sleep(self._draw.random() * 0.05)
            other = self._draw.choice(self._cluster.nodes)
            other.kill()
            await asyncio.sleep(self._draw.random())
            other.start()
            wait_for(f"all groups at {other}", LED_SECONDS,
                     lambda: other.try_status() and has_leaders(other), pause=0.2)
        elif self._draw.random() < 0.2:
            reply = await connection.call("LEASEHOLD", "SLOTS", "CANCEL", "0-16383")
            self.cancelled += reply if isinstance(reply, int) else 0
        connection.close()
        for each in self._cluster.nodes:
            await settled(each)
        if not kill:
            self.took.append(time.monotonic() - begun)


class Scanner:
    """Scans all keys that nobody writes, at one node after the other, until stop()."""

    def __init__(self, options, nodes):
        self._keys = options.keys
        self._nodes = nodes
        self._ends = False
        self.whole = 0  # scans
        self.twice = 0  # keys, because of moves
        self.parts = 0
        self._task = asyncio.create_task(self._run())

    async def stop(self):
        self._ends = True
        await self._task

    async def _run(self):
        while not self._ends:
            try:
                await self._scan(self._nodes[self.whole % len(self._nodes)])
            except LOST:
                await asyncio.sleep(0.1)

    async def _scan(self, node):
        connection = await Connection.to(node).open()
        found, parts, cursor = [], 0, b"0"
        try:
            while parts == 0 or cursor != b"0":
                reply = await connection.call("SCAN", cursor, "MATCH", "still:*", "COUNT", "100")
                if not isinstance(reply, list):
                    check(reply.not_executed, f"SCAN: {reply!r}")
                    await asyncio.sleep(0.1)
                    if parts == 0 or self._ends:
                        return
                    continue
                cursor, parts = reply[0], parts + 1
                self.parts += 1
                found += reply[1]
        finally:
            connection.close()
        keys = set(found)
        check(len(keys) == self._keys, f"SCAN at {node}: {self._keys - len(keys)} keys are missing")
        self.whole += 1
        self.twice += len(found) - len(keys)


class Counter:
    """Counts in one key until stop(), at any node: each step is executed once."""

    STEPS_AT_A_NODE = 50

    def __init__(self, nodes, number):
        self.key = f"counter:{number}"
        self.count = 0
        self.sessions = 0
        self._nodes = nodes
        self._session = None
        self._sequence = 0
        self._ends = False
        self.task = asyncio.create_task(self._run(number))

    async def stop(self):
        self._ends = True
        await self.task

    async def _run(self, turn):
        while not self._ends:
            connection = Connection.to(self._nodes[turn % len(self._nodes)])
            turn += 1
            try:
                await connection.open()
                for _ in range(self.STEPS_AT_A_NODE):
                    await self._step(connection)
                    await asyncio.sleep(0.005)
            except LOST:
                await asyncio.sleep(0.05)
            finally:
                connection.close()

    async def _step(self, connection):
        if await connection.call("LEASEHOLD", "GROUP", "KEY", self.key) != "OK":
            return
        if self._session is None:
            reply = await connection.call("LEASEHOLD", "SESSION", "OPEN")
            if not isinstance(reply, int):
                return
            self._session, self._sequence = reply, 1
            self.sessions += 1
        reply = await connection.call("LEASEHOLD", "ONCE", self._session, self._sequence, "INCR", self.key)
        if isinstance(reply, int):
            check(reply == self.count + 1, f"{self.key}: {reply} behind {self.count}")
            self.count = reply
            self._sequence += 1
        elif "has left the group of the session" in reply.text:
            self._session = None
        else:
            check(reply.not_executed or reply.unknown, f"LEASEHOLD ONCE: {reply!r}")


class Watchers:
    """At each node one of each key, by `leasehold watch`."""

    def __init__(self, options, nodes):
        self._options = options
        self._nodes = nodes
        self._begun = []

    async def begin(self):
        for node in self._nodes:
            for key in WATCHED:
                words = [self._options.binary, "watch", "--servers", f"127.0.0.1:{node.port}", "--key", key, "--values"]
                self._begun.append((node, key, await asyncio.create_subprocess_exec(
                    *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL)))

    async def end(self):
        """Each hears of the last write."""
        connection = await Connection.to(self._nodes[0]).open()
        for key in WATCHED:
            while await connection.call("SET", key, "last") != "OK":
                await asyncio.sleep(0.1)
        connection.close()
        for node, key, process in self._begun:
            try:
                await asyncio.wait_for(self._hear(node, key, process), HEARD_SECONDS)
            except asyncio.TimeoutError:
                check(False, f"a watcher at {node} has not heard of the last write to {key}")
        print(f"{len(self._begun)} watchers heard of the last write")

    async def stop(self):
        for _, _, process in self._begun:
            if process.returncode is None:
                process.kill()
            await process.wait()

    @staticmethod
    async def _hear(node, key, process):
        async for line in process.stdout:
            if line.split()[-1:] == [b"last"]:
                return
        check(False, f"a watcher at {node} of {key} has ended")


async def move_all(options, cluster, ledger, history):
    watchers = Watchers(options, cluster.nodes)
    try:
        await watchers.begin()
        return await move_beside(watchers, options, cluster, ledger, history)
    finally:
        await watchers.stop()


async def move_beside(watchers, options, cluster, ledger, history):
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS, 0.005)
    mover = Mover(options, cluster)
    await mover.prepare()
    scanner = Scanner(options, cluster.nodes)
    counters = [Counter(cluster.nodes, number) for number in range(COUNTERS)]
    kills = set(random.Random(options.seed).sample(range(options.moves), options.kills))
    for number in range(options.moves):
        await mover.move(number in kills)
        load.check()
        if (number + 1) % 10 == 0:
            print(f"{number + 1} moves; writes: {ledger.summary()}", flush=True)
    for client in [scanner, *counters]:
        await client.stop()
    await load.stop()
    await watchers.end()
    took = sorted(mover.took)
    print(f"a move of up to 600 slots took {took[len(took) // 2]:.2f} s, {took[-1]:.2f} s at most; "
          f"{mover.cancelled} slots stayed where they were; {scanner.whole} scans in "
          f"{scanner.parts} parts, with {scanner.twice} keys twice")
    check(scanner.whole > 0, "no SCAN came to its end")
    print(f"{sum(counter.count for counter in counters)} commands were executed once, in "
          f"{sum(counter.sessions for counter in counters)} sessions")
    return counters


def run(options):
    ledger, history = Ledger("ledger"), History()
    flags = ["--groups", str(options.groups)]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in cluster.nodes)
        for node in cluster.nodes:
            node.flags += ["--client-addresses", addresses]
        cluster.start()
        for node in cluster.nodes:
            wait_for("leaders of all groups", LED_SECONDS,
                     lambda node=node: all_led(node, cluster.nodes, options.groups))
        first = owners(cluster.nodes[0])
        with cluster.nodes[0].client() as client:
            for number in range(options.keys):
                words = ["SET", f"still:{number}", str(number)] + (["EX", "1000"] if number % 3 == 0 else [])
                check(client.call(*words) == "OK", "SET")
        counters = asyncio.run(move_all(options, cluster, ledger, history))
        layouts = [owners(node) for node in cluster.nodes]
        check(layouts[0] == layouts[1] == layouts[2], "the nodes know different layouts")
        print(f"{sum(a != b for a, b in zip(first, layouts[0]))} slots are in another group now")
        for node in cluster.nodes:
            count, found = ledger.read_back(node)
            print(f"{node} returned all of {count} writes; {found} of the {len(ledger.unknown)} unknown ones were "
                  f"executed")
            with node.client() as client:
                for number in range(options.keys):
                    check(client.call("GET", f"still:{number}") == str(number).encode(), f"still:{number}")
                    if number % 300 == 0:
                        check(0 < client.call("TTL", f"still:{number}") <= 1000, f"TTL still:{number}")
                for counter in counters:
                    # The last step may have been executed without an answer.
                    found = int(client.call("GET", counter.key) or 0)
                    check(found - counter.count in (0, 1), f"{counter.key} is {found}, not {counter.count}")
                listed = client.call("KEYS", "*")
                check(len(listed) == len(set(listed)) == client.call("DBSIZE"), "DBSIZE, or a key is listed twice")
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    check(linearizable, "the history is not linearizable")


if __name__ == "__main__":
    main(__doc__, run, arguments)
