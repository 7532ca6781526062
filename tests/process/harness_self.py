#!/usr/bin/env python3
"""The judges are judged: the ledger, the history's checker and the reply parser find what is
planted."""

import argparse
import subprocess

import resp
from cluster import Failed, built, check
from history import History, Ledger


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


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    checker = options.parse_args().checker
    ledger()
    history(checker)
    parser()
    print("passed")


if __name__ == "__main__":
    main()
