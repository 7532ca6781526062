#!/usr/bin/env python3
"""Compiles the lab, and the whole simulator, for browsers and compares their trace hashes with those of this build:
what the page shows is the real thing. Skipped where emscripten is not installed. The page gets every third piece of the
museum: `make lab`, and `museum.py --variants` behind it, take all.

  same_hashes.py TREE BUILD_FOLDER LEASEHOLD_LAB LEASEHOLD_SIM
"""

import os
import shutil
import subprocess
import sys

SEEDS = 200
# Of the simulator: a minute each, with faults and clients of every kind.
SIMULATED = 40
# The simulated minute of three nodes; of all others it is the time of the page that counts.
LINK, MILLISECONDS = "seed=1&nodes=3", 60_000
# On a machine that does other things beside.
MINUTE_MS_MAX = 4_000
SKIPPED = 77


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def compare_simulator(core, simulator):
    there = run("node", core, "1", str(SIMULATED)).split("\n")[:SIMULATED]
    said = run(simulator, "--seeds", f"1..{SIMULATED}", "--trace-hash", "--quiet")
    lines = [line.split() for line in said.split("\n")]
    here = [f"{line[1]} {line[3]}" for line in lines if line[:1] == ["seed"] and line[2] == "trace"]
    if len(here) != SIMULATED or here != there:
        sys.exit(f"seeds of the simulator differ: {[pair for pair in zip(here, there) if pair[0] != pair[1]][:3]}")


def main():
    tree, build, native, simulator = sys.argv[1:]
    if shutil.which("emcc") is None or shutil.which("node") is None:
        print("skipped: emscripten is not installed (Debian: emscripten)")
        sys.exit(SKIPPED)
    run("cmake", "-S", tree, "--preset", "lab", "-B", build, "-DLEASEHOLD_MUSEUM=SOME")
    run("cmake", "--build", build, "--target", "lab_page", "lease_lab_seeds", "-j2")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "core.js")
    core = os.path.join(build, "lab", "lease_lab.js")
    there = run("node", script, core, "1", str(SEEDS), LINK, str(MILLISECONDS)).split("\n")
    here = run(native, "rehearse", "1", str(SEEDS)).split("\n")
    differ = [pair for pair in zip(here[:SEEDS], there[:SEEDS]) if pair[0] != pair[1]]
    if differ or len(here) < SEEDS or len({line.split()[1] for line in here[:SEEDS]}) != SEEDS:
        sys.exit(f"{len(differ)} of {SEEDS} rehearsals differ: {differ[:3]}")
    _, link_hash, records, taken = there[SEEDS].split()
    if link_hash != run(native, "hash", LINK, str(MILLISECONDS)).strip():
        sys.exit("the link has another hash")
    compare_simulator(os.path.join(build, "lab", "lease_lab_seeds.js"), simulator)
    size = os.path.getsize(os.path.join(build, "lease-lab.html"))
    print(f"{SEEDS} rehearsals and {SIMULATED} seeds of the simulator have the same hash; the page has {size} bytes; "
          f"a minute of three nodes: {records} records in {taken} ms")
    if float(taken) > MINUTE_MS_MAX:
        sys.exit(f"that is more than {MINUTE_MS_MAX} ms")


if __name__ == "__main__":
    main()
