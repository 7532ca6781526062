"""What a mutant changes: exact text, found by its C++ tokens and without its neighbours.

    @ raft/core_lease.cc Core::Impl::renew_promise
    - std::max(options_.timing.lease, carried)
    + options_.timing.lease

`@ FILE [FUNCTION]` says where, `-` lines what is there, `+` lines what takes its place (none: nothing does). A line
without anything ends an edit, so that the next `-` begins another. White space and comments do not count. What is to
be found has to be there once: in the file, or in the functions of that name together. All edits are found in the
text as it was.
"""

import functools
import os
import re
import sys
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tidy"))
import cpp_text  # noqa: E402  pylint: disable=wrong-import-position

CPP = (".h", ".cc")


class EditError(Exception):
    pass


class Edit(NamedTuple):
    path: str
    function: str  # or ""
    old: str
    new: str


def parse(lines):
    """The edits of a mutant, from the lines behind its header."""
    edits = []
    where, old, new = None, [], []

    def end():
        if new and not old:
            raise EditError(f"`+ {new[0]}` has no `-` lines before it that say what it replaces")
        if old:
            edits.append(Edit(*where, "\n".join(old), "\n".join(new)))
        old.clear()
        new.clear()

    for line in lines:
        mark, text = line[:1], line[2:]
        if line[1:2] not in ("", " ") or mark not in ("", "@", "-", "+"):
            raise EditError(f"`{line}` begins with none of `@ `, `- `, `+ `")
        if mark in ("", "@") or (mark == "-" and new):
            end()
        if mark == "@":
            path, _, function = text.strip().partition(" ")
            where = (path, function)
        elif mark and where is None:
            raise EditError(f"`{line}` stands before the first `@ FILE`")
        elif mark:
            (old if mark == "-" else new).append(text)
    end()
    if not edits:
        raise EditError("it changes nothing")
    return edits


class Source:
    """A file as it is searched. What is not C++ is compared by its words."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.tokens = self.read(text)
        self.words = [token.text for token in self.tokens]
        self.found = None

    def read(self, text):
        if self.path.endswith(CPP):
            return cpp_text.tokens(text)
        return [cpp_text.Token(word.group(), word.start(), word.end(), 0, False)
                for word in re.finditer(r"\S+", text)]

    def functions(self):
        if self.found is None:
            try:
                self.found = cpp_text.functions(self.tokens) if self.path.endswith(CPP) else []
            except ValueError as error:
                raise EditError(f"{self.path}: {error}") from error
        return self.found

    def ranges(self, function):
        """Where to look: (first token, behind the last) of each."""
        if not function:
            return [(0, len(self.words))]
        named = cpp_text.named(self.functions(), function)
        if not named:
            raise EditError(f"{self.path} has no function {function}")
        return [(one.begin, one.end) for one in named]

    def places(self, function, wanted):
        """The first tokens of where the words `wanted` are."""
        return [at for begin, end in self.ranges(function) for at in range(begin, end - len(wanted) + 1)
                if self.words[at] == wanted[0] and self.words[at:at + len(wanted)] == wanted]

    def place(self, edit):
        """(first token, behind the last) of what the edit replaces."""
        wanted = [token.text for token in self.read(edit.old)]
        if not wanted:
            raise EditError(f"{self.path}: the `-` lines hold no code")
        places = self.places(edit.function, wanted)
        if len(places) != 1:
            where = f"{edit.function} of {self.path}" if edit.function else self.path
            raise EditError((f"found {len(places)} times" if places else "not found") + f" in {where}:\n{edit.old}")
        return places[0], places[0] + len(wanted)


@functools.lru_cache(maxsize=None)
def searched(path, text):
    """Many mutants change one file."""
    return Source(path, text)


def replaced(path, text, edits):
    """The text of a file after its edits."""
    source = searched(path, text)
    spans = sorted((*source.place(edit), edit) for edit in edits)
    for one, other in zip(spans, spans[1:]):
        if one[1] > other[0]:
            raise EditError(f"{path}: two edits overlap:\n{one[2].old}\n{other[2].old}")
    parts, at = [], 0
    for first, behind, edit in spans:
        parts += [text[at:source.tokens[first].begin], edit.new]
        at = source.tokens[behind - 1].end
    parts.append(text[at:])
    check_joints(source, spans)
    return joined(parts)


def joined(parts):
    """With a space where two tokens would become one."""
    result = parts[0]
    for part in parts[1:]:
        result += (" " if re.match(r"\w\w|[^\w\s]{2}", result[-1:] + part[:1]) else "") + part
    return result


def check_joints(source, spans):
    """Behind an edit all tokens are those that it names and those that were there: a replacement may run into the code
    next to it, as a comment does. Only what is next to it can tell."""
    for first, behind, edit in spans:
        begin, end = max(first - 2, 0), min(behind + 2, len(source.tokens))
        before = source.text[source.tokens[begin].begin:source.tokens[first].begin]
        after = source.text[source.tokens[behind - 1].end:source.tokens[end - 1].end]
        words = source.words[begin:first] + [token.text for token in source.read(edit.new)] + source.words[behind:end]
        if [token.text for token in source.read(joined([before, edit.new, after]))] != words:
            raise EditError(f"{source.path}: the replacement runs into the code next to it")


def by_file(edits):
    paths = {}
    for edit in edits:
        paths.setdefault(edit.path, []).append(edit)
    return paths


def apply(edits, tree, *, write):
    for path, of_file in by_file(edits).items():
        place = os.path.join(tree, path)
        if not os.path.isfile(place):
            raise EditError(f"there is no file {path}")
        with open(place, encoding="utf-8") as file:
            text = file.read()
        result = replaced(path, text, of_file)
        if write:
            with open(place, "w", encoding="utf-8") as file:
                file.write(result)


# ---- The mutants follow the tree ----


def moved(text, old, new):
    """The text of a mutant after a file, or a folder, moved."""
    old, new = old.rstrip("/"), new.rstrip("/")
    return re.sub(rf"^(@ ){re.escape(old)}(?=[/ \n])", lambda match: match.group(1) + new, text, flags=re.MULTILINE)


def renamed(text, old, new):
    """The text of a mutant after an identifier, or a qualified one, got another name. Literals stay."""
    wanted = [token.text for token in cpp_text.tokens(old)]

    def line_renamed(match):
        head, code = match.groups()
        found = cpp_text.tokens(code)
        words = [token.text for token in found]
        for at in range(len(found) - len(wanted), -1, -1):
            if words[at:at + len(wanted)] == wanted:
                code = code[:found[at].begin] + new + code[found[at + len(wanted) - 1].end:]
        return head + code

    return re.sub(r"^(@ \S+ |[-+] )(.*)$", line_renamed, text, flags=re.MULTILINE)


# ---- The self-test ----

TEXT = """// f(1);
int A::f(int a) {
  g(a, 1);
  return a +  // more
         1;
}
int A::f() { return 1; }
int B::f() { return 1; }
"""
# The lines of a mutant, and what is expected: a part of the text that results (white space folded), or of the fault.
TRIED = [
    (["@ a.cc A::f", "- return a + 1;", "+ return a;"], "g(a, 1); return a; } int A::f()"),
    (["@ a.cc", "-     g(a,", "-       1)", "+ h()"], "{ h() ; return"),
    (["@ a.cc B::f", "- return 1;"], "int B::f() { }"),
    (["@ a.cc B::f", "- return 1;", "", "- B", "+ C"], "int C::f() { }"),
    (["@ a.cc B::f", "- 1", "+ 2  // two"], "runs into"),
    (["@ a.cc f", "- g(a, 1);", "+ a;", "@ a.cc B::f", "- 1", "+ 3"], "return 3;"),
    (["@ a.cc A::f", "- return 1;", "+ return 2;"], "A::f() { return 2; }"),
    (["@ a.cc f", "- return 1;", "+ return 2;"], "found 2 times in f of a.cc"),
    (["@ a.cc", "- a b"], "not found in a.cc"),
    (["@ a.cc A::g", "- 1"], "no function A::g"),
    (["@ b.cc", "- 1"], "no file b.cc"),
    (["@ a.cc A::f", "- return 1;", "", "- { return 1"], "overlap"),
    (["- 1"], "before the first"),
    (["@ a.cc", "+ 1"], "no `-` lines"),
    (["@ a.cc", "* 1"], "begins with none of"),
    (["@ a.cc"], "changes nothing"),
    (["@ a.cc", "- // more"], "no code"),
    (["@ a.cc B::f", "- { return", "+ { // return"], "runs into"),
    (["@ a.txt", "- two  three", "+ 2 3"], "one 2 3 four"),
]


def self_test():
    failures = []
    for lines, wanted in TRIED:
        try:
            edits = parse(lines)
            result = ""
            for path, of_file in by_file(edits).items():
                if path == "b.cc":
                    apply(edits, os.path.join(HERE, "none"), write=False)
                result += replaced(path, TEXT if path == "a.cc" else "one\ntwo\nthree four\n", of_file)
        except EditError as error:
            result = str(error)
        if wanted not in " ".join(result.split()):
            failures.append(f"{lines}: expected {wanted}, found {result}")
    text = "Rule: f in a.cc\n\n@ a/b.cc A::f\n- f(ff, \"f\", B::f)\n@ a/b.ccc\n+ f\n"
    for result, wanted in [
            (moved(text, "a/b.cc", "c.cc"), text.replace("@ a/b.cc A", "@ c.cc A")),
            (moved(text, "a/", "c/d"), text.replace("@ a/", "@ c/d/")),
            (renamed(text, "f", "g"), "Rule: f in a.cc\n\n@ a/b.cc A::g\n- g(ff, \"f\", B::g)\n@ a/b.ccc\n+ g\n"),
            (renamed(text, "B::f", "g"), text.replace("B::f", "g"))]:
        if result != wanted:
            failures.append(f"expected {wanted}, found {result}")
    return failures
