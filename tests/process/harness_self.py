#!/usr/bin/env python3
"""The judges are judged: the ledger, the history's checker and the reply parser find what is
planted."""

import argparse
import asyncio
import os
import struct
import subprocess
import sys
import tempfile
import types
import xml.dom.minidom

import chaos_picture
import resp
from chaos_plan import CLASSES, Plan
from chaos_slots import without
from chaos_watch import Claims, LogReader
from cluster import Failed, built, check
from disk import Shim
from history import History, Ledger

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import frame_proxy  # noqa: E402


class FakeClient:
    """Answers GET from a dictionary."""

    def __init__(self, values):
        self._values = values

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def pipeline(self, commands):
        return [self._values.get(key) for _, key in commands]


class FakeNode:
    def __init__(self, values):
        self._values = values

    def client(self, **_):
        return FakeClient(self._values)


def finds(what, function, *args):
    try:
        function(*args)
    except Failed:
        return
    raise Failed(f"{what} was not noticed")


def ledger():
    """One write of each kind; then each way in which a store can contradict them."""
    book = Ledger("self")
    replies = ["OK", None, resp.RespError("UNKNOWNOUTCOME x"), resp.RespError("TRYAGAIN x")]
    for reply in replies:
        number, _, _ = book.next()
        book.record(number, reply)
    key, value = zip(*(book.words(number) for number in range(len(replies))))
    value = [v.encode() for v in value]
    book.read_back(FakeNode({key[0]: value[0]}))
    book.read_back(FakeNode({key[0]: value[0], key[1]: value[1], key[2]: value[2]}))
    finds("a lost write", book.read_back, FakeNode({}))
    finds("a changed write", book.read_back, FakeNode({key[0]: b"x"}))
    finds("a write that was not executed", book.read_back,
          FakeNode({key[0]: value[0], key[3]: value[3]}))
    finds("an unknown write with another value", book.read_back,
          FakeNode({key[0]: value[0], key[1]: b"x"}))
    finds("an answer that is none", book.record, 9, resp.RespError("ERR x"))


def history(checker):
    good = History()
    good.wrote(1, "k", 1, 10, "OK", 20)
    good.wrote(1, "k", 2, 30, None)
    good.read(2, "k", b"1", 40, 50)
    good.read(2, "k", b"2", 60, 70)
    good.wrote(1, "k", 3, 80, resp.RespError("NOLEADER x"))
    good.read(2, "k", resp.RespError("NOLEADER x"), 90, 95)
    good.read(2, "other", None, 60, 70)
    check(good.judge(checker)[0], "a good history was refused")
    stale = History()
    stale.wrote(1, "k", 1, 10, "OK", 20)
    stale.wrote(1, "k", 2, 30, "OK", 40)
    stale.read(2, "k", b"1", 50, 60)
    check(not stale.judge(checker)[0], "a stale read was not noticed")
    undone = History()
    undone.wrote(1, "k", 1, 10, resp.RespError("TRYAGAIN x"))
    undone.read(2, "k", b"1", 50, 60)
    check(not undone.judge(checker)[0], "a write that was not executed was read unnoticed")
    for line in ("1 2 3", '{"op":"got"}', '{"op":"get","key":1,"value":1,"start":5,"end":2}'):
        run = subprocess.run([checker, "-"], input=line + "\n", text=True, capture_output=True,
                             check=False)
        check(run.returncode == 2, f"the checker took {line!r}")


def parser():
    data = b"+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n:1\r\n*1\r\n$0\r\n\r\n"
    expected = ["OK", resp.RespError("ERR no"), -7, b"a\r\n", None, [1, [b""]]]
    for size in (1, 2, 3, len(data)):
        taken, under_test = [], resp.Parser()
        for begin in range(0, len(data), size):
            under_test.feed(data[begin:begin + size])
            whole, reply = under_test.take()
            while whole:
                taken.append(reply)
                whole, reply = under_test.take()
        check(taken == expected, f"in pieces of {size}: {taken}")


def swaps(checker):
    good = History()
    good.swapped(1, "k", None, 1, 10, True)
    good.swapped(1, "k", 1, 2, 10, False)
    good.read(2, "k", b"2", 20)
    check(good.judge(checker)[0], "a good history of compare-and-set was refused")
    lost = History()
    lost.swapped(1, "k", None, 1, 10, True)
    lost.swapped(2, "k", None, 2, 20, True)
    check(not lost.judge(checker)[0], "two writes over the same nothing were not noticed")


def claims():
    """What no fault of a chaos run excuses."""
    seen = Claims()
    seen.leads(1, 1, "a")
    seen.leads(1, 1, "b")
    seen.leads(2, 2, "a")
    finds("two leaders of a term", seen.leads, 2, 3, "b")
    seen.lease(1, 1, 1.0, 1.1)
    seen.lease(2, 2, 1.2, 1.3)
    seen.lease(1, 1, 1.25, 2.0)  # asked before the other was known: it may have been earlier
    finds("two leases", seen.lease, 1, 1, 1.4, 1.5)
    now = [0.0]
    reader = LogReader(types.SimpleNamespace(id=2, log_path=os.devnull), {1: Claims()}, lambda: now[0])
    for line in ("term 7: pre-vote for node 1", "term 7: vote for node 3",
                 "term 7: vote for node 3", "term 7: no vote for node 1: this node voted",
                 "term 8: pre_candidate -> candidate: a quorum would vote for this node",
                 "term 8: candidate -> leader: a quorum voted for this node"):
        reader.judge("2026-01-01 00:00:00.000 debug   node 2: " + line)
    finds("two votes in a term", reader.judge, "node 2: term 7: vote for node 1")
    finds("a vote beside its own candidacy", reader.judge, "node 2: term 8: vote for node 1")
    reader.judge("node 2: term 8: follower -> follower: started")  # it may not have been durable
    reader.judge("node 2: term 8: vote for node 1")
    now[0] = 60.0
    reader.judge("node 2: term 8: follower -> follower: started")
    finds("a vote that was forgotten", reader.judge, "node 2: term 8: vote for node 3")
    reader.judge("node 2: term 9: vote for node 3")
    reader.judge("node 2: term 8: follower -> follower: started")  # the vote never was durable
    reader.judge("node 2: term 9: vote for node 1")
    reader.became_another()
    reader.judge("node 4: term 9: vote for node 3")
    finds("two votes of the next member", reader.judge, "node 4: term 9: vote for node 1")


def plans():
    """The same seed is the same plan; every class comes; nothing lasts beyond its round."""
    kinds = set()
    for number in range(1, 40):
        one, two = (Plan("5:x", number, CLASSES, 3) for _ in range(2))
        check(list(map(str, one.faults)) == list(map(str, two.faults)), "two plans of one seed")
        check(all(fault.at + fault.lasts <= one.seconds for fault in one.faults), "too long")
        kinds |= {fault.kind for fault in one.faults}
    check(kinds == set(CLASSES), f"never drawn: {set(CLASSES) - kinds}")
    check(without(3, 9, {3, 5, 6, 20}) == [(4, 4), (7, 9)] and not without(3, 3, {3}), "slots that stay")
    story = chaos_picture.Story("a < b")
    story.new_round(1, ["kill"])
    story.state(1, 0.0, "leader", 1, True)
    story.end(story.begin(one.faults[0], []))
    story.violation("x & y")
    xml.dom.minidom.parseString(chaos_picture.Picture(story, [1, 2, 3]).finish())


def frame(body):
    return struct.pack("<4sHBBIIII", b"LHP1", 3, 3, 0, len(body), 0, 0, 0) + body


async def proxied(values, count):
    """What an outlet makes of `count` frames."""
    written = bytearray()
    link = frame_proxy.Link(1, 2, 1)
    link.change(values)
    outlet = frame_proxy.Outlet(types.SimpleNamespace(write=written.extend), link)
    task = asyncio.create_task(outlet.run())
    try:
        for number in range(count):
            outlet.send(frame(b"%04d" % number))
        while not outlet.empty:
            await asyncio.sleep(0.01)
    except frame_proxy.Cut:
        return bytes(written), True
    finally:
        task.cancel()
    size = frame_proxy.HEADER_BYTES + 4
    check(len(written) % size == 0, "a part of a frame")
    return [int(written[at + size - 4:at + size]) for at in range(0, len(written), size)], False


def proxy():
    def through(count=200, **values):
        return asyncio.run(proxied(values, count))
    in_order = list(range(200))
    check(through() == (in_order, False), "a quiet link changes something")
    check(through(delay=(0, 0.02))[0] == in_order, "a slow link changes the order")
    mixed = through(delay=(0, 0.02), keep_order=False)[0]
    check(sorted(mixed) == in_order and mixed != in_order, "nothing is out of order")
    check(set(through(double=0.5)[0]) == set(in_order), "a frame is lost")
    check(len(through(double=0.5)[0]) > 250, "nothing is doubled")
    check(len(through(replay=0.5)[0]) > 250, "nothing is replayed")
    check(len(through(lose=0.5)[0]) < 150, "nothing is lost")
    data, cut = through(cut=0.5)
    check(cut and len(data) % (frame_proxy.HEADER_BYTES + 4) != 0, "not cut inside a frame")
    hello = b"\x08\x03\x10\x03\x19" + bytes(8) + b"\x20\x96\x01\x28\x02"
    check(frame_proxy.hello_from(hello) == 150, "who says hello is not understood")


class Disk:
    """As much of a node as disk.Shim asks for."""

    def __init__(self, folder):
        self.data_dir = folder
        self.log_path = os.path.join(folder, "said")
        self.environment = {}


# A file with a write that was never synced is removed, and the next one has its number.
REMOVED = """
import os, sys
log = os.open(sys.argv[1], os.O_RDONLY)
def make(name):
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, dir_fd=log)
first = make("first")
os.ftruncate(first, 8192)
os.pwrite(first, b"held", 4096)
number = os.fstat(first).st_ino
os.close(first)
os.unlink("first", dir_fd=log)
for i in range(100):
    file = make(str(i))
    if os.fstat(file).st_ino == number:
        os.pwrite(file, b"mark", 0)
        os.fsync(file)
        print(os.fstat(file).st_size)
        break
else:
    print("none")
"""


def shim(library):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "log"))
        node = Disk(folder)
        Shim(library, node).hold(leak_per_mille=0)
        said = subprocess.run([sys.executable, "-S", "-c", REMOVED, os.path.join(folder, "log")],
                              env={**os.environ, **node.environment}, capture_output=True, text=True,
                              timeout=60, check=True).stdout.strip()
    if said == "none":
        print("this file system gives no number twice: what the shim forgets was not seen")
        return
    check(said == "4", f"what was held for a removed file came into another one: {said} bytes")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    options.add_argument("--shim", required=True, type=built, help="the disk_shim library")
    given = options.parse_args()
    checker = given.checker
    shim(given.shim)
    ledger()
    history(checker)
    swaps(checker)
    claims()
    plans()
    proxy()
    parser()
    print("passed")


if __name__ == "__main__":
    main()
