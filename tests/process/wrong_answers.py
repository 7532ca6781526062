#!/usr/bin/env python3
"""A server that answers nonsense: each command of the program says what is wrong and ends with its status. Keys that
are missing, of another type or out of range; text that is no JSON; replies of another kind."""

import copy
import json
import socket
import subprocess
import threading

from cluster import check, free_port, main

STATUS = {
    "id": 1, "role": "leader", "term": 3, "leader": 1, "last": 9, "commit": 9, "applied": 9, "lease_left": 500.0,
    "formed": True, "joining": False, "missing": [], "witness": False, "snapshots": [],
    "membership": {"term": 3, "index": 2, "id": "00000000000000ff", "joint": False, "committed": True},
    "members": [{"id": 1, "address": "127.0.0.1:7", "voter": True, "connected": True, "match": 9, "leaving": False},
                {"id": 2, "address": "127.0.0.1:8", "voter": True, "connected": True, "match": 9, "leaving": False}],
}
SETTINGS = {
    "node": 1, "leader": 1, "agreed": True, "committed": True, "lease": "1s", "heartbeat": "100ms",
    "max-clock-drift": "0.1", "max-round-trip": "50ms", "margin": "10ms", "election-timeout": "300ms",
    "lease-reads": "on", "usable": "808181818ns",
}
# Without these there are no settings to show.
NEEDED = {"lease", "heartbeat", "max-clock-drift", "max-round-trip", "margin", "election-timeout", "lease-reads"}
WRONG_VALUES = [None, -1, 2**64, 1e308, "x", "-1s", True, [], {}, [None], [{"id": {}}]]
MISSING = object()
# Whole replies. The last ones end in the middle.
WRONG_REPLIES = [b"+OK\r\n", b":7\r\n", b"$-1\r\n", b"*0\r\n", b"$2\r\n{}\r\n", b"$2\r\n[]\r\n", b"$4\r\nnull\r\n",
                 b"$3\r\n{\"a\r\n", b"$4\r\n\xff\xfe{}\r\n", b"-ERR no\r\n", b"-TRYAGAIN no\r\n", b"?\r\n",
                 b"$99999999999999999999\r\n", b"*99999999999\r\n", b"$5\r\nab", b""]
STATUSES = {0, 1, 2, 3, 4}

COMMANDS = [["status"], ["status", "--json"], ["member", "list"], ["member", "list", "--json"],
            ["member", "remove", "2"], ["member", "add", "3=127.0.0.1:9"], ["settings", "show"],
            ["settings", "show", "--json"], ["settings", "check", "lease=2s"], ["settings", "set", "lease=2s"],
            ["transfer"], ["snapshot"], ["backup", "b"], ["lease", "list"], ["get", "k"], ["put", "k", "v"]]
# These ask for nothing but what is in WRONG_RUNS.
SLOTS_COMMANDS = [["slots"], ["slots", "--json"], ["slots", "move", "0-99", "--to", "2"],
                  ["slots", "move", "0-99", "--to", "2", "--wait"], ["slots", "cancel", "7"]]
RUN = b"*6\r\n$5\r\nfirst\r\n:0\r\n$4\r\nlast\r\n:99\r\n$5\r\ngroup\r\n:7\r\n"
WRONG_RUNS = [b"*1\r\n:5\r\n", b"*1\r\n*0\r\n", b"*1\r\n*1\r\n$5\r\nfirst\r\n", b"*1\r\n*2\r\n$5\r\nfirst\r\n:1\r\n",
              *(b"*1\r\n" + RUN.replace(b":99", wrong) for wrong in (b":16384", b":-1", b"$1\r\n9", b"$-1", b"*0")),
              b"*1\r\n" + RUN.replace(b":0", b":100"), b"*1\r\n" + RUN.replace(b"first", b"start")]
# The answer to every form of LEASEHOLD TRACE. The first one begins a recording, and goes on with nonsense.
BEGUN = b"*8\r\n$2\r\nid\r\n:7\r\n$4\r\nnode\r\n:1\r\n$7\r\nprocess\r\n:1\r\n$9\r\nholder_ns\r\n:99\r\n"
WRONG_TRACES = [BEGUN, BEGUN.replace(b":99", b":-99"), BEGUN.replace(b"node\r\n:1", b"node\r\n:0"),
                BEGUN.replace(b":99", b"$1\r\n9"), BEGUN.replace(b"*8", b"*7"),
                b"*2\r\n*2\r\n$9\r\nholder_ns\r\n:5\r\n*1\r\n$2\r\n{}\r\n"]
# How long each may look for a better answer. Those that are not here answer at once, or are bounded by it too.
SHORT = ["--timeout", "60ms"]


def arguments(parser):
    parser.add_argument("--every", type=int, default=1, help="only each n-th of the wrong answers")


class WrongServer:
    """Answers each command by its first words; the rest with OK."""

    def __init__(self):
        self.replies = {}
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as lines:
            try:
                while (head := lines.readline()).startswith(b"*"):
                    words = []
                    for _ in range(int(head[1:])):
                        size = int(lines.readline()[1:])
                        words.append(lines.read(size + 2)[:-2].decode())
                    reply = self.replies.get(" ".join(words[:2]).upper(), b"+OK\r\n")
                    if not reply:
                        return
                    connection.sendall(reply)
            except (OSError, ValueError):
                return


def bulk(value):
    text = json.dumps(value).encode()
    return b"$%d\r\n%s\r\n" % (len(text), text)


def with_value(whole, path, value):
    changed = copy.deepcopy(whole)
    at = changed
    for step in path[:-1]:
        at = at[step]
    if value is MISSING:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return changed


def paths(whole, before=()):
    steps = whole.keys() if isinstance(whole, dict) else range(len(whole))
    for step in steps:
        yield (*before, step)
        if isinstance(whole[step], (dict, list)):
            yield from paths(whole[step], (*before, step))


def variants(whole):
    """Each key gone, or with each wrong value. Yields the path, and the reply."""
    for path in paths(whole):
        for value in [MISSING, *WRONG_VALUES]:
            yield path, value, bulk(with_value(whole, path, value))
    for reply in WRONG_REPLIES:
        yield (), reply, reply


def ask(binary, port, words, short=SHORT):
    done = subprocess.run([binary, *words, "--servers", f"127.0.0.1:{port}", *short], capture_output=True, timeout=20,
                          check=False)
    said = (done.stdout + done.stderr).decode(errors="replace")
    check(done.returncode in STATUSES, f"{words}: status {done.returncode}: {said}")
    check("terminate called" not in said and "Sanitizer" not in said, f"{words}: {said}")
    if done.returncode != 0:
        check(said.strip(), f"{words}: status {done.returncode}, and no word why")
    return done.returncode, said


def run(options):
    server = WrongServer()
    good = {"LEASEHOLD STATUS": bulk(STATUS), "LEASEHOLD SETTINGS": bulk(SETTINGS)}
    server.replies = dict(good)
    status, said = ask(options.binary, server.port, ["settings", "show"])
    check(status == 0 and "808181818ns" in said, f"a right answer is not understood: {said}")
    status, said = ask(options.binary, server.port, ["member", "list"])
    check(status == 0 and "127.0.0.1:8" in said, f"a right answer is not understood: {said}")
    number = 0
    refused = 0
    for words in COMMANDS:
        about = "SETTINGS" if words[0] == "settings" else "STATUS"
        whole = SETTINGS if about == "SETTINGS" else STATUS
        for path, value, reply in variants(whole):
            number += 1
            if number % options.every != 0:
                continue
            server.replies = {**good, f"LEASEHOLD {about}": reply}
            status, said = ask(options.binary, server.port, words)
            refused += status != 0
            needed = path and path[0] in NEEDED and about == "SETTINGS" and words[1] in ("show", "check")
            if needed and "--json" not in words and (value is MISSING or not isinstance(value, str)):
                check(status != 0, f"{words} without a right {path}: {said}")
    for words in COMMANDS:
        for reply in WRONG_REPLIES:
            server.replies = {f"{first} {second}": reply for first, second in
                              [("LEASEHOLD", "MEMBER"), ("LEASEHOLD", "SETTINGS"), ("LEASEHOLD", "TRANSFER"),
                               ("LEASEHOLD", "SNAPSHOT"), ("LEASEHOLD", "BACKUP"), ("LEASE", "LIST"), ("GET", "K"),
                               ("SET", "K")]} | {"LEASEHOLD STATUS": bulk(STATUS)}
            number += 1
            if number % options.every == 0:
                refused += ask(options.binary, server.port, words)[0] != 0
    server.replies = {"LEASEHOLD SLOTS": b"*1\r\n" + RUN}
    status, said = ask(options.binary, server.port, ["slots"])
    check(status == 0 and "0-99" in said and "7" in said, f"a right answer is not understood: {said}")
    for words in SLOTS_COMMANDS:
        for reply in [*WRONG_REPLIES, *WRONG_RUNS]:
            server.replies = {"LEASEHOLD SLOTS": reply}
            number += 1
            if number % options.every == 0:
                status, said = ask(options.binary, server.port, words)
                refused += status != 0
                check(status != 0 or reply in (b":7\r\n", b"*0\r\n"), f"{words} takes {reply!r}: {said}")
    for reply in [*WRONG_REPLIES, *WRONG_TRACES]:
        server.replies = {"LEASEHOLD TRACE": reply}
        number += 1
        if number % options.every == 0:
            status, said = ask(options.binary, server.port, ["trace", "--seconds", "1", "--out", "/dev/null"], [])
            refused += status != 0
            check(status in (0, 4) and "127.0.0.1" in said or "broke off" in said, f"trace takes {reply!r}: {said}")
    print(f"{number // options.every} wrong answers, {refused} of them refused, none without a word")


if __name__ == "__main__":
    main(__doc__, run, arguments)
