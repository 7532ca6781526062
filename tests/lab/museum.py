#!/usr/bin/env python3
"""The museum of the lab, as its data file has it, against the tree without any bug: each piece is a mutant that applies
and has a row in docs/hazards.md; its schedule can be replayed, and no judge speaks in it.

  museum.py LEASEHOLD_LAB            natively: seconds
  museum.py --variants BUILD_FOLDER  the variants of a page that has been built: each hurts, and the core does not.
                                     Skipped where the page, or node, is not there
  museum.py --self-test              whether a faulty data file is refused
"""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TREE, "lab", "museum")]
import difference  # noqa: E402  pylint: disable=wrong-import-position
import pieces as museum  # noqa: E402  pylint: disable=wrong-import-position
import variant  # noqa: E402  pylint: disable=wrong-import-position

PIECES_MIN = 20
SKIPPED = 77
GOOD = """[[piece]]
mutant = "no_promise"
title = "t"
link = "seed=7"
until = 1
oracle = "two_leases"
closes = "c"
shows = "s"
"""
REFUSED = [("until = 1", "until = \"1\"", "lacks `until`"), ("closes", "clses", "lacks `closes`"),
           ("no_promise", "no_such_mutant", "does not name the mutant"), ("title", "oops", "lacks `title`"),
           ("shows", "more = 1\nshows", "which nothing reads"), ("[[piece]]", "[[piece", "museum.toml"),
           ("[[piece]]\n", GOOD + "[[piece]]\n", "two pieces")]


def natively(program):
    faults = []
    pieces = museum.read_pieces()
    for piece in pieces:
        try:
            variant.mutated(piece["mutant"])
        except variant.VariantError as error:
            faults.append(str(error))
        done = subprocess.run([program, "hash", piece["link"], str(piece["until"])], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0 or done.stderr:
            faults.append(f"{piece['mutant']}: {done.stderr.strip() or done.returncode}")
    if len(pieces) < PIECES_MIN:
        faults.append(f"the museum has {len(pieces)} pieces, less than {PIECES_MIN}")
    print("\n".join(faults + [f"{len(pieces)} pieces, {len(faults)} faults"]))
    return 1 if faults else 0


def variants(folder):
    core, made = os.path.join(folder, "lab", "lease_lab.js"), os.path.join(folder, "museum.js")
    if shutil.which("node") is None or not os.path.exists(made):
        print("skipped: the page is not built: emscripten is not installed")
        return SKIPPED
    patch = os.path.join(TREE, "lab", "page", "patch.js")
    return subprocess.run(["node", os.path.join(HERE, "museum.js"), core, made, patch], check=False).returncode


def self_test():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "museum.toml")
        for old, new, wanted in [("", "", None)] + REFUSED:
            with open(path, "w", encoding="utf-8") as file:
                file.write(GOOD.replace(old, new, 1) if old else GOOD)
            try:
                museum.read_pieces(path)
                said = None
            except museum.MuseumError as error:
                said = str(error)
            if (said is None) != (wanted is None) or (wanted and wanted not in said):
                faults.append(f"{new!r}: expected {wanted}, got {said}")
    names = [{"mutant": name} for name in "abcdefg"]
    for words, wanted in (([], "abcdefg"), (["b", "f"], "bf"), (["--every", "3"], "adg"), (["--every", "0"], None),
                          (["--every"], None), (["z"], None)):
        try:
            said = "".join(piece["mutant"] for piece in museum.chosen(names, words))
        except museum.MuseumError:
            said = None
        if said != wanted:
            faults.append(f"{words}: {said} is chosen, not {wanted}")
    base = bytes(range(256)) * 40 + b"the end of it"
    for new in (base, b"", b"x", base[500:] + b"between" + base[:700], base[:1000] + base[1003:], bytes(300)):
        if difference.applied(base, difference.difference(base, new, difference.places_in(base))) != new:
            faults.append(f"{len(new)} bytes come out differently")
    print("\n".join(faults + [f"{len(faults)} judged wrongly"]))
    return 1 if faults else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--variants":
        return variants(sys.argv[2])
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    return natively(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
