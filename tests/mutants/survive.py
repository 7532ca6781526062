#!/usr/bin/env python3
"""The mutants outlive changes of the code that are none of theirs.

Makes three such changes to a copy of the tree, one after the other, and checks each time that every mutant still
applies: a method that many functions call gets another name, and no mutant is rewritten; a file and a folder move
(`run.py --moved` follows); clang-format gives all files that mutants change 52 columns. Status 1: one does not apply.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
METHOD = "as_leader"
COLUMNS = 52


def sources(tree):
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name != "build" and name[0] != "."]
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith((".h", ".cc")))


def mutants(tree, *arguments, quiet=False):
    done = subprocess.run([sys.executable, "-B", os.path.join(tree, "tests", "mutants", "run.py"), *arguments],
                          text=True, capture_output=True)
    if not quiet:
        print(done.stdout + done.stderr, end="", flush=True)
    return done.returncode


def rename(tree):
    changed = 0
    for path in sources(tree):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text, count = re.subn(rf"\b{METHOD}\b", "leader_or_nothing", text)
        changed += count
        if count:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if changed == 0:
        sys.exit(f"nothing is called {METHOD} any more; take another method")
    print(f"{METHOD} has another name in {changed} places")


def changed_files(tree):
    """The files that mutants change."""
    folder = os.path.join(tree, "tests", "mutants")
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".mutant"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for path in re.findall(r"^@ (\S+)", file.read(), flags=re.MULTILINE):
                    found[path] = found.get(path, 0) + 1
    return found


def move(tree):
    """The file that most mutants change, and the folder of the next that stands in another."""
    counts = changed_files(tree)
    most = sorted(counts, key=lambda path: -counts[path])
    file = most[0]
    folder = next(os.path.dirname(path) for path in most if os.path.dirname(path) != os.path.dirname(file))
    stem, suffix = os.path.splitext(file)
    for old, new in ((file, stem + "_moved" + suffix), (folder, folder + "/moved")):
        aside = os.path.join(tree, "aside")
        shutil.move(os.path.join(tree, old), aside)
        os.makedirs(os.path.dirname(os.path.join(tree, new)), exist_ok=True)
        shutil.move(aside, os.path.join(tree, new))
        print(f"{old} is {new} now")
        if mutants(tree, "--check", quiet=True) == 0:
            sys.exit(f"mutants find {old}, which is not there")
        if mutants(tree, "--moved", old, new) != 0:
            sys.exit("--moved failed")


def reformat(tree):
    with open(os.path.join(tree, ".clang-format"), encoding="utf-8") as file:
        style = re.sub(r"ColumnLimit: \d+", f"ColumnLimit: {COLUMNS}", file.read())
    with open(os.path.join(tree, ".clang-format"), "w", encoding="utf-8") as file:
        file.write(style.replace("BreakStringLiterals: false", "BreakStringLiterals: true"))
    paths = [os.path.join(tree, path) for path in changed_files(tree)]
    subprocess.run(["clang-format", "-i", *paths], check=True)
    print(f"{len(paths)} files have {COLUMNS} columns")


def main():
    good = True
    with tempfile.TemporaryDirectory() as tree:
        shutil.copytree(TREE, tree, dirs_exist_ok=True, ignore=lambda folder, names: [
            name for name in names if name in ("build", ".git", ".cache", "__pycache__")])
        for change in (rename, move, reformat):
            if change is reformat and shutil.which("clang-format") is None:
                print("clang-format is not installed: the files keep their columns")
                continue
            change(tree)
            good = mutants(tree, "--check") == 0 and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
