#!/usr/bin/env python3
"""Writes the pieces of the museum for the lab's page: what museum.toml says, what docs/hazards.md says of the bug, and
what makes the core of the page the variant with the bug.

  pieces.py BUILD_FOLDER PIECES.js [MUTANT...]     all pieces, or these
  pieces.py BUILD_FOLDER PIECES.js --every N       the first one, and every Nth behind it

A variant is compiled again only if its mutant, a file that the mutant changes, or the core has changed.
"""

import base64
import concurrent.futures
import fcntl
import hashlib
import json
import os
import re
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import difference  # noqa: E402  pylint: disable=wrong-import-position
import variant  # noqa: E402  pylint: disable=wrong-import-position

TREE = variant.TREE
FIELDS = {"mutant": str, "title": str, "link": str, "until": int, "oracle": str, "closes": str, "shows": str}
OPTIONAL = {"seen": str, "challenge": int}


class MuseumError(Exception):
    pass


def hazards():
    """{mutant: (number, what went wrong, what prevents it here)}, of docs/hazards.md."""
    found = {}
    with open(os.path.join(TREE, "docs", "hazards.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if re.fullmatch(r"H\d+", cells[0]) and len(cells) == 5:
                for mutant in re.findall(r"`(\w+)`", cells[4]):
                    found.setdefault(mutant, tuple(cells[:3]))
    return found


def read_pieces(path=os.path.join(HERE, "museum.toml")):
    """The pieces, checked, each with its row of docs/hazards.md."""
    with open(path, "rb") as file:
        try:
            pieces = tomllib.load(file)["piece"]
        except (tomllib.TOMLDecodeError, KeyError) as error:
            raise MuseumError(f"{path}: {error}") from error
    rows = hazards()
    for piece in pieces:
        name = piece.get("mutant")
        for field, kind in FIELDS.items():
            if not isinstance(piece.get(field), kind):
                raise MuseumError(f"{path}: the piece {name} lacks `{field}`")
        unknown = set(piece) - set(FIELDS) - set(OPTIONAL)
        if unknown:
            raise MuseumError(f"{path}: the piece {name} has `{min(unknown)}`, which nothing reads")
        if name not in rows:
            raise MuseumError(f"{path}: docs/hazards.md does not name the mutant {name}")
        piece["hazard"], piece["wrong"], piece["here"] = rows[name]
    if len({piece["mutant"] for piece in pieces}) != len(pieces):
        raise MuseumError(f"{path}: a mutant has two pieces")
    return pieces


def wasm_of(path):
    """(what stands around it, the WebAssembly) of a file of JavaScript."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = variant.WASM.findall(text)
    if len(found) != 1:
        raise MuseumError(f"{path} holds {len(found)} modules")
    return variant.WASM.sub("", text), base64.b64decode(found[0])


class Museum:
    def __init__(self, folder):
        self.build = variant.Build(folder)
        self.around, self.core = wasm_of(self.build.core())
        self._places = None
        self.place = os.path.join(self.build.folder, "museum")
        os.makedirs(self.place, exist_ok=True)
        # Two that build in one folder would link each other's objects.
        self._lock = os.open(os.path.join(self.place, "lock"), os.O_CREAT | os.O_RDWR)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def stamp(self, name):
        digest = hashlib.sha256(self.core)
        for _, text in sorted(variant.mutated(name).items()):
            digest.update(text.encode())
        return digest.hexdigest()

    def difference(self, name):
        """Of the variant from the core; and whether it had to be compiled."""
        kept = os.path.join(self.place, name + ".difference")
        stamp = self.stamp(name).encode()
        if os.path.exists(kept):
            with open(kept, "rb") as file:
                if file.readline().strip() == stamp:
                    return file.read(), False
        around, wasm = wasm_of(self.build.variant(name))
        if around != self.around:
            raise MuseumError(f"{name}: its JavaScript is not that of the core")
        if self._places is None:
            self._places = difference.places_in(self.core)
        patch = difference.difference(self.core, wasm, self._places)
        if wasm == self.core or difference.applied(self.core, patch) != wasm:
            raise MuseumError(f"{name}: the variant is the core, or cannot be made from it")
        with open(kept, "wb") as file:
            file.write(stamp + b"\n" + patch)
        return patch, True


def chosen(pieces, wanted):
    """Those of `pieces` that the words of the command line name."""
    if wanted[:1] == ["--every"]:
        if len(wanted) != 2 or not re.fullmatch(r"[1-9]\d?", wanted[1]):
            raise MuseumError("--every takes a number from 1 to 99")
        return pieces[::int(wanted[1])]
    unknown = set(wanted) - {piece["mutant"] for piece in pieces}
    if unknown:
        raise MuseumError(f"no piece has the mutant {min(unknown)}")
    return [piece for piece in pieces if not wanted or piece["mutant"] in wanted]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, out, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    pieces = chosen(read_pieces(), wanted)
    museum = Museum(folder)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as workers:
        works = [workers.submit(museum.difference, piece["mutant"]) for piece in pieces]
        for number, (piece, work) in enumerate(zip(pieces, works), 1):
            patch, compiled = work.result()
            piece["difference"] = base64.b64encode(patch).decode()
            if compiled:
                print(f"[{number}/{len(pieces)}] museum: {piece['mutant']}, {len(patch)} bytes", flush=True)
    text = json.dumps(pieces, ensure_ascii=False, indent=0).replace("</", "<\\/")
    with open(out, "w", encoding="utf-8") as file:
        file.write(f"LeaseLab.museum = {text};\n")
    print(f"{os.path.basename(out)}: {len(pieces)} pieces, {len(text.encode())} bytes")


if __name__ == "__main__":
    try:
        main()
    except (MuseumError, variant.VariantError) as error:
        sys.exit(f"pieces.py: {error}")
