#!/usr/bin/env python3
"""Keeps the table of edges.txt: which file may include what, and what it may say.

  edges.py TREE             check the tree; one line per finding, status 1 if there is any
  edges.py --self-test      plant one forbidden thing of each kind in a tree, expect each found
"""

import fnmatch
import os
import re
import sys
import tempfile

import checks

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LEASEHOLD = "leasehold/"
SKIPPED_FOLDERS = {"build", ".git", ".cache", "__pycache__"}


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


class Table:
    """edges.txt, parsed. A line that is not understood is an error: no rule is lost silently."""

    def __init__(self, text):
        self.rooms, self.edges, self.doors, self.never = [], {}, [], []
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            kind, _, rest = line.partition(" ")
            if kind == "room":
                name, *patterns = rest.split()
                self.rooms.append((name, patterns))
            elif kind == "edge":
                name, _, targets = rest.partition(":")
                self.edges[name.strip()] = set(targets.split())
            elif kind == "door":
                headers, _, files = rest.partition(" in ")
                self.doors.append((headers.split(), files.split()))
            elif kind == "never":
                found = re.fullmatch(r"(.+?) in (.+?)(?: except (.+?))? because (.+)", rest)
                if not found:
                    raise SystemExit(f"edges.txt:{number}: a `never` line needs `in` and `because`")
                pattern, files, but, reason = found.groups()
                self.never.append((re.compile(pattern), files.split(), (but or "").split(), reason))
            else:
                raise SystemExit(f"edges.txt:{number}: no rule starts with `{kind}`")
        known = {name for name, _ in self.rooms}
        for name, targets in self.edges.items():
            for unknown in ({name} | targets) - known:
                raise SystemExit(f"edges.txt: an edge names `{unknown}`, which is no room")

    def room(self, path):
        return next((name for name, patterns in self.rooms if matches(path, patterns)), None)


def without_comments(text):
    """The text with comments and the insides of string literals blanked, line by line."""

    def blank(found):
        token = found.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]

    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank, text,
                  flags=re.DOTALL)


def sources(tree):
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for name in sorted(files):
            if name.endswith((".h", ".cc")):
                yield os.path.relpath(os.path.join(folder, name), tree)


def check_include(table, tree, path, quote, header):
    room = table.room(path)
    if quote == '"' and path.startswith(("tests/", "bench/", "examples/")):
        if os.path.exists(os.path.join(tree, os.path.dirname(path), header)):
            return None
    if header.startswith(LEASEHOLD) and not header.endswith(".pb.h"):
        target = header[len(LEASEHOLD):]
        target_room = table.room(target)
        if target_room is None:
            return f"<{header}> is in no room"
        if target_room != room and target_room not in table.edges.get(room, set()):
            return f"<{header}>: there is no edge from {room} to {target_room}"
        return None
    if quote == '"' and not header.endswith(".pb.h"):
        return f'"{header}": spell it <leasehold/room/file.h>'
    for headers, files in table.doors:
        if matches(header, headers):
            if matches(path, files):
                return None
            return f"<{header}> may be included in {' '.join(files)} only"
    return f"<{header}>: no door of edges.txt lists it"


def check_file(table, tree, path):
    """Yields (line number, what is wrong)."""
    with open(os.path.join(tree, path), encoding="utf-8") as file:
        text = file.read()
    if table.room(path) is None:
        yield 1, "the file is in no room of edges.txt"
        return
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            wrong = check_include(table, tree, path, found.group(1), found.group(2))
            if wrong:
                yield number, wrong
    never = [(pattern, reason) for pattern, files, but, reason in table.never
             if matches(path, files) and not matches(path, but)]
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        for pattern, reason in never:
            found = pattern.search(line)
            if found:
                yield number, f"`{found.group(0).strip()}`: {reason}"


def check(table, tree):
    return [f"{path}:{number}: {wrong}" for path in sources(tree)
            for number, wrong in check_file(table, tree, path)]


# What the self-test plants: a file, a line in it, and a part of the finding (None: allowed).
PLANTED = [
    ("base/a.h", "#include <leasehold/lease/clock.h>", "no edge from base to lease"),
    ("lease/a.h", "#include <leasehold/raft/types.h>", "no edge from lease to raft"),
    ("raft/a.cc", "#include <leasehold/storage/storage.h>", "from raft to storage_interface"),
    ("storage/a.cc", "#include <leasehold/net/transport.h>", "from storage to net_interface"),
    ("net/a.cc", "#include <leasehold/storage/storage.h>", "from net to storage_interface"),
    ("replica/driver.cc", "#include <leasehold/net/tcp_transport.h>", "no edge from replica to net"),
    ("node/a.h", "#include <leasehold/kv/store.h>", "no edge from node to kv"),
    ("sim/a.cc", "#include <leasehold/server/front/resp.h>", "no edge from sim to server"),
    ("server/front/a.cc", "#include <leasehold/server/commands/report.h>",
     "from server_front to server_commands"),
    ("server/a.cc", "#include <leasehold/cli/demo.h>", "no edge from server to cli"),
    ("cli/a.cc", "#include <leasehold/server/commands/report.h>", None),
    ("sim/b.cc", "#include <leasehold/wire/codec.h>", "no edge from sim to wire"),
    ("node/node.cc", "#include <leasehold/net/tcp_transport.h>", None),
    ("kv/a.h", "#include <leasehold/replica/state_machine.h>", None),
    ("kv/b.h", "#include <leasehold/nowhere/x.h>", "is in no room"),
    ("attic/a.h", "int x;", "the file is in no room"),
    ("base/b.h", '#include "b2.h"', "spell it <leasehold/"),
    ("tests/base/a.cc", '#include "b.h"', "spell it <leasehold/"),
    ("tests/raft/a.cc", '#include "group.h"', None),
    ("tests/raft/group.h", "int x;", None),
    ("raft/group.cc", '#include "g.h"', "spell it <leasehold/"),
    ("raft/g.h", "int x;", None),
    ("net/b.h", "#include <asio.hpp>", "may be included in"),
    ("net/tcp_a.cc", "#include <asio/ip/tcp.hpp>", None),
    ("raft/b.cc", "#include <google/protobuf/message.h>", "may be included in"),
    ("wire/a.h", '#include "raft.pb.h"', "may be included in"),
    ("wire/a.cc", '#include "raft.pb.h"', None),
    ("storage/b.h", "#include <rocksdb/db.h>", "may be included in"),
    ("kv/rocksdb/rocksdb_a.h", "#include <rocksdb/db.h>", None),
    ("kv/c.h", "#include <boost/any.hpp>", "no door of edges.txt lists it"),
    ("raft/c.h", "#  include <thread>", "may be included in"),
    ("lease/b.h", "#include <ctime>", "may be included in"),
    ("base/c.h", "#include <format>", "may be included in nowhere"),
    ("raft/d.cc", "auto t = std::chrono::steady_clock::time_point();", "time comes in as a value"),
    ("sim/c.cc", "std::this_thread::sleep_for(x);", "come in as values"),
    ("sim/d.cc", "std::random_device device;", "come in as values"),
    ("sim/e.cc", "std::uniform_int_distribution<int> d;", "pure"),
    ("node/b.cc", "auto t = std::chrono::system_clock::now();", "wall time"),
    ("node/c.cc", "clock_gettime(CLOCK_MONOTONIC, &t);", "constructor parameter"),
    ("server/front/session.cc", "t = std::chrono::steady_clock::now();", "constructor parameter"),
    ("client/resp_client.cc", "auto t = std::chrono::steady_clock::now();", None),
    ("server/b.cc", "auto t = time(nullptr);", "constructor parameter"),
    ("server/c.cc", "using Clock = X; auto t = Clock::now();", "constructor parameter"),
    ("node/system_clock.cc", "clock_gettime(CLOCK_MONOTONIC, &t);", None),
    ("bench/a.cc", "auto t = std::chrono::steady_clock::now();", None),
    ("replica/driver_b.cc", "std::mutex mutex_;", "passive"),
    ("kv/d.cc", "auto x = std::bit_cast<int>(y);", "portable set"),
    ("base/d.h", "using namespace std;", "chooses no names"),
    ("raft/e.cc", "// a comment may say steady_clock::now() and std::mutex", None),
    ("raft/f.cc", 'log("std::mutex, steady_clock");', None),
    ("raft/g.cc", "/* so may\n std::mutex */", None),
]


def self_test(table):
    failures = []
    with tempfile.TemporaryDirectory() as tree:
        for path, line, _ in PLANTED:
            os.makedirs(os.path.join(tree, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                file.write(f"// planted\n{line}\n")
        findings = check(table, tree)
        for path, line, expected in PLANTED:
            of_file = [f for f in findings if f.startswith(path + ":")]
            if expected is None and of_file:
                failures.append(f"allowed, but found: {of_file}")
            if expected is not None and not any(f":2: " in f and expected in f or
                                                ":1: " in f and expected in f for f in of_file):
                failures.append(f"{path}: `{line}` should be found ({expected}); found {of_file}")
    for text in ("rooom base base/*", "never x in y", "edge base: attic\nroom base base/*"):
        try:
            Table(text)
        except SystemExit:
            continue
        failures.append(f"a table that cannot be read was accepted: {text!r}")
    return failures


def main(arguments):
    with open(os.path.join(HERE, "edges.txt"), encoding="utf-8") as file:
        table = Table(file.read())
    return checks.main(arguments, __doc__, lambda: (len(PLANTED), self_test(table)),
                       lambda tree: check(table, tree), sources)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
