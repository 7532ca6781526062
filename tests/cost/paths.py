#!/usr/bin/env python3
"""Holds what paths cost against what is recorded: instructions, which may differ by 3 %, and allocations, which
may not. The program cost_paths runs each path under callgrind; other work on the machine does not change a count."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

RECORDS = pathlib.Path(__file__).with_name("paths.toml")
RUNS = 500
BOUND = 0.03
SKIPPED = 77


def measured(program, valgrind):
    """Of each path: instructions and allocations of a run."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([valgrind, "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, str(RUNS)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{program} ended with {done.returncode}:\n{done.stderr}")
        allocations = json.loads(done.stdout)
        found = {}
        for dump in pathlib.Path(folder).iterdir():
            text = dump.read_text()
            name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
            total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
            if name and total:
                found[name[1]] = {"instructions": round(int(total[1]) / RUNS), "allocations": allocations[name[1]]}
    missing = set(allocations) - set(found)
    if missing:
        sys.exit(f"callgrind says nothing of {', '.join(sorted(missing))}")
    return {name: found[name] for name in allocations}


def write(compiler, found):
    lines = [f'# Of one run. Made by paths.py --write.\ncompiler = "{compiler}"\n']
    for name, cost in found.items():
        lines.append(f'["{name}"]\ninstructions = {cost["instructions"]}\nallocations = {cost["allocations"]:g}\n')
    RECORDS.write_text("\n".join(lines))


def problems(found, recorded):
    for name in sorted(set(found) | set(recorded)):
        if name not in found or name not in recorded:
            yield f"{name}: it is {'not measured' if name in recorded else 'not recorded'}"
            continue
        was, now = recorded[name], found[name]
        change = now["instructions"] / was["instructions"] - 1
        if abs(change) > BOUND:
            yield (f"{name}: {now['instructions']} instructions, {abs(change):.1%} {'more' if change > 0 else 'less'} "
                   f"than the {was['instructions']} that are recorded")
        if now["allocations"] != was["allocations"]:
            yield f"{name}: {now['allocations']:g} allocations, and {was['allocations']:g} are recorded"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="cost_paths")
    parser.add_argument("--valgrind", default="valgrind", help="default: %(default)s")
    parser.add_argument("--compiler", required=True, help="the version of g++ that has compiled it")
    parser.add_argument("--write", action="store_true", help="record what is measured")
    options = parser.parse_args()
    records = tomllib.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    recorded_by = records.pop("compiler", None)
    if not options.write and recorded_by != options.compiler:
        print(f"skipped: g++ {options.compiler} has compiled this, and the records are of {recorded_by}")
        return SKIPPED
    found = measured(options.program, options.valgrind)
    for name, cost in found.items():
        print(f"{name:<24} {cost['instructions']:>8} instructions {cost['allocations']:>7g} allocations")
    if options.write:
        write(options.compiler, found)
        return 0
    wrong = list(problems(found, records))
    for line in wrong:
        print(line)
    if wrong:
        print("What became dearer has a cause: find it. What is meant is recorded in the same commit: paths.py --write")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
