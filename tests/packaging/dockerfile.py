"""A Dockerfile as its stages and instructions, and what a .dockerignore leaves out. Whatever is not in the small part
of the language that this project uses is an error, so that docker has nothing to guess at."""

import dataclasses
import json
import pathlib
import re
import shlex

INSTRUCTIONS = ("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN",
                "STOPSIGNAL", "USER", "VOLUME", "WORKDIR")
FLAGS = {"COPY": {"from", "chmod", "chown"}, "HEALTHCHECK": {"interval", "timeout", "start-period", "retries"}}


class Wrong(Exception):
    """The file is not what docker would take, or not what is wanted here."""


@dataclasses.dataclass
class Instruction:
    line: int
    name: str
    flags: dict
    text: str  # what stands behind the flags

    def words(self):
        return shlex.split(self.text)

    def exec_form(self):
        """The words of ["a", "b"]; of a HEALTHCHECK those behind CMD. None: it is in the form for a shell."""
        text = self.text.removeprefix("CMD ") if self.name == "HEALTHCHECK" else self.text
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            return None
        good = isinstance(found, list) and found and all(isinstance(word, str) for word in found)
        return found if good else None


@dataclasses.dataclass
class Stage:
    image: str
    name: str
    instructions: list

    def all(self, name):
        return [instruction for instruction in self.instructions if instruction.name == name]

    def last(self, name):
        found = self.all(name)
        if not found:
            raise Wrong(f"the stage of {self.image} has no {name}")
        return found[-1]


def _lines(text):
    """(number of the first, logical line): comments and the ends of continued lines are gone."""
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        start = start if pending else number
        if line.rstrip().endswith("\\"):
            pending += line.rstrip()[:-1] + " "
        else:
            yield start, re.sub(r"\s+", " ", (pending + line).strip())
            pending = ""
    if pending:
        raise Wrong(f"line {start}: the last line is continued, and there is none behind it")


def _instruction(number, line):
    name, _, rest = line.partition(" ")
    if name not in INSTRUCTIONS:
        raise Wrong(f"line {number}: {name} is no instruction that is used here: {', '.join(INSTRUCTIONS)}")
    flags = {}
    while rest.startswith("--"):
        word, _, rest = rest.partition(" ")
        flag, _, value = word[2:].partition("=")
        if flag not in FLAGS.get(name, ()):
            raise Wrong(f"line {number}: {name} has no flag --{flag}")
        flags[flag] = value
    if not rest:
        raise Wrong(f"line {number}: {name} has nothing behind it")
    return Instruction(number, name, flags, rest)


def parse(text):
    """The stages. Wrong: with the number of the line."""
    stages = []
    for number, line in _lines(text):
        instruction = _instruction(number, line)
        if instruction.name == "FROM":
            match = re.fullmatch(r"(\S+)(?: AS (\w+))?", instruction.text)
            if not match:
                raise Wrong(f"line {number}: FROM {instruction.text}")
            stages.append(Stage(match[1], match[2] or "", []))
        elif not stages:
            raise Wrong(f"line {number}: {instruction.name} stands in front of the first FROM")
        else:
            stages[-1].instructions.append(instruction)
    if not stages:
        raise Wrong("it has no FROM")
    return stages


class Ignored:
    """What a .dockerignore leaves out of the build."""

    def __init__(self, text):
        self._rules = []
        for line in text.splitlines():
            pattern = line.strip()
            if pattern and not pattern.startswith("#"):
                self._rules.append((not pattern.startswith("!"), self._expression(pattern.lstrip("!").strip("/"))))

    @staticmethod
    def _expression(pattern):
        parts = {"**/": r"(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
        # What is in a folder that is left out is left out, too.
        return re.compile("".join(parts.get(piece, re.escape(piece)) for piece in pieces) + r"(?:/.*)?")

    def __contains__(self, path):
        left_out = False
        for leaves_out, expression in self._rules:
            if expression.fullmatch(str(path)):
                left_out = leaves_out
        return left_out


def context_files(tree, ignored):
    """The files under `tree` that docker would be sent, relative to it, in order."""
    tree = pathlib.Path(tree)
    for path in sorted(tree.iterdir()):
        yield from _files_below(tree, path, ignored)


def _files_below(tree, path, ignored):
    name = path.relative_to(tree)
    if name in ignored:
        return
    if path.is_dir() and not path.is_symlink():
        for below in sorted(path.iterdir()):
            yield from _files_below(tree, below, ignored)
    else:
        yield name
