#!/usr/bin/env python3
"""Redis's own test suite of 7.0 against a group of three, as its "external server". The suite is not a part of this
project: `git clone -b 7.0.15 --depth 1 https://github.com/redis/redis FOLDER`. It needs tclsh.

redis_suite.txt lists every test and how it ended, with the reason where it failed. A test that passed before and fails
now, and one that fails without a known reason, fail this one. `--write` makes the list again. `--self-test` looks at
what reads the suite's output, without a suite."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

from cluster import Cluster, Failed, check, main

FILES = ("unit/type/incr", "unit/type/string", "unit/keyspace", "unit/expire", "unit/multi", "unit/scan",
         "unit/protocol", "unit/quit")
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "redis_suite.txt")
# Against one server all tests wait for each other.
SUITE_SECONDS = 1500

# Which commands need what, by the refusal of the first one that a test sends.
TYPES = (("lists", r"[bB]?[lLrR](PUSH|POP|RANGE|LEN|INSERT|REM|SET|TRIM|INDEX|MOVE|POS|MPOP)\w*"),
         ("sets", r"S(ADD|REM|MEMBERS|CARD|POP|SCAN|INTER|UNION|DIFF|ISMEMBER|MOVE|RANDMEMBER)\w*"),
         ("sorted sets", r"B?Z\w+"), ("hashes", r"H\w+"), ("streams", r"X\w+"), ("SORT", r"SORT\w*"))
# In the text of a failure: the reason. The first one that is found counts.
REASONS = (
    (r"no Lua|CONFIG SET - 'lua-|ERR 'EVAL_RO'|'FUNCTION' is not", "needs Lua"),
    (r"'DEBUG' is not supported", "needs DEBUG"),
    (r"ERR 'REPLICAOF' is not supported|ERR 'SYNC' is not supported|CONFIG SET - '(repl|min-replicas)",
     "needs replicas as Redis has them"),
    (r"CONFIG SET - 'zset-", "needs sorted sets"),
    (r"CONFIG SET - 'hash-", "needs hashes"),
    (r"argument 'maxmemory'", "needs a limit of memory (maxmemory)"),
    (r"argument 'appendonly'", "needs files of Redis"),
    (r"ERR 'MONITOR' is not supported", "needs MONITOR"),
    (r"ERR 'PUBLISH' is not supported", "needs PUBLISH"),
    (r"ERR 'SWAPDB' is not supported|DB index is out of range", "needs several databases"),
    (r"ERR 'BGREWRITEAOF' is not supported|ERR 'SAVE' is not supported|ERR 'BGSAVE' is not supported",
     "needs files of Redis"),
    (r"ERR 'MEMORY' is not supported", "needs MEMORY"),
    (r"ERR 'SHUTDOWN' is not supported", "needs SHUTDOWN"),
)
# It may also be that an earlier test has ended behind its MULTI: the first one counts once all others are left out.
WEAK_REASONS = (
    (r"'flush\w+' cannot be in a transaction", "FLUSHALL is no one step here (docs/resp.md, Keys)"),
    (r"cannot be in a transaction", "of scans and commands about the node none can be in a transaction (docs/resp.md)"),
)
# What differs on purpose, by the name of the test.
LATE = "a key that is due ends within some 40 ms (docs/resp.md, Expiry)"
BY_NAME = {
    "INCR uses shared objects in the 0-9999 range": "OBJECT REFCOUNT is 1: no two keys share a value",
    "SETRANGE against integer-encoded key": "OBJECT ENCODING is that of the value, not of how it was made",
    "SETRANGE with out of range offset": "the error names the limit, 16 MiB",
    "SETRANGE with huge offset": "the error names the limit, 16 MiB",
    "PSETEX can set sub-second expires": LATE,
    "PEXPIRE can set sub-second expires": LATE,
    "PEXPIREAT can set sub-second expires": LATE,
    "PEXPIREAT with big integer works": "a key with a time lives for ten years at most",
}


class Test:
    def __init__(self, file, name, ended, details=""):
        self.file = file
        self.name = name
        self.ended = ended  # passed, failed, left out
        self.details = details
        self.reason = None if ended == "passed" else reason_of(name, ended, details)

    def is_weak(self):
        return any(self.reason == reason for _, reason in WEAK_REASONS)

    def __str__(self):
        reason = f" ({self.reason or 'NO KNOWN REASON'})" if self.reason or self.ended == "failed" else ""
        return f"{self.file}: {self.name}: {self.ended}{reason}"


def reason_of(name, ended, details):
    if ended == "left out":
        return "the suite: " + details
    if name in BY_NAME:
        return BY_NAME[name]
    refused = re.search(r"ERR '(\w+)' is not supported: every value is a string", details)
    if refused:
        for what, commands in TYPES:
            if re.fullmatch(commands, refused[1], re.IGNORECASE):
                return "needs " + what
    for pattern, reason in REASONS + WEAK_REASONS:
        if re.search(pattern, details, re.IGNORECASE):
            return reason
    return None


def read(output):
    """The tests in the suite's output, in order. A test whose name comes again in one file has a number."""
    tests = []
    file = None
    last = None  # a failed one, whose details go on
    names = {}
    for line in re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines():
        if begun := re.match(r"Testing (\S+)", line):
            file, names, last = begun[1], {}, None
            continue
        ended = re.match(r"\[(ok|err|ignore|skip)\]: (.*)", line)
        if not ended:
            if re.match(r"\[\d+/\d+ done\]|\[exception\]|!!! |\[timeout\]", line):
                last = None
            elif last:
                last[3].append(line)
            continue
        kind, text = ended.groups()
        details = []
        if kind == "ok":
            text = re.sub(r" \(\d+ ms\)$", "", text)
        elif kind == "err":
            text = re.sub(r" in tests/\S+\.tcl$", "", text)
        elif kind == "skip":
            details = ["left out"]
        elif ": " in text:
            text, why = text.rsplit(": ", 1)
            details = [why]
        else:
            text, details = "what has no name", [text]
        names[text] = names.get(text, 0) + 1
        shown = text if names[text] == 1 else f"{text} ({names[text]})"
        last = (file, shown, {"ok": "passed", "err": "failed"}.get(kind, "left out"), details)
        tests.append(last)
    return [Test(of, name, how, "\n".join(details)) for of, name, how, details in tests]


def listed(text):
    """The tests of a list that have passed."""
    passed = re.findall(r"^(\S+: .*): passed$", text, re.MULTILINE)
    return set(passed)


def arguments(parser):
    parser.add_argument("--suite", required=True, help="a checkout of Redis 7.0")
    parser.add_argument("--files", nargs="+", default=FILES, help="files of the suite, as unit/type/string")
    parser.add_argument("--write", action="store_true", help="make the list again")
    parser.add_argument("--output", help="keep the suite's output in this file")


def without_functions(path):
    """The suite begins by removing the functions of the server, which has none."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    check(text.count("    r function flush\n") == 1, f"{path} is not that of Redis 7.0")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("    r function flush\n", ""))


def run_suite(options, port, without=()):
    """`without`: tests that are left out. They may end in the midst of what they do, and the next ones, on the same
    connection, would fail for that."""
    command = ["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(port), "--singledb", "--durable",
               "--ignore-digest"]
    for file in options.files:
        command += ["--single", file]
    for name in without:
        command += ["--skiptest", name]
    with tempfile.TemporaryDirectory(prefix="leasehold-suite-") as folder:
        shutil.copytree(os.path.join(options.suite, "tests"), os.path.join(folder, "tests"), symlinks=True)
        without_functions(os.path.join(folder, "tests", "support", "server.tcl"))
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False,
                             timeout=SUITE_SECONDS * options.slack)
    output = run.stdout + run.stderr
    if options.output:
        with open(options.output, "a", encoding="utf-8") as kept:
            kept.write(output)
    done = re.findall(r"\[\d+/\d+ done\]: (\S+)", re.sub(r"\x1b\[[0-9;]*m", "", output))
    missing = [file for file in options.files if file not in done]
    check(not missing, f"the suite did not end {missing}: {output[-3000:]}")
    return read(output)


def in_place(tests, needy):
    """The tests of the last run, with those that were left out as they ended in an earlier one."""
    ended = {(test.file, test.name): test for test in needy}
    return [ended.get((test.file, test.name), test) for test in tests]


def judge(options, tests):
    for file in options.files:
        ends = [test.ended for test in tests if test.file == file]
        print(f"{file}: " + ", ".join(f"{ends.count(end)} {end}" for end in ("passed", "failed", "left out")))
    unknown = [test for test in tests if test.ended == "failed" and not test.reason]
    for test in unknown:
        print(f"{test}\n{test.details}", file=sys.stderr)
    if options.write:
        with open(LIST, encoding="utf-8") as file:
            others = [line for line in file if line.split(": ", 1)[0] not in options.files]
        with open(LIST, "w", encoding="utf-8") as file:
            file.write("".join(others) + "".join(f"{test}\n" for test in tests))
    check(not unknown, f"{len(unknown)} tests failed, and why is not known")
    with open(LIST, encoding="utf-8") as file:
        before = listed(file.read())
    lost = [test for test in tests if test.ended == "failed" and f"{test.file}: {test.name}" in before]
    check(not lost, "these have passed before: " + "; ".join(str(test) for test in lost))


def run(options):
    check(shutil.which("tclsh"), "tclsh is not installed: see packages-develop.txt")
    check(os.path.exists(os.path.join(options.suite, "tests", "test_helper.tcl")),
          f"{options.suite} has no suite of Redis")
    with Cluster(options.binary, keep=options.keep) as cluster:
        port = cluster.start().port
        needy = []
        while True:
            tests = run_suite(options, port, sorted({test.name for test in needy}))
            failed = [test for test in tests if test.ended == "failed" and test.reason]
            more = [test for test in failed if not test.is_weak()] or failed[:1]
            needy += more
            if not more:
                break
    judge(options, in_place(tests, needy))


def self_test():
    esc = "\x1b[0;32;49m"
    tests = read(f"Testing unit/a\n[{esc}ok\x1b[0m]: one: two (3 ms)\n[{esc}err\x1b[0m]: push in tests/unit/a.tcl\n"
                 "ERR 'RPUSH' is not supported: every value is a string\n    while executing\n[ok]: one: two (0 ms)\n"
                 "[ignore]: far: Not supported on singledb\n[ignore]: Not here\n[1/2 done]: unit/a (0 seconds)\n"
                 "Testing unit/b\n[err]: odd in tests/unit/b.tcl\nExpected '1' to be '2'\n[ok]: one: two (1 ms)\n")
    shown = "\n".join(str(test) for test in tests)
    wanted = ("unit/a: one: two: passed\nunit/a: push: failed (needs lists)\nunit/a: one: two (2): passed\n"
              "unit/a: far: left out (the suite: Not supported on singledb)\n"
              "unit/a: what has no name: left out (the suite: Not here)\n"
              "unit/b: odd: failed (NO KNOWN REASON)\nunit/b: one: two: passed")
    check(shown == wanted, f"read\n{shown}\nand not\n{wanted}")
    check(listed(shown) == {"unit/a: one: two", "unit/a: one: two (2)", "unit/b: one: two"}, "the list is read wrongly")
    for command, what in (("ZADD", "sorted sets"), ("hset", "hashes"), ("XADD", "streams"), ("SADD", "sets"),
                          ("lrange", "lists"), ("BLPOP", "lists"), ("sort", "SORT")):
        reason = reason_of("t", "failed", f"ERR '{command}' is not supported: every value is a string")
        check(reason == "needs " + what, f"{command} needs {what}, and not {reason}")
    with open(LIST, encoding="utf-8") as file:
        lines = file.read().splitlines()
    odd = [line for line in lines
           if not re.fullmatch(r"unit/\S+: .*: (passed|(failed|left out) \((?!NO KNOWN).+\))", line)]
    check(not odd, f"redis_suite.txt: {odd[:3]}")
    check(len(lines) == len({line.rsplit(": ", 1)[0] for line in lines}), "redis_suite.txt has a test twice")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        try:
            self_test()
        except Failed as failure:
            sys.exit(f"FAILED: {failure}")
    else:
        main(__doc__, run, arguments)
