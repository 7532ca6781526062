"""Compiles a variant of the lab's core: the same build, with one mutant of tests/mutants/ in it.

Only what the mutant touches is compiled again. The objects take the places of the originals in copies of the libraries,
so that the linker sees everything else as it was, in the same order.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TREE, "tests", "mutants"))
import edits  # noqa: E402  pylint: disable=wrong-import-position

# The variant without the check of the numbers is no mutant: a file of the lab takes the place of the check.
UNCHECKED = {"lease/timing_check.cc": os.path.join("lab", "unchecked.cc")}
WASM = re.compile(r'''["']data:application/octet-stream;base64,([A-Za-z0-9+/=]+)["']''')


class VariantError(Exception):
    pass


def run(command, folder, **environment):
    done = subprocess.run(command, cwd=folder, text=True, errors="replace", capture_output=True, check=False,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        raise VariantError(f"{shlex.join(command)[:300]} ended with {done.returncode}:\n"
                           f"{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def edits_of(name):
    """The edits of a mutant, from its file."""
    with open(os.path.join(TREE, "tests", "mutants", name + ".mutant"), encoding="utf-8") as file:
        return edits.parse(file.read().partition("\n\n")[2].splitlines())


def mutated(name):
    """{path: text} of the files that a mutant changes, or that are others where nothing is checked."""
    texts = {}
    if name == "unchecked":
        for path, other in UNCHECKED.items():
            with open(os.path.join(TREE, other), encoding="utf-8") as file:
                texts[path] = file.read()
        return texts
    try:
        for path, of_file in edits.by_file(edits_of(name)).items():
            with open(os.path.join(TREE, path), encoding="utf-8") as file:
                texts[path] = edits.replaced(path, file.read(), of_file)
    except (OSError, edits.EditError) as error:
        raise VariantError(f"{name}: {error}") from error
    return texts


class Build:
    """A finished build of the lab's core, as its ninja describes it."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        with open(os.path.join(self.folder, "compile_commands.json"), encoding="utf-8") as file:
            self.compiles = [(one["file"], shlex.split(one["command"])) for one in json.load(file)]
        last = run(["ninja", "-t", "commands", "lease_lab"], self.folder).strip().split("\n")[-1]
        words = shlex.split(last.removeprefix(": && ").removesuffix(" && :"))
        self.link = words
        self.libraries = [word for word in words if word.endswith(".a")]
        self.dependents = {}
        self._read_dependents()

    def _read_dependents(self):
        """By header: the objects that have been compiled with it."""
        target = None
        for line in run(["ninja", "-t", "deps"], self.folder).split("\n"):
            if line[:4] != "    ":
                target = line.partition(":")[0]
                continue
            found = re.search(r"(?:^|/)include/leasehold/(\S+)$", line.strip())
            if found:
                self.dependents.setdefault(found.group(1), set()).add(target)

    def _sources(self, source):
        """What a file of the build compiles: itself, or the sources of a batch."""
        with open(source, encoding="utf-8") as file:
            return re.findall(r'^#include "(/[^"]+\.cc)"', file.read(), flags=re.MULTILINE) or [source]

    def touched(self, paths):
        """(file, command, object) of each that has to be compiled again for these changed paths."""
        headers = set().union(*(self.dependents.get(path, set()) for path in paths if path.endswith(".h")))
        whole = {os.path.join(TREE, path) for path in paths if path.endswith(".cc")}
        for source, command in self.compiles:
            target = command[command.index("-o") + 1]
            if target in headers or whole & set(self._sources(source)):
                yield source, command, target

    def core(self):
        return os.path.join(self.folder, self.link[self.link.index("-o") + 1])

    def variant(self, name):
        """Builds it. Returns its file of JavaScript, with the WebAssembly inside."""
        place = os.path.join(self.folder, "museum", name)
        shutil.rmtree(place, ignore_errors=True)
        texts = mutated(name)
        for path, text in texts.items():
            target = os.path.join(place, "leasehold", path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
        instead = {}  # of words of the linker's command
        for source, command, target in self.touched(texts):
            library = self._library_of(target)
            if library is None and target not in self.link:
                continue  # a part of another program
            self._compile(place, texts, source, command, target)
            made = os.path.join(place, os.path.basename(target))
            if library is None:
                instead[target] = made
                continue
            if library not in instead:
                instead[library] = os.path.join(place, os.path.basename(library))
                shutil.copy(os.path.join(self.folder, library), instead[library])
            run(["emar", "r", instead[library], made], self.folder)
        if not instead:
            raise VariantError(f"{name}: nothing of the lab is compiled from {', '.join(texts)}")
        words = [instead.get(word, word) for word in self.link]
        words[words.index("-o") + 1] = os.path.join(place, "core.js")
        run(words, self.folder)
        return os.path.join(place, "core.js")

    def _compile(self, place, texts, source, command, target):
        with open(source, encoding="utf-8") as file:
            text = file.read()
        for path in texts:
            text = text.replace(f'"{TREE}/{path}"', f'"{place}/leasehold/{path}"')
        changed = os.path.join(place, os.path.basename(source))
        if changed.endswith(".cxx"):  # a batch
            with open(changed, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            changed = next((f"{place}/leasehold/{path}" for path in texts if source == f"{TREE}/{path}"), source)
        words = [changed if word == source else word for word in command]
        words[words.index("-o") + 1] = os.path.join(place, os.path.basename(target))
        # A mutant may leave a name unused; and what the program says must name the same files.
        words[1:1] = [f"-I{place}", "-w", f"-fmacro-prefix-map={place}/leasehold={TREE}"]
        if shutil.which("ccache"):
            words.insert(0, "ccache")
        run(words, self.folder, CCACHE_BASEDIR=TREE, CCACHE_NOHASHDIR="1")

    def _library_of(self, target):
        folder = target.partition("CMakeFiles/")[2].partition(".dir/")[0]
        return next((one for one in self.libraries if os.path.basename(one) == f"lib{folder}.a"), None)
