#!/usr/bin/env python3
"""Each source includes, itself or by its headers, the header of every name of ours that it uses. A build in batches
does not notice what is missing: another file of the batch may include it.

  includes.py TREE
  includes.py --self-test

Looks at names that exactly one header declares in a namespace. A compiler sees more, but takes minutes.
"""

import os
import re
import sys
import tempfile

import checks

ROOMS = ("adapters", "base", "bench", "c", "check", "cli", "client", "doctor", "explore", "grant", "kv", "lab",
         "lease", "net", "node", "placement", "raft", "replica", "server", "sim", "storage", "story", "tls", "wire")
INCLUDE = re.compile(r'^#include <leasehold/([^>]+)>', re.MULTILINE)
QUOTED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|^#[^\n]*', re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"^(?:class|struct|enum class) (\w+)(?: final)?(?: : [^;{]*)? \{", re.MULTILINE)
ALIAS = re.compile(r"^using (\w+) =", re.MULTILINE)
FUNCTION = re.compile(r"^(?!return|using|namespace|template|friend|else|class|struct|enum)"
                      r"[\w:]+(?:<[^;{}()]*>)?[\w:<>,&* ]*[ &*](\w+)\(", re.MULTILINE)
# What a source declares itself, in a class or a function, too.
OWN_NAME = re.compile(r"\b(?:auto|enum class|class|struct|enum|typename|using)[&*]? (\w+)")
OWN_FUNCTION = re.compile(r"^(?! *(?:return|else|throw) ).*?[\w>][&*]? [&*]?(\w+)\(", re.MULTILINE)
WORD = re.compile(r"\w+")
# A call or a type, but no member, and none of another library.
USE = re.compile(r"(?<![\w.>:])(?!(?:absl|asio|fmt|httplib|nlohmann|rocksdb|std|toml)::)(?:\w+::)*(\w+)\b(\()?")


def sources(tree):
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(tree, room)):
            for name in sorted(names):
                if name.endswith((".h", ".cc")):
                    yield os.path.relpath(os.path.join(folder, name), tree)


class Tree:
    def __init__(self, tree):
        self.code, self.included = {}, {}
        for path in sources(tree):
            with open(os.path.join(tree, path), encoding="utf-8") as file:
                text = file.read()
            beside = [os.path.join(os.path.dirname(path), name) for name in QUOTED.findall(text)]
            self.included[path] = INCLUDE.findall(text) + beside
            self.code[path] = NOT_CODE.sub(lambda match: '""' if match[0][0] in 'R"' else "", text)
        self.types, self.functions = {}, {}
        for path, code in self.code.items():
            if path.endswith(".h"):
                for name in TYPE.findall(code) + ALIAS.findall(code):
                    self.types.setdefault(name, set()).add(path)
                for name in FUNCTION.findall(code):
                    self.functions.setdefault(name, set()).add(path)

    def closure(self, path):
        """All that `path` includes of ours, itself too."""
        seen, rest = set(), [path]
        while rest:
            at = rest.pop()
            if at in seen or at not in self.code:
                continue
            seen.add(at)
            rest += self.included[at]
        return seen

    def missing(self, path):
        """(name, header) of what `path` uses and does not include."""
        seen = self.closure(path)
        known = set()
        for at in seen - {path}:
            known.update(WORD.findall(self.code[at]))
        code = self.code[path]
        own = set(OWN_NAME.findall(code)) | set(OWN_FUNCTION.findall(code))
        for name, called in sorted(set(USE.findall(code))):
            where = self.functions.get(name) if called else self.types.get(name)
            if where and len(where) == 1 and not where & seen and name not in known and name not in own:
                yield name, *where


def check(tree):
    ours = Tree(tree)
    return [f"{path}: uses {name} without <leasehold/{header}>" for path in ours.code if path.endswith(".cc")
            for name, header in ours.missing(path)]


def self_test():
    good = {"base/a.h": "namespace l {\nstruct A {\n};\nint made(int n);\n}\n",
            "base/b.h": "#include <leasehold/base/a.h>\n",
            "base/c.cc": "#include <leasehold/base/b.h>\nint f() { A a; return made(1); }\n",
            "base/d.cc": "// A made(1)\nint made(int n) {\n  return n;\n}\n"
                         "int g() { return made(2) + x.A + y.made(3); }\n"}
    cases = [(0, {}),
             (1, {"base/e.cc": "int f() { return made(1); }\n"}),
             (1, {"base/e.cc": "int f() { return l::made(1); }\n"}),
             (1, {"base/e.cc": "void f() { A a; }\n"}),
             (0, {"base/e.cc": '#include "a.h"\nvoid f() { A a; }\n'}),
             (0, {"base/e.cc": "void f() { const auto made = [] {}; made(); }\n"}),
             (0, {"base/e.cc": 'void f() { use("A made(1)"); fmt::made(1); ::made(1); }\n'}),
             (0, {"base/e.cc": "int f() { return made(1); }\n", "lease/a.h": "int made(int n);\n"})]
    wrong = []
    for expected, more in cases:
        with tempfile.TemporaryDirectory() as tree:
            for path, text in {**good, **more}.items():
                os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
                with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found = check(tree)
        if len(found) != expected:
            wrong.append(f"expected {expected} findings in {more}, found {found}")
    return len(cases), wrong


if __name__ == "__main__":
    sys.exit(checks.main(sys.argv[1:], __doc__, self_test, check, sources))
