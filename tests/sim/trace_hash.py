#!/usr/bin/env python3
"""One seed has one trace under every compiler and build type.

  trace_hash.py TREE WORK PROGRAM COMPILER_ID    what the build's own program prints for some seeds, and
                                                 what one prints that the other compiler made
  trace_hash.py TREE WORK --seeds A..B           four programs, made by gcc and clang, for debugging and
                                                 optimised; the hash of each seed, and whole traces

Builds leasehold_sim from TREE in WORK.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

FEW = "1..20"
# Of these seeds the trace itself is compared, byte for byte; of the others its hash.
WHOLE_TRACES = range(1, 11)


def run(command):
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def build(tree, work, compiler, kind, flags=""):
    run(["cmake", "-S", tree, "-B", work, "-G", "Ninja", f"-DCMAKE_BUILD_TYPE={kind}",
         f"-DCMAKE_CXX_COMPILER={compiler}", "-DLEASEHOLD_PORTABLE_ONLY=ON", "-DLEASEHOLD_BATCHES=ON",
         "-DLEASEHOLD_BATCH=64", "-DLEASEHOLD_PCH=ON", "-DLEASEHOLD_HARDENED=OFF", "-DLEASEHOLD_BUILD_TESTS=OFF",
         f"-DCMAKE_CXX_FLAGS=-w {flags}"])
    run(["ninja", "-C", work, "leasehold_sim_program"])
    return os.path.join(work, "sim", "leasehold_sim")


def hashes(program, seeds, jobs=1):
    """A line for each seed, in the order of the seeds, and one for all."""
    lines = run([program, "--seeds", seeds, "--trace-hash", "--quiet", "--jobs", str(jobs)]).splitlines()
    of_seeds = [line for line in lines if line.startswith("seed ")]
    return sorted(of_seeds, key=lambda line: int(line.split()[1])) + lines[-1:]


def same(name, lines, other, other_lines):
    differ = [pair for pair in zip(lines, other_lines) if pair[0] != pair[1]]
    for line, other_line in differ[:5]:
        print(f"{name}: {line}\n{other}: {other_line}")
    return not differ and len(lines) == len(other_lines)


def two(options):
    other = "clang++" if options.compiler_id == "GNU" else "g++"
    if shutil.which(other) is None:
        print(f"SKIPPED: {other} is not installed; the trace is compared with nothing")
        return 77
    here = hashes(options.program, FEW)
    # Optimised as little as the build's own program: most of the time of this test is the compiler's.
    there = hashes(build(options.tree, options.work, other, "None", "-O1"), FEW)
    if not same(options.compiler_id, here, other, there):
        return 1
    print(f"{options.compiler_id} and {other}: {here[-1]}")
    return 0


def whole_trace(program, seed, path):
    run([program, "--seed", str(seed), "--quiet", "--trace", path])
    with open(path, "rb") as file:
        return file.read()


def four(options):
    first = None
    good = True
    for compiler in "g++", "clang++":
        for kind in "Debug", "Release":
            name = f"{compiler} {kind}"
            program = build(options.tree, os.path.join(options.work, name.replace(" ", "-")), compiler, kind)
            begin = time.monotonic()
            lines = hashes(program, options.seeds, options.jobs)
            seconds = time.monotonic() - begin
            path = os.path.join(options.work, "trace.jsonl")
            traces = [whole_trace(program, seed, path) for seed in WHOLE_TRACES]
            print(f"{name}: {lines[-1]}, {len(lines) - 1} seeds in {seconds:.0f} s with {options.jobs} jobs; "
                  f"{len(traces)} whole traces, {sum(map(len, traces))} bytes", flush=True)
            first = first or (name, lines, traces)
            good = same(*first[:2], name, lines) and good
            for seed, trace, other in zip(WHOLE_TRACES, first[2], traces):
                if trace != other:
                    print(f"the traces of seed {seed} differ between {first[0]} and {name}")
                    good = False
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree")
    parser.add_argument("work")
    parser.add_argument("program", nargs="?")
    parser.add_argument("compiler_id", nargs="?", choices=["GNU", "Clang"])
    parser.add_argument("--seeds", default="1..1000")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    return two(options) if options.program else four(options)


if __name__ == "__main__":
    sys.exit(main())
