#!/usr/bin/env python3
"""Puts the lab's page together: one HTML file, which needs no network.

  assemble.py CORE.js PAGE.html [PIECES.js...]

CORE.js is what emscripten made: the WebAssembly is inside it. PIECES.js are what museum/unchecked.py made, without
which no inequality can be broken, and museum/pieces.py, without which the page has no museum. The other parts stand in
page/ beside this program: index.html names each where it belongs, by `<!-- include NAME -->`.
"""

import json
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
STORIES = os.path.join(os.path.dirname(PAGE), os.pardir, "docs", "scenarios")
# A page that grows past it is slow to open from a slow disk, and slow to send.
BYTES_MAX = 3_000_000
INCLUDE = re.compile(r"<!-- include (\S+) -->")
# The WebAssembly, in the form in which emscripten has it. The museum makes its variants from it.
MODULE = re.compile(r'''["']data:application/octet-stream;base64,[A-Za-z0-9+/=]+["']''')


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def stories():
    """The scenario files of the docs, as JSON that stands in an element."""
    names = sorted(name for name in os.listdir(STORIES) if name.endswith(".scenario"))
    texts = {name.rsplit(".", 1)[0]: read(os.path.join(STORIES, name)) for name in names}
    return json.dumps(texts, ensure_ascii=False).replace("<", "\\u003c")


def read_core(path):
    text = read(path)
    modules = MODULE.findall(text)
    if len(modules) != 1:
        sys.exit(f"assemble.py: {path} holds {len(modules)} modules")
    return f"const leaseLabCore = {modules[0]};\n" + text.replace(modules[0], "leaseLabCore")


def part(name, core, pieces):
    if name == "core":
        text = read_core(core)
    elif name == "stories":
        text = stories()
    elif name == "pieces":
        text = "".join(read(path) for path in pieces)
    else:
        text = read(os.path.join(PAGE, name))
    # It would end the element that the text stands in.
    if "</script" in text or "</style" in text:
        sys.exit(f"assemble.py: {name} has an end tag in it")
    return text


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    core, page, pieces = sys.argv[1], sys.argv[2], sys.argv[3:]
    text = INCLUDE.sub(lambda found: part(found.group(1), core, pieces), read(os.path.join(PAGE, "index.html")))
    size = len(text.encode())
    if size > BYTES_MAX:
        sys.exit(f"assemble.py: the page has {size} bytes, more than {BYTES_MAX}")
    with open(page, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{os.path.basename(page)}: {size} bytes")


if __name__ == "__main__":
    main()
