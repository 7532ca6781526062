#!/usr/bin/env python3
"""The command `leasehold check` as a person uses it: what it prints, and its exit status."""

import argparse
import subprocess
import sys

STALE = """{"v":1}
{"client":1,"op":"put","key":"a","value":"x","start":10,"end":20}
{"client":2,"op":"put","key":"b","value":"x","start":10,"end":20}
{"client":1,"op":"put","key":"a","value":"y","start":30,"end":40}
{"client":2,"op":"get","key":"a","value":"y","start":45,"end":46}
{"client":2,"op":"get","key":"a","value":"x","start":50,"end":60}
"""
STALE_SAID = """not linearizable: key a
3 operations between 10 and 60 have no order; > is the one that cannot be placed:
  line 2: client 1 writes key a := x [10 .. 20]
  line 4: client 1 writes key a := y [30 .. 40]
> line 6: client 2 reads key a = x [50 .. 60]
why: the value is there throughout from (line 2: client 1 writes key a := x [10 .. 20]) to \
(line 6: client 2 reads key a = x [50 .. 60]), but in between there is \
(line 4: client 1 writes key a := y [30 .. 40])
"""
STALE_JSON = """{"client":1,"op":"put","key":"a","value":"x","start":10,"end":20}
{"client":1,"op":"put","key":"a","value":"y","start":30,"end":40}
{"client":2,"op":"get","key":"a","value":"x","start":50,"end":60}
"""
# Writes of twelve values by two clients each, all at once, and a value that was never written.
CROWD = "".join(f'{{"op":"put","key":1,"value":{1 + i % 12},"start":0,"end":100}}\n' for i in range(24))
CROWD += '{"op":"get","key":1,"value":99,"start":101,"end":102}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the leasehold_check program")
    binary = parser.parse_args().binary
    failures = []

    def expect(text, arguments, status, out=None, err=""):
        run = subprocess.run([binary, *arguments], input=text, text=True, capture_output=True,
                             timeout=60, check=False)
        if (run.returncode != status or err not in run.stderr or
                (out is not None and out != run.stdout)):
            failures.append(f"{arguments}: status {run.returncode}, not {status}:\n"
                            f"{run.stdout}{run.stderr}")

    fresh = STALE.replace('"value":"x","start":50', '"value":"y","start":50')
    expect(fresh, ["-"], 0, "linearizable: 5 operations on 2 keys\n")
    expect("", ["-"], 0, "linearizable: 0 operations on 0 keys\n")
    expect(STALE, ["-"], 1, STALE_SAID)
    expect(STALE.rstrip("\n"), ["-"], 1, STALE_SAID)
    expect(STALE.replace("\n", "\r\n"), ["-"], 1, STALE_SAID)
    expect(STALE, ["-", "--json"], 1, STALE_JSON)
    expect(STALE, ["--search", "-"], 1)
    expect(STALE_JSON, ["-"], 1)
    expect('{"op":"get","key":"a","value":"x","start":50,"end":60}\n', ["-"], 1,
           "not linearizable: key a\n"
           "1 operation between 50 and 60 has no order; > is the one that cannot be placed:\n"
           "> line 1: client 0 reads key a = x [50 .. 60]\n"
           "why: the value was never written: line 1: client 0 reads key a = x [50 .. 60]\n")
    expect(CROWD, ["-", "--states", "1000"], 3,
           "undecided: key 1: the search gave up after 1000 states; allow it more (--states)\n")
    expect("x\n", ["-"], 2, "", "-: line 1: a line is one JSON object")
    expect(STALE, ["no-such-file"], 2, "", "no-such-file: No such file")
    expect("", [], 2, "", "which history?")
    expect("", ["-", "--wrong"], 2, "", "unknown option `--wrong`")
    expect("", ["-", "--states", "many"], 2, "", "--states does not take `many`")
    expect("", ["--help"], 0)
    for failure in failures:
        print(failure)
    print("FAILED" if failures else "passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
