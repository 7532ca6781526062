#!/usr/bin/env python3
"""cmake/flow shows each line that is no step, some of the steps, and something at least every five seconds.

  flow_test.py TREE
"""

import os
import subprocess
import sys
import threading
import time

SILENT_SECONDS_MAX = 5


def said_by(flow, *arguments, lines="", until=None):
    """The lines that come, each with the seconds since the one before; the input stays open until `until` is among
    them."""
    with subprocess.Popen([flow, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        deadline = threading.Timer(30, process.kill)
        deadline.start()
        process.stdin.write(lines)
        process.stdin.flush()
        heard, last = [], time.monotonic()
        if until is None:
            process.stdin.close()
        for line in process.stdout:
            now = time.monotonic()
            heard.append((line.rstrip("\n"), now - last))
            last = now
            if until and until in line:
                process.stdin.close()
                until = None
        deadline.cancel()
    return heard


def main(tree):
    flow = os.path.join(tree, "cmake", "flow")
    findings = []

    def expect(what, true):
        if not true:
            findings.append(what)

    lines = "[1/2] a.cc\nwarning: odd\nninja: Entering directory `x'\n[2/2] b.cc\nno end"
    said = [line for line, _ in said_by(flow, lines=lines)]
    expect(f"other lines are shown, whole, and the last step: {said}", said == ["warning: odd", "no end", "[2/2] b.cc"])
    said = said_by(flow, "--steps-only", lines="-- Found it\nand more\n")
    expect(f"a short command has nothing to show: {said}", not said)
    said = said_by(flow, lines="[1/2] Building a.cc\n", until="since [1/2]")
    expect(f"first the step, then signs of life: {said}", [line for line, _ in said][:1] == ["[1/2] Building a.cc"]
           and len(said) == 2)
    expect(f"silent for too long: {said}", all(seconds < SILENT_SECONDS_MAX + 1 for _, seconds in said))
    for finding in findings:
        print(finding)
    print(f"4 cases, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
