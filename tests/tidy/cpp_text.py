#!/usr/bin/env python3
"""C++ as tokens, and where its functions begin and end: enough for checks of the tree, no compiler.

  cpp_text.py TREE          reads every C++ file of the tree; one line per file that it cannot read
  cpp_text.py --self-test   reads small texts and compares
  cpp_text.py --list FILE   its functions: first line, last line, name
"""

import os
import re
import sys
from typing import NamedTuple

import checks


class Token(NamedTuple):
    text: str
    begin: int
    end: int
    line: int
    directive: bool  # part of a line of the preprocessor


class Function(NamedTuple):
    name: str  # with its classes, without namespaces: `Core::settle_lease`
    begin: int  # its first token, a `template` or the type
    end: int  # behind its last token
    first_line: int
    last_line: int


TOKEN = re.compile(r"""
    (?P<space>\s+|\\\r?\n)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<code>
        (?:u8|u|U|L)?R"(?P<mark>[^()\s\\"]{0,16})\(.*?\)(?P=mark)"
      | (?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*"
      | (?:u8|u|U|L)?'(?:[^'\\\n]|\\.)+'
      | \.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*
      | [A-Za-z_]\w*
      | <=>|<<=|->\*|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#
      | .
    )""", re.VERBOSE | re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")
NO_NAME_OF_A_FUNCTION = {"alignas", "decltype", "noexcept", "explicit", "requires", "throw", "__attribute__"}
BEHIND_PARAMETERS = {"const", "noexcept", "override", "final", "mutable", "volatile", "requires", "throw", "try"}
CLOSES = {"(": ")", "[": "]", "{": "}"}


def tokens(text):
    """The tokens of C++, without comments. String literals side by side are one."""
    found = []
    line, counted = 1, 0
    directive_ends = -1
    for match in TOKEN.finditer(text):
        if match.lastgroup not in ("code", "mark"):
            continue
        begin, end = match.start("code"), match.end("code")
        word = match.group("code")
        line += text.count("\n", counted, begin)
        counted = begin
        if word == "#" and begin > directive_ends and not text[text.rfind("\n", 0, begin) + 1:begin].strip():
            directive_ends = end_of_directive(text, begin)
        token = Token(word, begin, end, line, begin < directive_ends)
        last = found[-1] if found else None
        if word[0] == '"' and last and last.text[0] == '"' and last.directive == token.directive:
            found[-1] = last._replace(text=last.text[:-1] + word[1:], end=end)
        else:
            found.append(token)
    return found


def end_of_directive(text, begin):
    while True:
        end = text.find("\n", begin)
        if end < 0:
            return len(text)
        if not text[begin:end].rstrip("\r").endswith("\\"):
            return end
        begin = end + 1


def functions(all_tokens):
    """Every Function that is defined, in order. A lambda or a class in a function is part of it."""
    return _Reader(all_tokens).functions()


class _Reader:
    def __init__(self, all_tokens):
        # What the preprocessor reads is no part of a function's shape.
        self.place = [at for at, token in enumerate(all_tokens) if not token.directive]
        self.tokens = [all_tokens[at] for at in self.place]
        self.words = [token.text for token in self.tokens]
        self.close = {}
        self.found = []
        opened = []
        for at, word in enumerate(self.words):
            if word in CLOSES:
                opened.append(at)
            elif word in CLOSES.values():
                if not opened or CLOSES[self.words[opened[-1]]] != word:
                    raise ValueError(f"line {self.tokens[at].line}: `{word}` closes nothing")
                self.close[opened.pop()] = at
        if opened:
            raise ValueError(f"line {self.tokens[opened[-1]].line}: `{self.words[opened[-1]]}` is never closed")

    def functions(self):
        self.scan(0, len(self.words), [])
        return self.found

    def scan(self, at, end, scope):
        head = at
        while at < end:
            word = self.words[at]
            if word == ";" or (word == ":" and self.words[head] in ("public", "private", "protected")):
                head = at + 1
            elif word in ("(", "["):
                at = self.close[at]
            elif word == "{":
                closed = self.close[at]
                kind, name = self.kind(head, at)
                if kind == "scope":
                    self.scan(at + 1, closed, scope + ([name] if name else []))
                    head = closed + 1
                elif kind == "function":
                    self.found.append(Function("::".join(scope + [name]), self.place[head], self.place[closed] + 1,
                                               self.tokens[head].line, self.tokens[closed].line))
                    head = closed + 1
                at = closed
            at += 1

    def angle_end(self, at, end):
        """The `>` of the `<` at `at`, or None: it is a comparison."""
        depth = 0
        while at < end:
            if self.words[at] == "<":
                depth += 1
            elif self.words[at] == ">":
                depth -= 1
                if depth == 0:
                    return at
            elif self.words[at] in ("(", "[", "{"):
                at = self.close[at]
            at += 1
        return None

    def top(self, begin, end):
        """The tokens outside every bracket, opening ones included."""
        at = begin
        while at < end:
            word = self.words[at]
            if word == "<" and at > begin and WORD.match(self.words[at - 1]) and self.words[at - 1] != "operator":
                closed = self.angle_end(at, end)
                if closed is not None:
                    at = closed + 1
                    continue
            yield at
            at = self.close[at] + 1 if word in CLOSES else at + 1

    def kind(self, head, brace):
        """What the brace begins: ("scope", name), ("function", name) or ("value", None)."""
        outside = list(self.top(head, brace))
        words = [self.words[at] for at in outside]
        if "namespace" in words or (words[:1] == ["extern"] and len(words) == 2):
            return "scope", None
        if "enum" in words:
            return "value", None
        parameters = self.parameters(head, brace, outside)
        if parameters is None:
            for keyword in ("class", "struct", "union"):
                if keyword in words and "=" not in words:
                    return "scope", self.class_name(words[words.index(keyword) + 1:])
            return "value", None
        if self.in_initialisers(parameters, brace):
            return "value", None
        return "function", self.function_name(head, parameters)

    def class_name(self, words):
        name = []
        for word in words:
            if word in (":", "final"):
                break
            if word == "::" or (name and name[-1] == "::"):
                name.append(word)
            elif WORD.match(word) and word not in NO_NAME_OF_A_FUNCTION:
                name = [word]
        return "".join(name) or None

    def parameters(self, head, brace, outside):
        """The `(` of a function's parameters, or None."""
        found = None
        for at in outside:
            before = self.words[at - 1] if at > head else ""
            if self.words[at] == "=" and before != "operator":
                return found
            if self.words[at] != "(" or at == head or before in NO_NAME_OF_A_FUNCTION:
                continue
            if before == "operator":  # operator()(…)
                continue
            named = "operator" in self.words[max(head, at - 6):at] or before == ")" or WORD.match(before)
            if not named and before != ">":
                continue
            behind = self.close[at] + 1
            # A macro with arguments before the declaration.
            if behind < brace and WORD.match(self.words[behind]) and self.words[behind] not in BEHIND_PARAMETERS:
                continue
            if found is None:
                found = at
        return found

    def in_initialisers(self, parameters, brace):
        """Whether the brace is a member's value in a constructor's list, and not its body."""
        outside = list(self.top(self.close[parameters] + 1, brace))
        if ":" not in [self.words[at] for at in outside]:
            return False
        last = self.words[brace - 1]
        return bool(WORD.match(last)) or last == ">"

    def function_name(self, head, parameters):
        for at in range(parameters - 1, max(head, parameters - 6) - 1, -1):
            if self.words[at] == "operator":
                sign = self.words[at + 1:parameters]
                return self.qualified(head, at) + "operator" + (" " if WORD.match(sign[0]) else "") + "".join(sign)
        name = self.words[parameters - 1]
        at = parameters - 1
        if name == ">":
            while self.words[at] != "<":
                at -= 1
            at -= 1
            name = self.words[at]
        if name.isupper() and len(name) > 3 and at == head:  # TEST(Suite, Name)
            inside = self.words[parameters + 1:self.close[parameters]]
            return f"{name}({''.join(inside).replace(',', ', ')})"
        if at > head and self.words[at - 1] == "~":
            at -= 1
            name = "~" + name
        return self.qualified(head, at) + name

    def qualified(self, head, at):
        parts = []
        while at - 2 >= head and self.words[at - 1] == "::":
            at -= 2
            if self.words[at] == ">":
                depth = 1
                while depth > 0 and at > head:
                    at -= 1
                    depth += {">": 1, "<": -1}.get(self.words[at], 0)
                at -= 1
            parts.insert(0, self.words[at] + "::")
        return "".join(parts)


def named(found, name):
    """The functions of that name; the classes before it need not be said."""
    return [one for one in found if one.name == name or one.name.endswith("::" + name)]


# ---- The self-test ----

# A text, and the names of its functions with their lines.
SHAPES = [
    ("void f() {}\n", [("f", 1, 1)]),
    ("namespace a::b {\nnamespace {\nint g(int x) {\n  return x;\n}\n}\n}\n", [("g", 3, 5)]),
    ("template <typename T>\nT A<T>::get() const {\n  return t_;\n}\n", [("A::get", 1, 4)]),
    ("class A final : public B<int> {\n public:\n  A() : x_{1}, y_(2) {}\n  int x() const { return x_; }\n"
     "  struct C {\n    bool operator()(int a) const { return a < 1; }\n  };\n  int x_{0};\n};\n",
     [("A::A", 3, 3), ("A::x", 4, 4), ("A::C::operator()", 6, 6)]),
    ("A::A(int n)\n    : B<int>{n},\n      c_{n} {\n  run();\n}\nA::~A() { stop(); }\n",
     [("A::A", 1, 5), ("A::~A", 6, 6)]),
    ("bool operator==(A a, A b) {\n  return a.x == b.x;\n}\nA::operator bool() const { return x; }\n",
     [("operator==", 1, 3), ("A::operator bool", 4, 4)]),
    ("A& A::operator=(A&& o) noexcept {\n  return *this;\n}\n", [("A::operator=", 1, 3)]),
    ("std::function<void(int)> make() {\n  return [](int x) { use(x); };\n}\n", [("make", 1, 3)]),
    ("std::function<void(int)> slot{nullptr};\nconst auto g = [](int x) { use(x); };\nint a[] = {1, 2};\n", []),
    ("enum class E : int { a, b };\nstruct P {\n  int x = f(1);\n  std::vector<int> v{1};\n};\n", []),
    ("auto f(int a) -> std::vector<int> {\n  struct L {\n    void g() {}\n  };\n  return {a};\n}\n", [("f", 1, 6)]),
    ("#define X(a) \\\n  void a() {\nint f() { return '{'; }  // }\n/* { */ int g() { return R\"(}})\"[0]; }\n",
     [("f", 3, 3), ("g", 4, 4)]),
    ("TEST(Suite, Name) {\n  EXPECT_TRUE(f());\n}\n", [("TEST(Suite, Name)", 1, 3)]),
    ("[[nodiscard]] alignas(8) constexpr int f(std::less<int> x = {}) noexcept(true) {\n  return 1'000;\n}\n",
     [("f", 1, 3)]),
    ("struct S f() { return {}; }\nextern \"C\" {\nvoid g() {}\n}\n", [("f", 1, 1), ("g", 3, 3)]),
    ("template <>\nstruct std::hash<A> {\n  size_t operator()(A a) const { return a.x; }\n};\n",
     [("std::hash::operator()", 3, 3)]),
]
# Texts with the same tokens, but for the last pair of each.
SAME = [
    ("f(a,b);", "f(a,  // one\n  b);"),
    ('log("one two");', 'log("one "\n    "two");'),
    ("A<B<int>> x;", "A<B<int> > x;"),
    ("#define X 1 + \\\n  2", "#define X 1 + 2"),
]
OTHER = [("a - -b", "a--b"), ('"a b"', '"ab"'), ("a == b", "a = = b"), ("x1", "x 1")]


def words(text):
    return [token.text for token in tokens(text)]


def self_test():
    failures = []
    for text, wanted in SHAPES:
        try:
            found = [(one.name, one.first_line, one.last_line) for one in functions(tokens(text))]
        except ValueError as error:
            found = error
        if found != wanted:
            failures.append(f"{text!r}: found {found}")
    failures += [f"{a!r} and {b!r} differ" for a, b in SAME if words(a) != words(b)]
    failures += [f"{a!r} and {b!r} are the same" for a, b in OTHER if words(a) == words(b)]
    for text in ("void f() {", "void f() }", "f(]"):
        try:
            functions(tokens(text))
            failures.append(f"{text!r} is read")
        except ValueError:
            pass
    found = functions(tokens("void A::f() {}\nvoid B::f(int) {}\nvoid ff() {}\n"))
    if [len(named(found, name)) for name in ("f", "A::f", "::f", "g")] != [2, 1, 0, 0]:
        failures.append("functions are not found by name")
    return len(SHAPES) + len(SAME) + len(OTHER) + 4, failures


def files(tree):
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != "build" and name[0] != ".")
        for name in sorted(names):
            if name.endswith((".h", ".cc")):
                yield os.path.relpath(os.path.join(folder, name), tree)


def check(tree):
    faults = []
    for path in files(tree):
        with open(os.path.join(tree, path), encoding="utf-8") as file:
            try:
                functions(tokens(file.read()))
            except ValueError as error:
                faults.append(f"{path}: {error}")
    return faults


if __name__ == "__main__":
    if sys.argv[1:2] == ["--list"]:
        with open(sys.argv[2], encoding="utf-8") as source:
            for one in functions(tokens(source.read())):
                print(f"{one.first_line}\t{one.last_line}\t{one.name}")
        sys.exit(0)
    sys.exit(checks.main(sys.argv[1:], __doc__, self_test, check, files))
