#!/usr/bin/env python3
"""Keeps the text of the tree in shape: lengths, line ends, words that do not belong.

  text.py TREE            check the tree; one line per finding, status 1 if there is any
  text.py --self-test     plant one fault of each kind in a small tree, expect each found
"""

import os
import re
import sys
import tempfile

import checks

COLUMNS_MAX = 100
SCRIPT_COLUMNS_MAX = 120

SKIPPED_FOLDERS = {"build", ".git", ".cache", "__pycache__", "out"}
TEXT = (".h", ".cc", ".cmake", ".json", ".md", ".mutant", ".patch", ".pml", ".proto", ".py", ".scenario",
        ".sh", ".toml", ".txt", ".yml")
CODE = (".h", ".cc", ".pml", ".proto", ".py", ".sh")

# Spelled so that this file does not match itself.
WORDS = [
    (re.compile(r"\bTO[D]O\b|\bFIX[M]E\b|\bXX[X]\b"), "say it in an issue or do it now"),
    (re.compile(r"(?<![\w.$}*/-])/(work|home|root)/"), "an absolute path of somebody's machine"),
]
# C++20 ends what the call returned before the first pass: of a shared pointer, the last one may be gone.
LOOP_OVER_CALL = re.compile(r"\bfor \([^;]*[^:]: \*[^;)]*\(")


def texts(tree):
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for name in sorted(files):
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            if name.endswith(TEXT) or name in ("Makefile", "LICENSE") or is_script(path):
                yield os.path.relpath(path, tree)


def is_script(path):
    if "." in os.path.basename(path):
        return False
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def check_file(tree, path):
    """Yields (line number, what is wrong)."""
    with open(os.path.join(tree, path), "rb") as file:
        content = file.read()
    if b"\r" in content:
        yield content[:content.index(b"\r")].count(b"\n") + 1, "a carriage return: lines end in LF"
    if content and not content.endswith(b"\n"):
        yield content.count(b"\n") + 1, "the last line has no end"
    try:
        lines = content.decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        yield 1, f"not UTF-8: {error}"
        return
    code = path.endswith(CODE) or "." not in os.path.basename(path)
    for number, line in enumerate(lines, 1):
        # The context lines of a patch begin with a space, empty ones too.
        if line != line.rstrip() and not path.endswith(".patch"):
            yield number, "white space at the end of the line"
        columns_max = COLUMNS_MAX if path.endswith((".h", ".cc", ".proto")) else SCRIPT_COLUMNS_MAX
        if code and path != "Makefile" and len(line) > columns_max and "://" not in line:
            yield number, f"{len(line)} columns; at most {columns_max}"
        if code and "\t" in line and path != "Makefile":
            yield number, "a tab"
        if path.endswith((".h", ".cc")) and LOOP_OVER_CALL.search(line):
            yield number, "a loop over what the result of a call points to: give the result a name"
        for pattern, reason in WORDS:
            found = pattern.search(line)
            if found:
                yield number, f"`{found.group(0)}`: {reason}"


def check(tree):
    return [f"{path}:{number}: {wrong}" for path in texts(tree)
            for number, wrong in check_file(tree, path)]


# What the self-test plants: a file, its content, and a part of the finding (None: allowed).
PLANTED = [
    ("a.cc", "int x;\r\n", "carriage return"),
    ("b.cc", "int x;", "no end"),
    ("c.cc", "int x; \n", "white space"),
    ("d.cc", "// " + "x" * COLUMNS_MAX + "\n", "columns"),
    ("e.cc", "// " + "x" * (COLUMNS_MAX - 3) + "\n", None),
    ("f.cc", "\tint x;\n", "a tab"),
    ("g.cc", "// TO" + "DO: later\n", "do it now"),
    ("h.md", "FIX" + "ME\n", "do it now"),
    ("i.py", "p = '/" + "home/me/x'\n", "absolute path"),
    ("m.md", "a | " + "long " * 40 + "table\n", None),
    ("n.patch", " \n", None),
    ("s.mutant", "- \n", "white space"),
    ("script", "#!/bin/bash\n" + "x" * (SCRIPT_COLUMNS_MAX + 1) + "\n", "columns"),
    ("o.cc", "// see https://example.org/" + "x" * COLUMNS_MAX + "\n", None),
    ("p.cc", "int todo_list;\n", None),
    ("build/q.cc", "int x; \n", None),
    ("r.txt", b"\xff\n", "not UTF-8"),
    ("t.cc", "for (const auto& one : *all.list()) {\n", "give the result a name"),
    ("u.cc", "for (const auto& one : *all) use(one);\n", None),
]


def self_test():
    failures = []
    with tempfile.TemporaryDirectory() as tree:
        for path, content, _ in PLANTED:
            os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
            with open(os.path.join(tree, path), "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        findings = check(tree)
    for path, _, expected in PLANTED:
        of_file = [f for f in findings if f.startswith(path + ":")]
        if (expected is None and of_file) or \
                (expected is not None and not any(expected in f for f in of_file)):
            failures.append(f"{path}: expected {expected or 'nothing'}, found {of_file}")
    return len(PLANTED), failures


if __name__ == "__main__":
    sys.exit(checks.main(sys.argv[1:], __doc__, self_test, check, texts))
