#!/usr/bin/env python3
"""Runs `leasehold explore` within the bounds of SEARCHES: no schedule may show anything wrong, except on clocks that
are worse than the nodes trust.

  searches.py                  all of SEARCHES, each as far as its number of states
  searches.py --only WORD      those whose bounds have this option (`--only shared`)
  searches.py --states N       none further than N states
  searches.py --times N        each N times as far, if it does not end before
  searches.py --results FILE   also write the table (results/explore.json; tests/results.py prints that)

Status 0: each search found nothing, and the control found its violation.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import mutants  # noqa: E402  pylint: disable=wrong-import-position
from mutants import run  # noqa: E402  pylint: disable=wrong-import-position

# Whose promises rest on those of the processes; the last bounds are those of two groups on the same beats.
SHARED = "--shared --no-drift"
TWO = f"{SHARED} --groups 2"

# Bounds, and the states after which a search gives up. 100,000 take one to six seconds of a core.
SEARCHES = [
    ("--time 3", 600_000),
    ("--time 3 --no-drift", 300_000),
    ("--time 2 --reads 1 --duplicates 1 --no-drift", 300_000),
    ("--time 1 --transfers 1 --no-drift", 300_000),
    ("--time 2 --restarts 1 --slow-disk --no-drift", 300_000),
    ("--time 2 --proposals 2 --slow-apply --no-drift", 300_000),
    ("--rules --time 2 --one-away --proposals 1 --cuts 1 --slow-apply --slow-disk --no-drift", 300_000),
    ("--time 2 --changes 1 --no-drift", 300_000),
    ("--voters 1 --time 1 --changes 1 --no-drift", 300_000),
    ("--voters 2 --time 1 --changes 1 --no-drift", 300_000),
    ("--time 2 --proposals 1 --first-election --no-drift", 300_000),
    ("--time 3 --led-before --no-drift", 300_000),
    ("--time 3 --restarts 1 --late-answer --no-drift", 300_000),
    ("--time 3 --restarts 1 --notices 1 --no-drift --meetings", 300_000),
    ("--rules --time 3 --no-drift", 300_000),
    ("--rules --time 2 --transfers 1 --changes 1 --meetings --no-drift", 300_000),
    ("--rules --time 2 --one-away --cuts 1 --slow-disk --no-drift", 300_000),
    ("--rules --time 3 --wipes 1 --restarts 1 --no-drift", 300_000),
    ("--rules --one-away --unbound --time 4 --no-drift", 300_000),
    ("--rules --members 2 --time 2 --changes 2 --meetings --no-drift", 300_000),
    ("--time 3 --suspends 1 --no-drift", 300_000),
    ("--agreed 25 --settings 1 --time 3 --no-drift", 300_000),
    ("--agreed 0 --settings 1 --time 3 --meetings", 300_000),
    ("--nodes 5 --meetings --time 3 --flights 12 --no-drift", 300_000),
    ("--rules --nodes 5 --meetings --time 1 --transfers 2 --flights 12 --no-drift", 300_000),
    ("--first-election --witness --meetings --time 2 --no-drift", 300_000),
    (f"{SHARED} --time 3 --beats 2 --meetings", 300_000),
    (f"{SHARED} --time 3 --beats 2 --restarts 1 --slow-disk", 300_000),
    (f"{TWO} --time 3 --beats 2 --meetings", 300_000),
    (f"{TWO} --time 3 --beats 3 --transfers 1 --meetings", 300_000),
    (f"{TWO} --time 3 --beats 2 --restarts 1 --slow-disk --meetings", 300_000),
    (f"{TWO} --time 3 --beats 2 --restarts 1 --notices 1 --meetings", 300_000),
]
CONTROL = "--drift-percent 50"
TITLE = "Searches without a violation, and the control"


def build(work):
    tree = os.path.join(work, "explored")
    folder = os.path.join(tree, "build")
    run.copy_tree(tree)
    run.make(tree, folder, "leasehold_explore_program", "-DLEASEHOLD_PORTABLE_ONLY=ON", "-DLEASEHOLD_BUILD_TESTS=OFF")
    return os.path.join(folder, "explore", "leasehold_explore")


def search(program, bounds, states):
    """(whether it is as it should be, the row of the table)."""
    begin = time.monotonic()
    done = subprocess.run([program, *shlex.split(bounds), "--states", str(states)], text=True, capture_output=True)
    seconds = time.monotonic() - begin
    depths = re.findall(r"^depth +(\d+): +(\d+) states", done.stdout, flags=re.MULTILINE)
    found = re.search(r", after (\d+) steps \((\d+) states", done.stdout)
    if found:
        reached, count = f"a violation at step {found.group(1)}", int(found.group(2))
    elif done.returncode in (0, 3) and depths:
        reached = f"{depths[-1][0]} steps" if done.returncode == 3 else f"everything, {depths[-1][0]} steps"
        count = int(depths[-1][1])
    else:
        sys.exit(f"{program} {bounds} ended with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")
    right = bool(found) == (bounds == CONTROL)
    return right, {"bounds": bounds, "reached": reached, "states": count, "time": f"{seconds:.0f} s"}


def main():
    parser = argparse.ArgumentParser(description="Searches that find nothing; see the head of this file.")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--states", type=int, metavar="N")
    parser.add_argument("--times", type=int, default=1, metavar="N")
    parser.add_argument("--results", metavar="FILE")
    parser.add_argument("--work", default=os.path.join(run.TREE, "build", "mutants"))
    options = parser.parse_args()
    chosen = [one for one in SEARCHES if not options.only or f"--{options.only}" in shlex.split(one[0])]
    if not chosen:
        sys.exit(f"no search has --{options.only}")
    os.makedirs(options.work, exist_ok=True)
    program = build(options.work)
    good, rows = True, []
    for bounds, states in [*chosen, (CONTROL, 1_000_000)]:
        states = min(states * options.times, options.states or sys.maxsize)
        right, row = search(program, bounds, states)
        good = good and right
        rows.append(row)
        told = f"{bounds}: {row['reached']}, {row['states']} states ({row['time']})"
        print(told if right else f"WRONG {told}", flush=True)
    if options.results:
        mutants.replace_table(options.results, TITLE, rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
