#!/usr/bin/env python3
"""Runs clang-tidy over the sources; what was clean and has not changed since is not looked at again.

  analyse.py TREE BUILD [--quick] [--jobs N]

BUILD is a build folder of clang's. Everything is analysed but tests, benchmarks and examples; with --quick the rooms
that the safety of the lease rests on, and what changed since the main branch (or, there, by the last commit). Where
BUILD compiles in batches (LEASEHOLD_BATCHES), a batch is analysed as one: a fifth of the time, and what a check says of
main files alone is left to the whole analysis.

A source that is clean is remembered, in the cache folder of the user, by all that the verdict depends on: its
preprocessed text with the comments, the command, .clang-tidy and the version of clang-tidy. Status 1 for any finding.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

QUICK_ROOMS = ("base/", "lease/", "grant/", "raft/")
SKIPPED = ("tests/", "bench/", "examples/")
QUICK_CHANGED_MAX = 5  # batches


def git(tree, *words):
    done = subprocess.run(["git", "-C", tree, *words], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def changed(tree):
    """Files that differ from the main branch, or from the commit before where this is the main branch."""
    head = git(tree, "rev-parse", "HEAD")
    since = git(tree, "merge-base", "HEAD", "origin/main") or git(tree, "merge-base", "HEAD", "main")
    if not since or since == head:
        since = git(tree, "rev-parse", "HEAD~1")
    return set(git(tree, "diff", "--name-only", *since)) if since else set()


def sources_of(tree, entry):
    """The file of a command; of a batch, those that it includes."""
    path = os.path.realpath(entry["file"])
    if "/Unity/" in path:
        with open(path, encoding="utf-8") as file:
            paths = re.findall(r'^#include "([^"]+)"', file.read(), flags=re.MULTILINE)
    else:
        paths = [path]
    return [os.path.relpath(os.path.realpath(one), tree) for one in paths]


def chosen(tree, batches, quick):
    """The batches to analyse, and how many of the changed are left out."""
    if not quick:
        return batches, 0
    touched = changed(tree)
    rooms = [batch for batch in batches if batch[0].startswith(QUICK_ROOMS)]
    others = [batch for batch in batches if touched.intersection(batch) and batch not in rooms]
    return rooms + others[:QUICK_CHANGED_MAX], len(others[QUICK_CHANGED_MAX:])


def fingerprint(tree, command, folder, common):
    """None if the source cannot be preprocessed: then clang-tidy says why."""
    words = shlex.split(command)
    words = words[next(i for i, word in enumerate(words) if re.search(r"clang\+\+[^/]*$", word)):]
    if "-o" in words:
        at = words.index("-o")
        del words[at:at + 2]
    done = subprocess.run([*words, "-E", "-CC"], cwd=folder, capture_output=True, check=False)
    if done.returncode != 0:
        return None
    # The same tree in another place has the same verdict.
    text = (done.stdout + " ".join(words).encode()).replace(os.path.realpath(tree).encode(), b"")
    return hashlib.sha256(common + text).hexdigest()


def analyse(tree, build, entry, common, cache):
    """(known to be clean, findings)"""
    key = fingerprint(tree, entry["command"], entry["directory"], common)
    mark = os.path.join(cache, key) if key else None
    if mark and os.path.exists(mark):
        os.utime(mark)
        return True, ""
    ours = f"include/leasehold/|^{re.escape(tree)}/.*\\.cc$"
    batch = ["--checks=-bugprone-suspicious-include"] if "/Unity/" in entry["file"] else []
    done = subprocess.run(["clang-tidy", "-p", build, "--quiet", f"--header-filter={ours}", *batch, entry["file"]],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return False, done.stdout + done.stderr
    if mark:
        with open(mark, "w", encoding="utf-8"):
            pass
    return False, ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree")
    parser.add_argument("build")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    tree = os.path.realpath(options.tree)
    with open(os.path.join(options.build, "compile_commands.json"), encoding="utf-8") as file:
        entries = {tuple(sources_of(tree, entry)): entry for entry in json.load(file)}
    known = set(git(tree, "ls-files", "*.cc"))
    batches = sorted(batch for batch in entries if known.intersection(batch) and not batch[0].startswith(SKIPPED))
    if not batches:
        sys.exit(f"there is nothing to analyse in {options.build}: is it configured?")
    picked, left_out = chosen(tree, batches, options.quick)
    with open(os.path.join(tree, ".clang-tidy"), "rb") as file:
        common = file.read() + subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "leasehold-tidy")
    os.makedirs(cache, exist_ok=True)

    clean = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(analyse, tree, options.build, entries[batch], common, cache): batch for batch in picked}
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            was_clean, findings = future.result()
            clean += was_clean
            first, *more = futures[future]
            others = f" and {len(more)} more" if more else ""
            print(f"[{number}/{len(picked)}] clang-tidy {first}{others}", flush=True)
            if findings:
                failed += 1
                print(findings, flush=True)
    print(f"{sum(map(len, picked))} of {sum(map(len, batches))} sources analysed in {len(picked)} runs ({clean} were "
          f"known to be clean), {failed} with findings")
    if left_out:
        print(f"{left_out} more batches with changes are left to make verify")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
