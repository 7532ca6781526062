#!/usr/bin/env python3
"""Breaks one rule at a time and expects the simulator, or a test, to notice.

Each *.mutant here is a deliberate bug: a header of `Name: value` lines (Rule, Hazard, Oracle), and
behind it what is found and what takes its place:

    @ raft/core_lease.cc Core::Impl::renew_promise
    - std::max(options_.timing.lease, carried)
    + options_.timing.lease

edits.py says how that is read. The runner copies the portable part of the tree, applies one mutant,
builds the program leasehold_sim and runs seeds until an oracle speaks. A mutant that survives its
seeds means that the simulator does not test that rule.

What the simulator cannot see, because it has its own disk, is for a test: `Oracle: test TARGET`, the
target of a test program, with a filter for GoogleTest behind it. The whole tree is copied then, that
one target is built, and the program has to fail. Without the mutant it has to pass, which is
seen before.

Each worker (`--workers N`, by default one for each core) has its own copies and builds, and takes one target's mutants
after the other.

A rule whose schedule is rare may ask for more seeds: `Seeds: N`.

  run.py                      all mutants, then the control
  run.py NAME...              these mutants only
  run.py --check              only see whether every mutant applies, and its test exists (fast)
  run.py --apply TREE NAME    change a copy of the tree, to build and try it by hand
  run.py --moved OLD NEW      a file or a folder moved: rewrite where the mutants name it
  run.py --renamed OLD NEW    an identifier (`end_of`, `Core::tick`) has another name: rewrite it in all
  run.py --self-test          see whether edits are read and applied as they should be
  run.py --control N          seeds of the control without a mutant (default 2000; 0: none, of tests too)
  run.py --results FILE       also write the results as JSON, after each one (results/mutants.json; tests/results.py
                              prints that)
  run.py --ablation N         run all of N seeds for each mutant of the simulator, and say which
                              fault classes it needs: those without which no seed finds it

Status 0: every mutant was killed by the kind of oracle that its header names, and the control
raised nothing.
"""

import argparse
import fnmatch
import functools
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))
import edits  # noqa: E402  pylint: disable=wrong-import-position
import results  # noqa: E402  pylint: disable=wrong-import-position

TREE = os.path.dirname(os.path.dirname(HERE))
PORTABLE = ["CMakeLists.txt", "cmake", "base", "check", "lease", "grant", "raft", "placement", "story", "explore",
            "wire", "net", "storage", "replica", "node", "kv", "sim", "lab"]
LEASE_ORACLES = {"two_leases", "side_two_leases", "lease_and_newer_commit", "lease_outlives_promise",
                 "lease_view_order", "linearizability"}
FIELDS = ["Rule", "Hazard", "Oracle"]
# A test that takes longer does not end.
TEST_SECONDS = 300
# A class that each finding had is needed only if it is unlikely that all had it by chance.
CHANCE_MAX = 0.01


class Broken(Exception):
    """Says nothing about a rule: a build failed, or a program did not run."""


class Mutant:
    def __init__(self, name):
        self.name = name
        self.path = os.path.join(HERE, name + ".mutant")
        with open(self.path, encoding="utf-8") as file:
            header, _, body = file.read().partition("\n\n")
        self.fields = dict(re.findall(r"^(\w+): (.*(?:\n  .*)*)", header, flags=re.MULTILINE))
        for field in FIELDS:
            if field not in self.fields:
                sys.exit(f"{name}.mutant: the header lacks `{field}: …`")
        try:
            self.edits = edits.parse(body.splitlines())
        except edits.EditError as error:
            sys.exit(f"{name}.mutant: {error}")
        # What was seen: the oracle, the first seed and the time; and the classes that it needs.
        self.seen = None
        self.needs = ""
        self.seeds = int(self.fields.get("Seeds", "0"))
        # "lease": any oracle of the lease, or linearizability. "raft": any oracle.
        words = self.fields["Oracle"].split()
        self.test = words[1:] if words[0] == "test" else None
        if self.fields["Oracle"] not in ("lease", "raft") and len(self.test or []) not in (1, 2):
            sys.exit(f"{name}.mutant: `Oracle:` is `lease`, `raft`, or `test TARGET [FILTER]`")

    def faults(self, tree):
        """Why it cannot be run, or None."""
        outside = [edit.path for edit in self.edits if edit.path.split("/")[0] not in PORTABLE]
        if self.test is None and outside:
            return f"{self.name}.mutant: the simulator is built without {outside[0]}"
        try:
            edits.apply(self.edits, tree, write=False)
        except edits.EditError as error:
            return f"{self.name}.mutant: {error}"
        return None


def test_names(tree):
    """Suite.Name of every GoogleTest case in the tree."""
    found = set()
    for folder, _, names in os.walk(os.path.join(tree, "tests")):
        for name in names:
            if name.endswith((".cc", ".h")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.update(".".join(pair) for pair in
                                 re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)", file.read()))
    return found


def without_tests(mutants, tree):
    """Whose filter picks no test: the test has another name now."""
    known = test_names(tree)
    for mutant in mutants:
        for pattern in (mutant.test or [])[1:2]:
            # A case with parameters is called Stores/Suite.Name/rocksdb.
            plain = [re.sub(r"^[^./]*/|/[^/]*$", "", part) for part in pattern.split(":")]
            if not any(fnmatch.filter(known, part) for part in plain):
                yield f"{mutant.name}.mutant: no test is called {pattern}"


def copy_tree(target, whole=False):
    """Copies what differs only, so that ninja rebuilds little."""
    everything = [f for f in os.listdir(TREE) if not f.startswith(".") and f != "build"]
    for part in everything if whole else PORTABLE:
        source = os.path.join(TREE, part)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(target, part), dirs_exist_ok=True,
                            copy_function=copy_if_changed)
        else:
            copy_if_changed(source, os.path.join(target, part))


def copy_if_changed(source, target):
    if os.path.isdir(target):
        target = os.path.join(target, os.path.basename(source))
    with open(source, "rb") as file:
        wanted = file.read()
    if os.path.exists(target):
        with open(target, "rb") as file:
            if file.read() == wanted:
                return target
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.write(wanted)
    return target


def apply(mutant, tree):
    try:
        edits.apply(mutant.edits, tree, write=True)
    except edits.EditError as error:
        sys.exit(f"{mutant.name}.mutant: {error}")


def make(tree, folder, target, *settings, jobs=os.cpu_count() or 1):
    """Builds one target; ninja itself notices when the folder has to be configured again."""
    commands = [["ninja", "-C", folder, f"-j{jobs}", target]]
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        # Compiling costs more than running: most seeds and tests end at once.
        commands.insert(0, ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                            "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -w", "-DLEASEHOLD_PCH=ON", *settings])
    for command in commands:
        done = subprocess.run(command, text=True, capture_output=True)
        if done.returncode != 0:
            raise Broken(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def build(tree, folder, jobs):
    make(tree, folder, "leasehold_sim_program", "-DLEASEHOLD_PORTABLE_ONLY=ON", "-DLEASEHOLD_BUILD_TESTS=OFF",
         jobs=jobs)
    return os.path.join(folder, "sim", "leasehold_sim")


def build_test(tree, folder, target, jobs):
    make(tree, folder, target, jobs=jobs)
    for place, _, files in os.walk(folder):
        if target in files:
            return os.path.join(place, target)
    raise Broken(f"{target} was not built under {folder}")


def failed_test(test, work, jobs):
    """What the tree under `work` fails in: the name of a test, or None."""
    tree = os.path.join(work, "whole")
    program = build_test(tree, os.path.join(tree, "build"), test[0], jobs)
    command = [program, "--gtest_fail_fast"]
    if len(test) > 1:
        command.append("--gtest_filter=" + test[1])
    try:
        done = subprocess.run(command, text=True, errors="replace", capture_output=True, timeout=TEST_SECONDS)
        output = done.stdout
    except subprocess.TimeoutExpired as expired:
        output = (expired.stdout or b"").decode(errors="replace")
        done = None
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, flags=re.MULTILINE)
    if not begun:
        raise Broken(f"{' '.join(command)} runs no test:\n{output[-2000:]}")
    if done is None:
        return begun[-1] + " (does not end)"
    if done.returncode == 0:
        return None
    found = re.search(r"^\[  FAILED  \] ([^\s,]+)", output, flags=re.MULTILINE)
    return found.group(1) if found else begun[-1] + " (dies)"


def first_finding(program, seeds, jobs, extra):
    """(seed, oracle) of the first finding, or None."""
    done = subprocess.run([program, "--seeds", f"1..{seeds}", "--jobs", str(jobs), "--quiet"] + extra,
                          text=True, capture_output=True)
    found = re.search(r"^FOUND seed (\d+) oracle (\w+)", done.stdout, flags=re.MULTILINE)
    if found:
        return int(found.group(1)), found.group(2), done.stdout + done.stderr
    if done.returncode != 0:
        raise Broken(f"{program} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return None


def run_test_mutant(mutant, work, jobs):
    tree = os.path.join(work, "whole")
    copy_tree(tree, whole=True)
    apply(mutant, tree)
    begin = time.monotonic()
    failed = failed_test(mutant.test, work, jobs)
    seconds = time.monotonic() - begin
    if failed is None:
        print(f"SURVIVED  {mutant.name}: {' '.join(mutant.test)} passes ({seconds:.1f} s)", flush=True)
        return False
    print(f"killed    {mutant.name}: {failed}, {seconds:.1f} s with the build", flush=True)
    mutant.seen = {"killed by": failed, "first seed": None, "seconds": round(seconds), "of": "test and build"}
    return True


def run_test_control(test, work, jobs):
    """A test that mutants name, without one."""
    copy_tree(os.path.join(work, "whole"), whole=True)
    failed = failed_test(test, work, jobs)
    print(f"control   the tree itself passes {' '.join(test)}" if failed is None else
          f"CONTROL   the tree itself fails {failed} in {' '.join(test)}", flush=True)
    return failed is None


def run_mutant(mutant, work, seeds, jobs, ablation):
    if mutant.test:
        return run_test_mutant(mutant, work, jobs)
    tree = os.path.join(work, "tree")
    copy_tree(tree)
    apply(mutant, tree)
    program = build(tree, os.path.join(tree, "build"), jobs)
    begin = time.monotonic()
    extra = ["--lease-oracles"] if mutant.fields["Oracle"] == "lease" else []
    seeds = max(seeds, mutant.seeds)
    finding = first_finding(program, seeds, jobs, extra)
    seconds = time.monotonic() - begin
    if finding is None:
        print(f"SURVIVED  {mutant.name}: no oracle spoke in {seeds} seeds ({seconds:.1f} s)", flush=True)
        return False
    seed, oracle, _ = finding
    good = oracle in LEASE_ORACLES if mutant.fields["Oracle"] == "lease" else oracle != "coverage"
    word = "killed    " if good else "WRONG     "
    print(f"{word}{mutant.name}: {oracle}, seed {seed}, {seconds:.1f} s", flush=True)
    mutant.seen = {"killed by": oracle, "first seed": int(seed), "seconds": round(seconds, 1), "of": "simulation"}
    if ablation > 0:
        mutant.needs = needed_faults(program, ablation, jobs, extra)
        print(f"needs     {mutant.name}: {mutant.needs}", flush=True)
    return good


def needed_faults(program, seeds, jobs, extra):
    """The classes without which no seed found it. Each seed draws its own mixture, so the seeds that
    lack a class are the run without it."""
    done = subprocess.run([program, "--seeds", f"1..{seeds}", "--jobs", str(jobs), "--quiet", "--keep-going",
                           "--tail", "1"] + extra, text=True, errors="replace", capture_output=True)
    drawn = re.search(r"^seeds by fault: (.*)$", done.stdout, flags=re.MULTILINE)
    if not drawn:
        raise Broken(f"{program} ended with status {done.returncode} and no summary:\n{done.stderr[-2000:]}")
    share = {name: int(count) / seeds for name, count in re.findall(r"(\w+) (\d+)", drawn.group(1))}
    findings = [set(found.split()) for found in re.findall(r"^  faults:(.*)$", done.stdout, flags=re.MULTILINE)]
    if not findings:
        return f"nothing was found in {seeds} seeds"
    every = set.intersection(*findings)
    needed = sorted(name for name in every
                    if len(findings) * math.log(max(share.get(name, 0), 1e-9)) < math.log(CHANCE_MAX))
    return f"{' '.join(needed) or 'no class of its own'} ({len(findings)} of {seeds} seeds found it)"


def write_results(path, mutants, begin):
    rows = []
    for mutant in mutants:
        row = {"mutant": mutant.name, "the rule that it breaks": " ".join(mutant.fields["Rule"].split()),
               **(mutant.seen or {"killed by": "nothing"})}
        if mutant.needs:
            row["needs"] = mutant.needs
        rows.append(row)
    killed = sum(1 for mutant in mutants if mutant.seen)
    results.write(path, "every mutant, killed by the simulator or by a test", time.strftime("%Y-%m-%d"),
                  "python3 tests/mutants/run.py --results results/mutants.json",
                  [f"{killed} of {len(mutants)} mutants killed in one run of {(time.monotonic() - begin) / 60:.0f} "
                   "minutes. A seed is the first one that found the mutant; a test's seconds include the build."],
                  [("Mutants", rows)])


def run_control(work, seeds, jobs):
    tree = os.path.join(work, "tree")
    copy_tree(tree)
    program = build(tree, os.path.join(tree, "build"), jobs)
    finding = first_finding(program, seeds, jobs, [])
    if finding is not None:
        print(f"CONTROL   the tree itself raises {finding[1]} at seed {finding[0]}\n{finding[2]}")
        return False
    print(f"control   the tree itself raises nothing in {seeds} seeds", flush=True)
    return True


def in_turn(tasks, workers, work):
    """Runs the tasks, each with the folder of the worker that took it; whether all of them were good. A task is
    (what it builds, what to do). What one task has built, the next one with the same target needs: so a worker stays
    with its target, then takes one that nobody has begun, and helps another worker at the end."""
    waiting = {}
    for target, task in tasks:
        waiting.setdefault(target, []).append(task)
    begun = set()
    lock = threading.Lock()
    bad = []

    def next_of(target):
        if target not in waiting:
            fresh = [one for one in waiting if one not in begun]
            target = max(fresh or waiting, key=lambda one: len(waiting[one]), default=None)
        if target is None:
            return None, None
        begun.add(target)
        task = waiting[target].pop(0)
        if not waiting[target]:
            del waiting[target]
        return target, task

    def take(folder):
        os.makedirs(folder, exist_ok=True)
        target = None
        while True:
            with lock:
                target, task = next_of(target)
            if task is None:
                return
            try:
                good = task(folder)
            except Broken as error:
                print(f"BROKEN    {error}", flush=True)
                good = False
            if not good:
                bad.append(task)

    threads = [threading.Thread(target=take, args=(os.path.join(work, str(number)),))
               for number in range(1, workers + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return not bad


def rewrite(names, how, old, new):
    """Makes the mutants follow a change of the tree."""
    changed = 0
    for name in names:
        path = os.path.join(HERE, name + ".mutant")
        with open(path, encoding="utf-8") as file:
            before = file.read()
        after = how(before, old, new)
        if after != before:
            changed += 1
            with open(path, "w", encoding="utf-8") as file:
                file.write(after)
    print(f"{changed} mutants rewritten")
    return 0


def main():
    parser = argparse.ArgumentParser(description="Runs the mutants; see the head of this file.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--apply", metavar="TREE")
    parser.add_argument("--moved", nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--renamed", nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--results", metavar="FILE")
    parser.add_argument("--ablation", type=int, default=0, metavar="N")
    parser.add_argument("--control", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of all workers together")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", default=os.path.join(TREE, "build", "mutants"))
    options = parser.parse_args()
    all_names = sorted(f[:-len(".mutant")] for f in os.listdir(HERE) if f.endswith(".mutant"))
    if options.self_test:
        failures = edits.self_test()
        print("\n".join(failures + [f"{len(failures)} judged wrongly"]))
        return 1 if failures else 0
    if options.moved or options.renamed:
        return rewrite(all_names, *([edits.moved, *options.moved] if options.moved else
                                    [edits.renamed, *options.renamed]))
    names = [os.path.basename(n).replace(".mutant", "") for n in options.names] or all_names
    for name in names:
        if name not in all_names:
            sys.exit(f"there is no mutant `{name}`; there are: {', '.join(all_names)}")
    mutants = [Mutant(name) for name in names]
    if options.apply:
        if not options.names or os.path.realpath(options.apply) == os.path.realpath(TREE):
            sys.exit("--apply takes a copy of this tree, and the mutants")
        for mutant in mutants:
            apply(mutant, options.apply)
        return 0
    if options.check:
        faults = [fault for fault in (mutant.faults(TREE) for mutant in mutants) if fault]
        faults += without_tests(mutants, TREE)
        print("\n".join(faults + [f"{len(mutants) - len(faults)} of {len(mutants)} mutants apply"]))
        return 1 if faults else 0
    begin = time.monotonic()
    workers = max(1, min(options.workers, len(mutants)))
    jobs = max(1, options.jobs // workers)
    lock = threading.Lock()
    done = []

    def kill(mutant, folder):
        try:
            good = run_mutant(mutant, folder, options.seeds, jobs, options.ablation)
        except Broken as error:
            raise Broken(f"{mutant.name}: {error}") from error
        finally:
            with lock:
                done.append(mutant)
                if options.results:
                    write_results(options.results, sorted(done, key=lambda one: one.name), begin)
        return good

    tests = sorted({tuple(mutant.test) for mutant in mutants if mutant.test}) if options.control > 0 else []
    good = in_turn([(test[0], functools.partial(run_test_control, test, jobs=jobs)) for test in tests],
                   workers, options.work)
    good = in_turn([(mutant.test[0] if mutant.test else "", functools.partial(kill, mutant)) for mutant in mutants],
                   workers, options.work) and good
    if options.control > 0 and any(not mutant.test for mutant in mutants):
        good = run_control(os.path.join(options.work, "1"), options.control, options.jobs) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
