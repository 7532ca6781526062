#!/usr/bin/env python3
"""Breaks one rule at a time and expects a scenario file to show what the rule prevents.

The mutants are those of tests/mutants/, and so is the machinery: a copy of the portable tree, one mutant, one build.
SHOWN lists, for each mutant, a scenario and the words with which it ends when the mutant is in the core. Where these
words are a violation, the script first removes the scenario's `expect` lines: one of them would stop the run before it.

  mutants.py                all of SHOWN
  mutants.py NAME...        these mutants only

Status 0: the tree itself tells every scenario as it stands, and each mutant ends its scenarios as SHOWN says.
"""

import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "mutants"))
import run  # noqa: E402  pylint: disable=wrong-import-position

SCENARIOS = os.path.join(run.TREE, "docs", "scenarios")
TWO_LEASES = "both hold a valid lease"

# The mutant, the scenario, the words with which that ends.
SHOWN = [
    ("a_late_bind_binds", "shared-late-bind", "but it is `2 promise 1 live`"),
    ("a_vote_by_token_lets_go", "shared-token", TWO_LEASES),
    ("a_restart_keeps_the_epoch", "shared-epoch", TWO_LEASES),
    ("an_unbound_group_lets_go", "shared-groups", TWO_LEASES),
    ("a_release_ends_later_promises", "shared-late-release", TWO_LEASES),
    ("beats_count_at_any_epoch", "shared-late-answer", "but it is `1 lease valid`"),
    ("a_restart_promises_the_groups_d_only", "shared-restart", "but it is `2 promise 1 ended`"),
    ("an_earlier_process_takes_over_the_support", "shared-late-process", TWO_LEASES),
    ("a_lapse_is_a_new_epoch", "shared-lapse", "but it is `2 promise 1 ended`"),
]


def build(mutant, work):
    """The program that runs scenario files, with the mutant or with none."""
    tree = os.path.join(work, "told")
    run.copy_tree(tree)
    if mutant:
        run.apply(run.Mutant(mutant), tree)
    folder = os.path.join(tree, "build")
    run.make(tree, folder, "leasehold_story_program", "-DLEASEHOLD_PORTABLE_ONLY=ON", "-DLEASEHOLD_BUILD_TESTS=OFF")
    return os.path.join(folder, "story", "leasehold_story")


def tell(program, scenario, work, expectations=True):
    """(status, what it says last) of the scenario."""
    with open(os.path.join(SCENARIOS, scenario + ".scenario"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    path = os.path.join(work, scenario + ".scenario")
    if not expectations:
        lines = ["" if line.startswith("> expect ") or line == "  holds" else line for line in lines]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    done = subprocess.run([program, "scenario", path], text=True, capture_output=True)
    last = (done.stdout + done.stderr).rpartition(path + ":")[2]
    return done.returncode, "line " + last.strip().split("\n")[0]


def main():
    parser = argparse.ArgumentParser(description="Tells scenarios with one rule broken; see the head of this file.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--work", default=os.path.join(run.TREE, "build", "mutants"))
    options = parser.parse_args()
    known = {mutant for mutant, _, _ in SHOWN}
    for name in options.names:
        if name not in known:
            sys.exit(f"no scenario is known for `{name}`; there are: {', '.join(sorted(known))}")
    os.makedirs(options.work, exist_ok=True)
    good = True
    chosen = [row for row in SHOWN if not options.names or row[0] in options.names]
    program = build(None, options.work)
    for scenario in sorted({scenario for _, scenario, _ in chosen}):
        status, last = tell(program, scenario, options.work)
        if status != 0:
            print(f"CONTROL {scenario}: {last}", flush=True)
            good = False
    for mutant, scenario, wanted in chosen:
        begin = time.monotonic()
        program = build(mutant, options.work)
        status, last = tell(program, scenario, options.work, expectations=wanted != TWO_LEASES)
        right = status == 1 and wanted in last
        good = good and right
        seconds = time.monotonic() - begin
        print(f"{'' if right else 'WRONG '}{mutant} {scenario}: {last} ({seconds:.1f} s with the build)", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
