"""docs/hazards.md names what exists: every row is there, and has a test and a mutant or is argued
away; every test and every mutant that it names can be found.

  hazards.py TREE
  hazards.py --self-test
"""

import glob
import os
import re
import sys

ROWS = [f"H{n}" for n in [*range(1, 46), *range(51, 79)]]
ARGUED_MAX = 8
TEST = re.compile(r"`(\w+\.\w+)`")
DEFINED = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)", re.MULTILINE)


def problems(text, tests, known):
    """What is wrong with the page `text`."""
    found = []
    rows = {}
    argued = 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not re.fullmatch(r"H\d+", cells[0]):
            continue
        if len(cells) != 5:
            found.append(f"{cells[0]}: {len(cells)} columns, not 5")
            continue
        rows[cells[0]] = cells
        named = TEST.findall(cells[3])
        mutants = re.findall(r"`(\w+)`", cells[4])
        if cells[2].startswith("*argued"):
            argued += 1
        elif not named or not mutants:
            found.append(f"{cells[0]}: needs a test and a mutant, or an argument")
        found += [f"{cells[0]}: there is no test {name}" for name in named if name not in tests]
        found += [f"{cells[0]}: there is no mutant {name}" for name in mutants
                  if name not in known]
    found += [f"{row} is missing" for row in ROWS if row not in rows]
    if argued > ARGUED_MAX:
        found.append(f"{argued} rows are argued away, more than {ARGUED_MAX}")
    return found


def tests_of(tree):
    names = set()
    for path in glob.glob(os.path.join(tree, "tests", "**", "*.cc"), recursive=True):
        with open(path, encoding="utf-8") as file:
            names |= {".".join(pair) for pair in DEFINED.findall(file.read())}
    return names


def self_test():
    good = "\n".join(f"| {row} | a | b | `A.B` | `m` |" for row in ROWS)
    assert problems(good, {"A.B"}, {"m"}) == []
    assert len(problems(good, set(), {"m"})) == len(ROWS)
    assert len(problems(good, {"A.B"}, set())) == len(ROWS)
    assert problems(good.replace("| H7 |", "| H77 |"), {"A.B"}, {"m"}) == ["H7 is missing"]
    assert len(problems(good.replace("`A.B`", "", 1), {"A.B"}, {"m"})) == 1
    argued = good.replace("| b | `A.B` | `m` |", "| *argued:* so | | |")
    assert problems(argued, set(), set()) == [f"{len(ROWS)} rows are argued away, more than {ARGUED_MAX}"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    tree = sys.argv[1]
    with open(os.path.join(tree, "docs", "hazards.md"), encoding="utf-8") as file:
        text = file.read()
    known = {os.path.basename(path)[:-len(".mutant")]
             for path in glob.glob(os.path.join(tree, "tests", "mutants", "*.mutant"))}
    found = problems(text, tests_of(tree), known)
    print("\n".join(f"docs/hazards.md: {problem}" for problem in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
