#!/usr/bin/env python3
"""The pages name what exists: every test (`Suite.Name`, `Suite.*`, `Suite.Begin*`) and every file below `tests/`;
each link leads to a page and a heading; docs/decisions/README.md lists each decision with its title; and docs/study.md
says how many rules lease/README.md has.

  names.py TREE
  names.py --self-test
"""

import os
import re
import sys
import tempfile

import checks
from hazards import tests_of
from text import texts

# LEASE.GRANT is a command.
NAMED_TEST = re.compile(r"`(?!LEASE\.)([A-Z]\w*\.(?:\*|[A-Z]\w*\*?))`")
NAMED_FILE = re.compile(r"`(tests/[\w./-]*\w)`")
LINK = re.compile(r"\]\(([^)\s:]+)\)")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


RULE = re.compile(r"^\*\*\d+\. ", re.MULTILINE)
COUNTED = re.compile(r"\b(?:twenty|thirty|forty|fifty)(?:-[a-z]+)?(?= rules\b)", re.IGNORECASE)
NUMBERS = {f"{ten}{'-' + one if one else ''}": value + add
           for ten, value in (("twenty", 20), ("thirty", 30), ("forty", 40), ("fifty", 50))
           for add, one in enumerate(["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])}


def rules(tree):
    """What docs/study.md says wrongly about the number of rules; nothing where either page is missing."""
    texts_of = []
    for page in (os.path.join("lease", "README.md"), os.path.join("docs", "study.md")):
        if not os.path.exists(os.path.join(tree, page)):
            return []
        with open(os.path.join(tree, page), encoding="utf-8") as file:
            texts_of.append(file.read())
    count, said = len(RULE.findall(texts_of[0])), [word.lower() for word in COUNTED.findall(texts_of[1])]
    if [NUMBERS.get(word) for word in said] != [count]:
        return [f"docs/study.md: lease/README.md has {count} rules, not {', '.join(said) or 'a number in words'}"]
    return []


def headings(path):
    """The names by which a link may ask for a heading of a page."""
    with open(path, encoding="utf-8") as file:
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
                for title in HEADING.findall(BLOCK.sub("", file.read()))}


def decisions(tree):
    """Those that the list of decisions lacks, or names by another title."""
    folder = os.path.join(tree, "docs", "decisions")
    if not os.path.isdir(folder):
        return []
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        listed = file.read()
    found = []
    for name in sorted(os.listdir(folder)):
        if re.match(r"\d{4}-.*\.md$", name):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                title = re.sub(r"^# \d+\. ", "", file.readline().strip())
            if f"| {int(name[:4])} | [{title}]({name}) |" not in listed:
                found.append(f"docs/decisions/README.md: no line `| {int(name[:4])} | [{title}]({name}) |`")
    return found


def dead_links(tree, page, text):
    found = []
    for link in LINK.findall(BLOCK.sub("", text)):
        path, _, heading = link.partition("#")
        target = os.path.join(tree, os.path.dirname(page), path) if path else os.path.join(tree, page)
        if not os.path.exists(target):
            found.append(f"{page}: there is no page {link}")
        elif heading and target.endswith(".md") and heading not in headings(target):
            found.append(f"{page}: there is no heading {link}")
    return found


def pages(tree):
    return (path for path in texts(tree) if path.endswith(".md"))


def known(name, tests):
    return name in tests or name.endswith("*") and any(test.startswith(name[:-1]) for test in tests)


def check(tree):
    tests = tests_of(tree)
    found = rules(tree) + decisions(tree)
    for page in pages(tree):
        with open(os.path.join(tree, page), encoding="utf-8") as file:
            text = file.read()
        found += [f"{page}: there is no test {name}" for name in NAMED_TEST.findall(text)
                  if not known(name, tests)]
        found += [f"{page}: there is no file {name}" for name in NAMED_FILE.findall(text)
                  if not os.path.exists(os.path.join(tree, name))]
        found += dead_links(tree, page, text)
    return found


# A page, and whether it names what is not there.
PLANTED = [("`A.DoesThis`, `A.*`, `A.Does*`, `tests/a/a.cc`, `tests/a`, `A.member`", False),
           ("`A.DoesThat`", True), ("`B.*`", True), ("# A b: c\n[x](a.md#a-b-c), [y](#a-b-c), [z](https://example.org/a)\n```\n[w](w.md)\n```", False),
           ("[x](b.md)", True), ("# A\n[x](#b)", True), ("`A.That*`", True), ("`tests/b.py`", True)]


def self_test():
    failures = []
    for page, wrong in PLANTED:
        with tempfile.TemporaryDirectory() as tree:
            os.makedirs(os.path.join(tree, "tests", "a"))
            for path, text in (("tests/a/a.cc", "TEST_F(A, DoesThis) {}\n"), ("a.md", page)):
                with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                    file.write(text)
            findings = check(tree)
        if bool(findings) != wrong:
            failures.append(f"{page}: {findings}")
    for said, wrong in (("The two rules", True), ("The thirty rules", True), ("The twenty-one rules", False)):
        with tempfile.TemporaryDirectory() as tree:
            for path, text in (("lease/README.md", "".join(f"**{n}. A rule.** So.\n" for n in range(1, 22))),
                               ("docs/study.md", said + " below.\n")):
                os.makedirs(os.path.join(tree, os.path.dirname(path)))
                with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                    file.write(text)
            findings = check(tree)
        if bool(findings) != wrong:
            failures.append(f"{said}: {findings}")
    for listed, wrong in (("| 1 | [So](0001-so.md) |", False), ("| 1 | [Other](0001-so.md) |", True), ("", True)):
        with tempfile.TemporaryDirectory() as tree:
            os.makedirs(os.path.join(tree, "docs", "decisions"))
            for name, text in (("README.md", listed + "\n"), ("0001-so.md", "# 1. So\n")):
                with open(os.path.join(tree, "docs", "decisions", name), "w", encoding="utf-8") as file:
                    file.write(text)
            findings = check(tree)
        if bool(findings) != wrong:
            failures.append(f"{listed}: {findings}")
    return len(PLANTED) + 6, failures


if __name__ == "__main__":
    sys.exit(checks.main(sys.argv[1:], __doc__, self_test, check, pages))
