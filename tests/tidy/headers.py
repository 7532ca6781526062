#!/usr/bin/env python3
"""Keeps the list of installed headers (cmake/public_headers.txt) true and closed.

  headers.py TREE           check the tree; one line per finding, status 1 if there is any
  headers.py --self-test    plant one fault of each kind in a small tree, expect each found

Every header of the library's rooms stands in one section. A public header includes headers of the
standard library and public headers of its own component or one below; and what it includes with
quotes would not be found once it is installed.
"""

import os
import re
import sys
import tempfile

LIST = "cmake/public_headers.txt"
ROOMS = ("base", "lease", "raft", "grant", "placement", "wire", "tls", "net", "storage", "replica", "node", "kv",
         "client", "c", "adapters")
COMPONENTS = ("c", "core", "node", "kv", "client", "local")  # each may use those before it, but for c
# For hosts that have asio.
ASIO = "adapters/asio.h"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def sections(tree):
    """The list as header -> section, and its faults."""
    found, faults, section = {}, [], None
    with open(os.path.join(tree, LIST), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            if line.startswith("["):
                section = line.strip("[]")
                if section not in COMPONENTS + ("private",):
                    faults.append(f"{LIST}:{number}: no such section: {section}")
            elif line in found:
                faults.append(f"{LIST}:{number}: {line} is listed twice")
            else:
                found[line] = section
    return found, faults


def check(tree):
    found, faults = sections(tree)
    present = {os.path.relpath(os.path.join(folder, name), tree) for room in ROOMS
               for folder, _, names in os.walk(os.path.join(tree, room))
               for name in names if name.endswith(".h")}
    for header in sorted(present - set(found)):
        faults.append(f"{header}: in no section of {LIST}; is it for users, or private?")
    for header in sorted(set(found) - present):
        faults.append(f"{LIST}: {header} does not exist")
    for header in sorted(present & set(found)):
        if found[header] == "private":
            continue
        with open(os.path.join(tree, header), encoding="utf-8") as file:
            text = file.read()
        for quote, included in INCLUDE.findall(text):
            fault = check_include(found, header, quote, included)
            if fault:
                faults.append(f"{header}: includes {included}: {fault}")
    return faults


def check_include(found, header, quote, included):
    if quote == '"':
        return "with quotes; spell it <leasehold/room/file.h>"
    if not included.startswith("leasehold/"):
        if header == ASIO and included.startswith("asio/"):
            return None
        plain = re.fullmatch(r"std(def|int)\.h" if found[header] == "c" else r"[a-z_0-9]+", included)
        return None if plain else "a public header shows only the standard library's types and ours"
    section = found.get(included[len("leasehold/"):])
    if section in (None, "private"):
        return "is not installed"
    if COMPONENTS.index(section) > COMPONENTS.index(found[header]):
        return f"belongs to the component {section}, above {found[header]}"
    return None


def self_test():
    good = {"cmake/public_headers.txt": "[core]\nbase/a.h\n[node]\nnode/b.h\n[private]\nnet/c.h\n",
            "base/a.h": "#include <vector>\n",
            "node/b.h": "#include <leasehold/base/a.h>\n#include <string>\n",
            "net/c.h": "#include <asio.hpp>\n"}
    listing = good["cmake/public_headers.txt"]
    cases = [("", {}),
             ("in no section", {"raft/new.h": ""}),
             ("does not exist", {"cmake/public_headers.txt": listing + "net/gone.h\n"}),
             ("listed twice", {"cmake/public_headers.txt": listing + "base/a.h\n"}),
             ("no such section", {"cmake/public_headers.txt": listing + "[program]\n"}),
             ("only the standard library", {"node/b.h": "#include <asio.hpp>\n"}),
             ("only the standard library", {"node/b.h": "#include <rocksdb/db.h>\n"}),
             ("is not installed", {"node/b.h": "#include <leasehold/net/c.h>\n"}),
             ("above core", {"base/a.h": "#include <leasehold/node/b.h>\n"}),
             ("only the standard library", {"cmake/public_headers.txt": "[c]\nc/d.h\n" + listing,
                                            "c/d.h": "#include <string>\n"}),
             ("", {"cmake/public_headers.txt": "[c]\nc/d.h\n" + listing, "c/d.h": "#include <stdint.h>\n"}),
             ("with quotes", {"node/b.h": '#include "c.h"\n'})]
    failed = 0
    for expected, changes in cases:
        with tempfile.TemporaryDirectory() as tree:
            for path, text in {**good, **changes}.items():
                os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
                with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                    file.write(text)
            faults = check(tree)
        if expected and not any(expected in fault for fault in faults) or not expected and faults:
            print(f"expected {expected or 'nothing'!r}, found {faults}")
            failed += 1
    return 1 if failed else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    faults = check(arguments[0])
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
