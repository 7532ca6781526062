#!/usr/bin/env python3
"""Which branches of the protocol does the simulator never take?

  branches.py WORK                    build under WORK with gcov's counters, run 300 seeds, report
  branches.py WORK --seeds 1..2000    these seeds
  branches.py WORK --rare 10          also branches that were taken at most 10 times

For each line of raft/, lease/ and the driver: a line that never ran, or a branch of a condition that was never taken
(or seldom), with the line as it stands. Assertions do not count, nor what a compiler adds for exceptions. A line of
this report is a schedule that no seed has drawn: give the simulator a fault that draws it, or the code a unit test, or
take the branch out.

Status 0 unless something fails: a report is no verdict."""

import argparse
import collections
import gzip
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
# What decides; the rest of the simulator's program is the world around it.
WATCHED = re.compile(r"^(raft|lease|replica)/[^/]+\.(cc|h)$")
UNREACHABLE = re.compile(r"LEASEHOLD_(ASSERT|UNREACHABLE)|^\s*(case|default)\b.*:\s*$|^\s*[{}]+;?\s*$")


def run(command, **options):
    done = subprocess.run(command, text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


# The counts of a process are written at exit(), and the command's children leave by _exit().
FLUSH = """
void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) { __gcov_dump(); __real__exit(status); }
"""


def build(folder, jobs):
    os.makedirs(folder, exist_ok=True)
    flush = os.path.join(folder, "flush.c")
    with open(flush, "w", encoding="utf-8") as file:
        file.write(FLUSH)
    run(["gcc", "-c", flush, "-o", flush + ".o"])
    run(["cmake", "-S", TREE, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_COMPILER=g++",
         "-DCMAKE_CXX_FLAGS=--coverage -O1 -w", f"-DCMAKE_EXE_LINKER_FLAGS=-Wl,--wrap=_exit {flush}.o",
         "-DLEASEHOLD_PORTABLE_ONLY=ON", "-DLEASEHOLD_BUILD_TESTS=OFF"])
    run(["ninja", "-C", folder, f"-j{jobs}", "leasehold_sim_program"])
    return os.path.join(folder, "sim", "leasehold_sim")


def forget_counts(folder):
    for place, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".gcda"):
                os.remove(os.path.join(place, name))


def counts(folder):
    """{file: {line: [times, [times of each branch]]}}, summed over all that compiled the line."""
    objects = [os.path.join(place, name) for place, _, files in os.walk(folder)
               for name in files if name.endswith(".gcda")]
    if not objects:
        sys.exit("the run left no counts")
    found = collections.defaultdict(dict)
    for name in objects:
        out = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-counts", "--branch-probabilities", name],
                             capture_output=True, cwd=folder, check=True).stdout
        text = gzip.decompress(out) if out[:2] == b"\x1f\x8b" else out
        for report in text.splitlines():
            for file in json.loads(report)["files"]:
                path = os.path.relpath(os.path.realpath(os.path.join(folder, file["file"])), TREE)
                if WATCHED.match(path):
                    add(found[path], file["lines"])
    return found


def add(lines, reported):
    for line in reported:
        # An instance of a template, or a header in another file: the same line again.
        known = lines.setdefault(line["line_number"], [0, []])
        known[0] += line["count"]
        branches = [branch["count"] for branch in line["branches"] if not branch.get("throw")]
        if len(known[1]) < len(branches):
            known[1] += [0] * (len(branches) - len(known[1]))
        for at, count in enumerate(branches):
            known[1][at] += count


def report(found, rare):
    lines = taken = branches = 0
    for path in sorted(found):
        with open(os.path.join(TREE, path), encoding="utf-8") as source:
            text = source.read().split("\n")
        said = False
        for number, (times, sides) in sorted(found[path].items()):
            line = text[number - 1]
            lines += 1
            branches += len(sides)
            taken += sum(count > 0 for count in sides)
            if UNREACHABLE.search(line):
                continue
            if times == 0:
                what = "never"
            elif any(count <= rare for count in sides):
                what = "branches " + " ".join(str(count) for count in sides)
            else:
                continue
            if not said:
                print(f"\n{path}")
                said = True
            print(f"  {number:5}  {what:24}  {line.strip()}")
    print(f"\n{lines} lines, {taken} of {branches} branches taken")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", metavar="WORK", help="a folder to build in")
    parser.add_argument("--seeds", default="1..300", metavar="A..B")
    parser.add_argument("--rare", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folder = os.path.join(os.path.abspath(options.work), "branches")
    print("building with counters", file=sys.stderr, flush=True)
    program = build(folder, options.jobs)
    forget_counts(folder)
    print(f"running the seeds {options.seeds}", file=sys.stderr, flush=True)
    run([program, "--seeds", options.seeds, "--jobs", str(options.jobs), "--keep-going", "--quiet"])
    report(counts(folder), options.rare)
    return 0


if __name__ == "__main__":
    sys.exit(main())
