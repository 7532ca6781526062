#!/usr/bin/env python3
"""Keeps quaint and riddling words (words.txt) out of the README, the pages and the public headers.

  words.py TREE             check the tree; one line per finding, status 1 if there is any
  words.py --self-test      plant each kind of fault in a small tree, expect each found

Of a page all text counts but for code (`spans` and blocks), of a scenario its prose, of a header its comments.
CHANGELOG.md is history.
"""

import os
import re
import sys
import tempfile

import checks
from text import texts

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.txt")
HEADERS = os.path.join("cmake", "public_headers.txt")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NAME = re.compile(r"[a-z][A-Z]|_")  # of code, in a comment: HandOver, hand_over


def words():
    """[(pattern, what to say instead)]. A line that is not understood is an error: no word is lost silently."""
    found = []
    with open(LIST, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            pattern, arrow, instead = line.partition(" -> ")
            if not arrow:
                raise SystemExit(f"words.txt:{number}: a line is PATTERN -> INSTEAD")
            found.append((re.compile(rf"\b(?:{pattern.replace(' ', chr(92) + 's+')})\b", re.IGNORECASE), instead))
    return found


def public_headers(tree):
    path = os.path.join(tree, HEADERS)
    if not os.path.exists(path):
        return
    section = None
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line.startswith("["):
                section = line
            elif line and section != "[private]" and os.path.exists(os.path.join(tree, line)):
                yield line


def pages(tree):
    return (path for path in texts(tree)
            if path.endswith((".md", ".scenario")) and os.path.basename(path) != "CHANGELOG.md")


def blank(found):
    return re.sub(r"[^\n]", " ", found.group(0))


def prose_of_page(text):
    text = re.sub(r"^(```|~~~).*?^\1", blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", blank, text, flags=re.MULTILINE)  # an indented block
    return re.sub(r"`[^`]*`", blank, text)


def prose_of_scenario(text):
    """Without the commands and what they print."""
    return re.sub(r"^(?:> |  ).*$", blank, text, flags=re.MULTILINE)


def prose_of_header(text):
    prose, end = [], 0
    for found in COMMENT.finditer(text):
        prose += [re.sub(r"[^\n]", " ", text[end:found.start()]), re.sub(r"///?<?", "   ", found.group(0))]
        end = found.end()
    return re.sub(r"`[^`\n]*`", blank, "".join(prose))


def check(tree):
    known = words()
    findings = []
    for path in [*pages(tree), *public_headers(tree)]:
        with open(os.path.join(tree, path), encoding="utf-8") as file:
            text = file.read()
        kind = os.path.splitext(path)[1]
        prose = {".md": prose_of_page, ".scenario": prose_of_scenario, ".h": prose_of_header}[kind](text)
        for pattern, instead in known:
            for found in pattern.finditer(prose):
                if NAME.search(found.group(0)):
                    continue
                number = prose.count("\n", 0, found.start()) + 1
                findings.append(f"{path}:{number}: `{' '.join(found.group(0).split())}`: {instead}")
    return findings


# What the self-test plants: a file, its content, and a part of the finding (None: allowed).
PLANTED = [
    ("README.md", "Ask Who" "ever leads.\n", "`Whoever`"),
    ("docs/a.md", "It begins a" "new.\n", "`anew`"),
    ("docs/b.md", "A caller is\ntold.\n", "`is told`"),
    ("docs/c.md", "`who" "ever`, and\n\n    who" "ever\n\n```\nwho" "ever\n```\n", None),
    ("docs/d.md", "A planned hand-" "over.\n", "transfer"),
    ("docs/e.md", "`hand_over()` transfers the leadership; renewals.\n", None),
    ("docs/f.scenario", "# A title\n\n> say who" "ever\n  who" "ever\n", None),
    ("docs/g.scenario", "# For who" "ever\n", "g.scenario:1: "),
    ("CHANGELOG.md", "Who" "ever.\n", None),
    ("base/a.h", "/// For who" "ever waits.\nint a;\n", "base/a.h:1: "),
    ("base/b.h", "/// For so\n/// long.\nint a;\n", "`For so long`"),
    ("base/c.h", "int anew;  // a member\nint b;  // see HandOver\nint heir();\n", None),
    ("base/private.h", "// who" "ever\n", None),
    ("cmake/public_headers.txt", "[core]\nbase/a.h\nbase/b.h\nbase/c.h\n[private]\nbase/private.h\n", None),
]


def self_test():
    failures = []
    with tempfile.TemporaryDirectory() as tree:
        for path, content, _ in PLANTED:
            os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
            with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                file.write(content)
        findings = check(tree)
    for path, _, expected in PLANTED:
        of_file = [f for f in findings if f.startswith(path + ":")]
        if (expected is None and of_file) or \
                (expected is not None and not any(expected in f for f in of_file)):
            failures.append(f"{path}: expected {expected or 'nothing'}, found {of_file}")
    return len(PLANTED), failures


def checked(tree):
    return [*pages(tree), *public_headers(tree)]


if __name__ == "__main__":
    sys.exit(checks.main(sys.argv[1:], __doc__, self_test, check, checked))
