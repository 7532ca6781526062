#!/usr/bin/env python3
"""One seed has one trace under every compiler and build type.

  trace_hash.py TREE WORK PROGRAM COMPILER_ID

Builds leasehold_sim from TREE once more in WORK, optimised and with the other compiler (clang for
GNU, gcc for Clang), and compares what it and PROGRAM print for the same seeds.
"""

import os
import shutil
import subprocess
import sys

SEEDS = ["--seeds", "1..20", "--trace-hash", "--quiet"]


def run(command):
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def main():
    tree, work, program, compiler_id = sys.argv[1:]
    other = "clang++" if compiler_id == "GNU" else "g++"
    if shutil.which(other) is None:
        print(f"SKIPPED: {other} is not installed; the trace is compared with nothing")
        return 77
    run(["cmake", "-S", tree, "-B", work, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_CXX_COMPILER={other}", "-DLEASEHOLD_PORTABLE_ONLY=ON",
         "-DLEASEHOLD_BUILD_TESTS=OFF", "-DCMAKE_CXX_FLAGS=-w"])
    run(["ninja", "-C", work, "leasehold_sim_program"])
    here = run([program] + SEEDS)
    there = run([os.path.join(work, "sim", "leasehold_sim")] + SEEDS)
    if here != there:
        for line, other_line in zip(here.splitlines(), there.splitlines()):
            if line != other_line:
                print(f"{compiler_id}: {line}\n{other}: {other_line}")
        return 1
    print(f"{compiler_id} and {other}: {here.splitlines()[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
