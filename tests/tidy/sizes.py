#!/usr/bin/env python3
"""The sizes of the code, and the limits that they keep.

  sizes.py TREE             one line for each file or function over its limit; status 1 if there is any
  sizes.py --table TREE     a table: for each room its files, lines, functions, assertions and comments
  sizes.py --self-test      plant one fault of each kind in a small tree, expect each found

A header has at most 300 lines, a source 500, a function 70. Tables and golden text may be longer: EXCEPTIONS names
each with its reason. `raft/` and `lease/` have at least 40 assertions per thousand lines of code.
"""

import os
import re
import sys
import tempfile

import checks
import cpp_text

LINES_MAX = {".h": 300, ".cc": 500}
FUNCTION_LINES_MAX = 70
ASSERTIONS_PER_1000_MIN = 40
ASSERTING_ROOMS = ("raft", "lease")
ASSERTION = re.compile(r"\bLEASEHOLD_ASSERT\(")

# What may be longer: a file, or a function as FILE FUNCTION, and why.
EXCEPTIONS = {
    "tests/wire/codec_test.cc TEST(Codec, GoldenBytes)": "the bytes of every kind of message, pinned in one table",
}


class File:
    def __init__(self, tree, path):
        with open(os.path.join(tree, path), encoding="utf-8") as file:
            text = file.read()
        tokens = cpp_text.tokens(text)
        self.path = path
        self.room = path.split("/")[0]
        self.lines = text.count("\n")
        self.code_lines = len({token.line for token in tokens})
        self.comment_lines = sum(line.lstrip().startswith(("//", "/*", "*")) for line in text.splitlines())
        self.assertions = len(ASSERTION.findall(text))
        self.functions = [(f.name, f.last_line - f.first_line + 1, f.first_line)
                          for f in cpp_text.functions(tokens)]


def files(tree):
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(set(folders) - {"build", ".git", ".cache", "__pycache__"})
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), tree)
            if name.endswith((".h", ".cc")) and not os.path.islink(os.path.join(tree, path)):
                yield path


def check(tree):
    found, used = [], set()
    read = [File(tree, path) for path in files(tree)]
    for file in read:
        limit = LINES_MAX[os.path.splitext(file.path)[1]]
        if file.lines > limit:
            used.add(file.path)
            if file.path not in EXCEPTIONS:
                found.append(f"{file.path}: {file.lines} lines, at most {limit}: it has two subjects, split it")
        for name, lines, first in file.functions:
            if lines > FUNCTION_LINES_MAX:
                used.add(f"{file.path} {name}")
                if f"{file.path} {name}" not in EXCEPTIONS:
                    found.append(f"{file.path}:{first}: {name} has {lines} lines, at most {FUNCTION_LINES_MAX}")
    for room in ASSERTING_ROOMS:
        lines = sum(file.code_lines for file in read if file.room == room)
        assertions = sum(file.assertions for file in read if file.room == room)
        if lines and assertions * 1000 < ASSERTIONS_PER_1000_MIN * lines:
            found.append(f"{room}/: {assertions} assertions in {lines} lines of code, "
                         f"{assertions * 1000 // lines} per thousand; at least {ASSERTIONS_PER_1000_MIN}")
    if os.path.realpath(tree) == os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..")):
        found += [f"sizes.py: `{name}` needs no exception any more" for name in EXCEPTIONS if name not in used]
    return found


def table(tree):
    read = [File(tree, path) for path in files(tree)]
    rooms = sorted({file.room for file in read})
    print(f"{'room':10} {'files':>5} {'lines':>6} {'longest file':>12} {'functions':>9} {'longest':>7} "
          f"{'assertions per 1000':>19} {'comments':>8}")
    for room in rooms:
        own = [file for file in read if file.room == room]
        functions = [lines for file in own for _, lines, _ in file.functions]
        code = sum(file.code_lines for file in own)
        comments = sum(file.comment_lines for file in own)
        print(f"{room:10} {len(own):5} {sum(file.lines for file in own):6} {max(file.lines for file in own):12} "
              f"{len(functions):9} {max(functions, default=0):7} "
              f"{sum(file.assertions for file in own) * 1000 / max(code, 1):19.1f} "
              f"{100 * comments / max(code + comments, 1):7.0f}%")
    tests = sum(file.code_lines for file in read if file.room == "tests")
    product = sum(file.code_lines for file in read if file.room not in ("tests", "bench", "examples"))
    print(f"lines of code: {product} of the product, {tests} of its tests: {tests / product:.2f} to 1")


PLANTED = [
    ({"net/a.h": "int x;\n" * 301}, "301 lines"),
    ({"net/a.h": "int x;\n" * 300}, None),
    ({"net/a.cc": "int x;\n" * 501}, "501 lines"),
    ({"net/a.cc": "void A::f() {\n" + "g();\n" * 69 + "}\n"}, "A::f has 71 lines"),
    ({"net/a.cc": "void f() {\n" + "g();\n" * 68 + "}\n"}, None),
    ({"raft/a.cc": "void f() {\n" + "g();\n" * 40 + "LEASEHOLD_ASSERT(x);\n}\n"}, "23 per thousand"),
    ({"raft/a.cc": "void f() {\n" + "g();\n" * 10 + "LEASEHOLD_ASSERT(x);\n}\n"}, None),
    ({"net/a.cc": "void f() {\n" + "g();\n" * 40 + "}\n"}, None),
]


def self_test():
    failures = []
    for planted, expected in PLANTED:
        with tempfile.TemporaryDirectory() as tree:
            for path, text in planted.items():
                os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
                with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found = check(tree)
        if bool(found) != bool(expected) or expected and expected not in found[0]:
            failures.append(f"expected {expected or 'nothing'}, found {found}")
    return len(PLANTED), failures


if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"] and len(sys.argv) == 3:
        sys.exit(table(sys.argv[2]))
    sys.exit(checks.main(sys.argv[1:], __doc__, self_test, check, files))
