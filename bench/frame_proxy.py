#!/usr/bin/env python3
"""Stands between the nodes of a cluster and knows their frames (docs/wire.md): delays, reorders,
doubles, loses and replays whole frames, cuts a connection in the middle of one, or carries nothing.

A program of its own, so that it has a processor to itself. Its first line of input is one JSON
object:

    {"seed": 1, "targets": {"2": {"listen": "host:port", "forward": "host:port"}},
     "sources": {"1": "address that connections on behalf of node 1 come from"}}

Each further line changes one link: {"from": 1, "to": 2, "set": {...}} with members of Link.QUIET;
what is not named is quiet again. {"node": 4, "place": 1}: node 4 took the place of node 1, and is
named so here. Chances are per frame, delays in seconds. At the end of the input
it prints its counts, and ends."""

import asyncio
import collections
import heapq
import json
import os
import random
import struct
import sys

HEADER_BYTES = 24
MAGIC = b"LHP1"
# Old frames of a link that may be sent again, however old the connection that carried them.
KEPT_FRAMES = 4096
KEPT_BYTES_MAX = 64 << 10
READ_BYTES = 1 << 16
# Frames of one connection that wait for their time; its dialler waits when there are more.
WAITING_MAX = 4096


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def hello_from(body):
    """Field 4, a varint, of the hello: who dials. 0: it does not say."""
    at = 0
    while at < len(body):
        tag, at = varint(body, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = varint(body, at)
            if number == 4:
                return value
        elif kind == 1:
            at += 8
        elif kind == 2:
            size, at = varint(body, at)
            at += size
        else:
            return 0
    return 0


def varint(body, at):
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


class Link:
    """What one node sends another, over all connections, and what happens to it."""

    QUIET = {"delay": (0, 0), "keep_order": True, "double": 0, "lose": 0, "replay": 0, "cut": 0,
             "carries": True}

    def __init__(self, source, target, seed):
        self.random = random.Random(f"{seed}:{source}:{target}")
        self.old = collections.deque(maxlen=KEPT_FRAMES)
        self.counts = collections.Counter()
        self._open = asyncio.Event()
        self.change({})

    def change(self, values):
        unknown = set(values) - set(self.QUIET)
        if unknown:
            raise ValueError(f"no such fault: {unknown}")
        self.now = {**self.QUIET, **values}
        self.quiet = self.now == self.QUIET
        (self._open.set if self.now["carries"] else self._open.clear)()

    async def carries(self):
        await self._open.wait()


class Cut(Exception):
    """The connection ends here on purpose."""


class Outlet:
    """Writes frames of one connection when they are due."""

    def __init__(self, writer, link):
        self._writer = writer
        self._link = link
        self._waiting = []
        self._number = 0
        self._last_due = 0.0
        self._wake = asyncio.Event()

    @property
    def empty(self):
        return not self._waiting

    @property
    def full(self):
        return len(self._waiting) >= WAITING_MAX

    def send(self, frame):
        """Says Cut after a part of the frame if the link wants that."""
        link, now = self._link, self._link.now
        link.counts["frames"] += 1
        if link.quiet and not self._waiting:
            self._writer.write(frame)
        else:
            self._mistreat(frame, now, link)
        if len(frame) <= KEPT_BYTES_MAX:
            link.old.append(frame)

    def _mistreat(self, frame, now, link):
        source = link.random
        if source.random() < now["cut"]:
            link.counts["cut"] += 1
            self._writer.write(frame[:source.randrange(1, len(frame))])
            self._waiting.clear()
            raise Cut
        if source.random() < now["lose"]:
            link.counts["lost"] += 1
            return
        self._later(frame, now, source)
        if source.random() < now["double"]:
            link.counts["doubled"] += 1
            self._later(frame, now, source)
        if link.old and source.random() < now["replay"]:
            link.counts["replayed"] += 1
            self._later(source.choice(link.old), now, source)

    def _later(self, frame, now, source):
        due = asyncio.get_running_loop().time() + source.uniform(*now["delay"])
        if now["keep_order"]:
            due = max(due, self._last_due)
        self._last_due = max(due, self._last_due)
        self._number += 1
        heapq.heappush(self._waiting, (due, self._number, frame))
        self._wake.set()

    async def run(self):
        loop = asyncio.get_running_loop()
        while True:
            while self._waiting and self._waiting[0][0] <= loop.time():
                await self._link.carries()
                self._writer.write(heapq.heappop(self._waiting)[2])
            self._wake.clear()
            # Not asyncio.wait_for(): it can lose a cancellation (until Python 3.12).
            alarm = loop.call_at(self._waiting[0][0], self._wake.set) if self._waiting else None
            try:
                await self._wake.wait()
            finally:
                if alarm is not None:
                    alarm.cancel()


class Proxy:
    def __init__(self, settings):
        self._settings = settings
        self._links = {}
        self._places = {}  # of nodes that have taken the place of another

    def moves_in(self, node, place):
        self._places[node] = place

    def link(self, source, target):
        if (source, target) not in self._links:
            self._links[source, target] = Link(source, target, self._settings["seed"])
        return self._links[source, target]

    async def listen(self):
        for target, addresses in self._settings["targets"].items():
            host, port = address(addresses["listen"])

            async def accepted(reader, writer, target=int(target)):
                await self._connection(reader, writer, target)
            await asyncio.start_server(accepted, host, port)

    def counts(self):
        return dict(sum((link.counts for link in self._links.values()), collections.Counter()))

    async def _connection(self, reader, writer, target):
        tasks, onward = [], None
        try:
            frames = Frames(reader)
            hello = await frames.next()
            source = hello_from(hello[HEADER_BYTES:])
            source = self._places.get(source, source)
            link, back = self.link(source, target), self.link(target, source)
            await link.carries()
            host, port = address(self._settings["targets"][str(target)]["forward"])
            local = self._settings["sources"].get(str(source))
            answers, onward = await asyncio.wait_for(asyncio.open_connection(
                host, port, local_addr=(local, 0) if local else None), 2)
            onward.write(hello)
            outlet = Outlet(onward, link)
            tasks = [asyncio.create_task(work) for work in (
                outlet.run(), self._forward(frames, outlet, link, onward),
                self._answer(answers, writer, back))]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, EOFError, ValueError, IndexError, asyncio.TimeoutError):
            pass  # a connection that does not come about, as between any two nodes
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for leg in (writer, onward):
                if leg is not None:
                    leg.close()

    @staticmethod
    async def _forward(frames, outlet, link, onward):
        while True:
            frame = await frames.next()
            await link.carries()
            outlet.send(frame)
            while outlet.full:
                await asyncio.sleep(0.01)
            await onward.drain()

    @staticmethod
    async def _answer(reader, writer, link):
        """The accepting side says hello and, at most, why it ends: passed on as it comes."""
        while True:
            data = await reader.read(READ_BYTES)
            if not data:
                raise EOFError
            await link.carries()
            writer.write(data)
            await writer.drain()


class Frames:
    """Whole frames out of a stream."""

    def __init__(self, reader):
        self._reader = reader
        self._buffer = bytearray()

    async def next(self):
        while True:
            if len(self._buffer) >= HEADER_BYTES:
                if self._buffer[:4] != MAGIC:
                    raise ValueError("no frame")
                proto, payload = struct.unpack_from("<II", self._buffer, 8)
                size = HEADER_BYTES + proto + payload
                if len(self._buffer) >= size:
                    frame = bytes(self._buffer[:size])
                    del self._buffer[:size]
                    return frame
            data = await self._reader.read(READ_BYTES)
            if not data:
                raise EOFError
            self._buffer += data


async def main():
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    proxy = Proxy(json.loads(await commands.readline()))
    await proxy.listen()
    print("ready", flush=True)
    while line := await commands.readline():
        change = json.loads(line)
        if "place" in change:
            proxy.moves_in(change["node"], change["place"])
        else:
            proxy.link(change["from"], change["to"]).change(change["set"])
    print(json.dumps(proxy.counts()), flush=True)
    os._exit(0)  # with the connections that are under way


if __name__ == "__main__":
    asyncio.run(main())
