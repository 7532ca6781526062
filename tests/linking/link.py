#!/usr/bin/env python3
"""Links each example as a host of the library does, from a folder of its own, and runs it.

  link.py install --build DIR --work DIR            installs a build tree into WORK/prefix, checks it
  link.py readme --source TREE --work DIR           the program of the README, as three processes
  link.py notes --source TREE --work DIR            that of docs/embedding.md
  link.py c_interface --source TREE --work DIR      the shared library from C, and from Python
  link.py sqlite_page --source TREE --work DIR      the commands of docs/sqlite.md, and its dialogue
  link.py sqlite --source TREE --work DIR --checker LEASEHOLD_CHECK [--full]    rounds of examples/sqlite
  link.py build_types --source TREE --work DIR      each build type
  link.py find_package|pkg_config|add_subdirectory --source TREE --work DIR --program LEASEHOLD
          [--cxx g++] [--flags F] [--full]
  link.py build_tree|shared --source TREE --build DIR --work DIR --program LEASEHOLD --checker LEASEHOLD_CHECK
          the examples that the tree itself has built: as they are, and with all archives in one shared library

Every example of examples/ is tried in three ways:

  Leasehold is              nine in C++                sqlite              c and python
  installed                 find_package               sqlite              c_interface
  a part of the build       build_tree                 build_tree          build_tree
  one shared library        shared                     shared              c_interface, build_tree: it is theirs always

--prefix PREFIX takes the Leasehold that is installed there, in the place of the one in WORK.

A run fails when an example does not build, does not end by itself with status 0, or says nothing.
"""

import argparse
import contextlib
import ctypes
import glob
import os
import queue
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time

COMPONENT = {"bare_core": "core", "embed": "node", "leases": "client", "local": "local", "ranges": "node",
             "read_point": "node", "remote": "client", "sharded": "node", "streams": "node"}
# The program of an example that has another name, and what a host links beside Leasehold.
TARGET = {"sqlite": "sqlite_node", "c": "counter_in_c"}
BESIDE = {"ranges": ["-lrocksdb"], "sqlite": ["-lsqlite3"]}
SHARED_HOST = """#include <leasehold/lease/timing.h>
extern "C" int default_timing_holds() { return leasehold::lease::Timing{}.validate().ok() ? 1 : 0; }
"""
RUN_SECONDS_MAX = 60
# Outside the range that the kernel hands out to connections by itself.
PORTS = range(20000, 30000, 3)


def run(command, **options):
    print("+", " ".join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(f"{command[0]} ended with status {done.returncode}")
    return done.stdout


def free_port():
    """The first of three ports in a row that nobody listens on."""
    for start in list(PORTS)[os.getpid() % 1000:]:
        try:
            for port in range(start, start + 3):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return start
    sys.exit("no three free ports in a row")


@contextlib.contextmanager
def group_of_one(options):
    """For an example that is no node. Gives the address of its client port."""
    folder = os.path.join(options.work, f"group-{options.way}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    port = free_port()
    address = f"127.0.0.1:{port}"
    serve = subprocess.Popen([options.program, "serve", "--id", "1", "--listen", address, "--peers",
                              f"1=127.0.0.1:{port + 1}", "--data-dir", os.path.join(folder, "data")],
                             stderr=subprocess.DEVNULL)
    try:
        yield address
    finally:
        serve.terminate()
        serve.wait(RUN_SECONDS_MAX)


def try_out(options, example, program):
    component = COMPONENT[example]
    started = time.monotonic()
    if component == "client":
        with group_of_one(options) as address:
            said = run([program, address], timeout=RUN_SECONDS_MAX)
    else:
        said = run([program, *([] if component == "core" else [str(free_port())])],
                   timeout=RUN_SECONDS_MAX)
    print(said, end="")
    print(f"{example} ended after {time.monotonic() - started:.1f} s", flush=True)
    if not said.strip():
        sys.exit(f"{example} said nothing")


def rounds(options, example, program, *length):
    """Rounds of kills and pauses of the replicated SQLite."""
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "sqlite_rounds.py")
    print(run([sys.executable, "-B", script, "--program", program, "--checker", options.checker,
               "--work", os.path.join(options.work, options.way, example, "replicas"), "--port", str(free_port()),
               *length]))


def try_c(folder, command, **environment):
    data = os.path.join(folder, "data")
    shutil.rmtree(data, ignore_errors=True)
    said = run([*command, str(free_port()), data], timeout=RUN_SECONDS_MAX, env={**os.environ, **environment})
    print(said, end="")
    if "by its lease" not in said:
        sys.exit("nobody reads by its lease")


def try_python(options, folder, library):
    script = os.path.join(options.source, "examples", "python", "counters.py")
    try_c(folder, [sys.executable, "-B", script], LEASEHOLD_LIBRARY=library)


def prefix_of(options, name):
    """Where it is installed: at NAME in the folder of the test, or where the options say."""
    return options.prefix or os.path.join(options.work, name)


def install(options):
    prefix = os.path.join(options.work, "prefix")
    shutil.rmtree(prefix, ignore_errors=True)
    run(["cmake", "--install", options.build, "--prefix", prefix])
    tree = os.path.join(prefix, "include", "leasehold")
    installed = {os.path.relpath(os.path.join(folder, name), tree)
                 for folder, _, names in os.walk(tree) for name in names}
    with open(os.path.join(options.source, "cmake", "public_headers.txt"), encoding="utf-8") as file:
        lines = file.read().split("[private]")[0].splitlines()
    listed = {line for line in lines if line and line[0] not in "#["}
    if installed != listed:
        sys.exit(f"installed headers differ from the list: {sorted(installed ^ listed)}")
    # An installed tree may be moved: nothing in it knows where it was built.
    source = os.path.realpath(options.source)
    for folder, _, names in os.walk(prefix):
        for name in names:
            if not name.endswith((".cmake", ".pc", ".h")):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                if source in file.read():
                    sys.exit(f"{name} names the build machine's folder {source}")
    moved = os.path.join(options.work, "moved prefix")
    shutil.rmtree(moved, ignore_errors=True)
    shutil.copytree(prefix, moved)


def copy_of(options, way, example):
    """The example alone, in a new folder; returns it and an empty build folder beside it."""
    folder = os.path.join(options.work, way, example)
    shutil.rmtree(os.path.join(folder, "source"), ignore_errors=True)
    shutil.copytree(os.path.join(options.source, "examples", example),
                    os.path.join(folder, "source"))
    shutil.copy(os.path.join(options.source, "examples", "example.cmake"), folder)
    return os.path.join(folder, "source"), os.path.join(folder, "build")


def with_cmake(options, way, example, *arguments, target=None):
    source, build = copy_of(options, way, example)
    run(["cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={options.cxx}",
         f"-DCMAKE_CXX_FLAGS={options.flags}", *arguments])
    run(["cmake", "--build", build, "--target", target or example])
    return build


def find_package(options):
    prefix = prefix_of(options, "moved prefix")
    for example, component in COMPONENT.items():
        # Core alone has to do without the packages of the others.
        without = ["Protobuf", "RocksDB", "Threads"] if component == "core" else []
        build = with_cmake(options, "find_package", example, f"-DCMAKE_PREFIX_PATH={prefix}",
                           *[f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in without])
        try_out(options, example, os.path.join(build, example))


def pkg_config(options):
    prefix = prefix_of(options, "prefix")
    folders = [folder for folder, _, names in os.walk(prefix) if "leasehold.pc" in names]
    environment = {**os.environ, "PKG_CONFIG_PATH": ":".join(folders)}
    everything = run(["pkg-config", "--libs", "leasehold"], env=environment).split()
    order = [word for word in everything if word.startswith("-lleasehold")]
    if order != ["-lleasehold_kv", "-lleasehold_node", "-lleasehold_tls", "-lleasehold_core"]:
        sys.exit(f"the archives stand in the wrong order: {order}")
    # One example of each component: a .pc file says no more about the others.
    for component, example in {component: example for example, component in COMPONENT.items()}.items():
        source, _ = copy_of(options, "pkg_config", example)
        words = run(["pkg-config", "--cflags", "--libs", f"leasehold-{component}"],
                    env=environment).split()
        program = os.path.join(os.path.dirname(source), example)
        run([options.cxx, "-std=c++20", *options.flags.split(), os.path.join(source, "main.cc"),
             "-o", program, *words])
        try_out(options, example, program)


def built(options, example):
    """The folder in which the tree itself has built an example, and the name of the program."""
    return os.path.join(options.build, "tests", "linking", "examples", example), TARGET.get(example, example)


def try_built(options, example, program):
    if example == "sqlite":
        rounds(options, example, program, "--rounds", "1", "--read-limit", "3")
    else:
        try_out(options, example, program)


def build_tree(options):
    """Each example with the targets of a build of the tree, as a host has them that adds it."""
    for example in (*COMPONENT, "sqlite"):
        try_built(options, example, os.path.join(*built(options, example)))
    folder = os.path.join(options.work, "build_tree", "c")
    os.makedirs(folder, exist_ok=True)
    try_c(folder, [os.path.join(*built(options, "c"))])
    try_python(options, folder, os.path.join(options.build, "c", "libleasehold.so.0"))


def shared(options):
    """All that the archives hold in a shared library, which each example links in their place."""
    prefix = prefix_of(options, "prefix")
    folders = [folder for folder, _, names in os.walk(prefix) if "leasehold.pc" in names]
    words = run(["pkg-config", "--cflags", "--libs", "leasehold-local", "leasehold-client"],
                env={**os.environ, "PKG_CONFIG_PATH": ":".join(folders)}).split()
    ours = [word for word in words if word.startswith("-lleasehold")]
    others = [word for word in words if word not in ours]
    folder = os.path.realpath(os.path.join(options.work, "shared"))
    os.makedirs(folder, exist_ok=True)
    source, library = os.path.join(folder, "host.cc"), os.path.join(folder, "libhost.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SHARED_HOST)
    run([options.cxx, "-std=c++20", *options.flags.split(), "-shared", "-fPIC", "-Wl,-z,defs", source, "-o",
         library, "-Wl,--whole-archive", *[word for word in others if word.startswith("-L")], *ours,
         "-Wl,--no-whole-archive", *others])
    if ctypes.CDLL(library).default_timing_holds() != 1:
        sys.exit("the library in the shared library says that its own default timing is wrong")
    for example in (*COMPONENT, "sqlite"):
        where, name = built(options, example)
        objects = glob.glob(os.path.join(where, "CMakeFiles", f"{name}.dir", "*.o"))
        program = os.path.join(folder, name)
        # No archive: what the library does not give is missing.
        run([options.cxx, *options.flags.split(), *objects, "-o", program, f"-L{folder}", "-lhost",
             f"-Wl,-rpath,{folder}", *BESIDE.get(example, []), "-pthread"])
        try_built(options, example, program)


def c_interface(options):
    """libleasehold.so alone: no C++ compiler, and no package of the C++ library."""
    prefix = prefix_of(options, "moved prefix")
    folders = [folder for folder, _, names in os.walk(prefix) if "leasehold-c.pc" in names]
    libraries = [folder for folder, _, names in os.walk(prefix) if "libleasehold.so.0" in names]
    source, build = copy_of(options, "c_interface", "c")
    folder = os.path.dirname(source)
    run(["cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
         *[f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Protobuf", "RocksDB", "Threads", "fmt", "OpenSSL")]])
    run(["cmake", "--build", build])
    try_c(folder, [os.path.join(build, "counter_in_c")])
    words = run(["pkg-config", "--cflags", "--libs", "leasehold-c"],
                env={**os.environ, "PKG_CONFIG_PATH": ":".join(folders)})
    program = os.path.join(folder, "counter_in_c")
    run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", os.path.join(source, "main.c"), "-o", program,
         *shlex.split(words)])
    try_c(folder, [program], LD_LIBRARY_PATH=libraries[0])
    try_python(options, folder, os.path.join(libraries[0], "libleasehold.so.0"))


def sqlite(options):
    """Kills and pauses of the replicated SQLite; 20 rounds with --full."""
    prefix = prefix_of(options, "moved prefix")
    build = with_cmake(options, "sqlite", "sqlite", f"-DCMAKE_PREFIX_PATH={prefix}", target="sqlite_node")
    length = ["--rounds", "20"] if options.full else ["--rounds", "4", "--read-limit", "2"]
    rounds(options, "sqlite", os.path.join(build, "sqlite_node"), *length)


def sqlite_page(options):
    """Its blocks in their order: packages, the shell's, the three replicas, and what is typed and answered."""
    with open(os.path.join(options.source, "docs", "sqlite.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```(?:sh)?\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    packages, shell, replicas, dialogue = blocks
    if "make deps install" not in packages:
        sys.exit("docs/sqlite.md begins in another way")
    work = os.path.join(options.work, "sqlite_page")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.symlink(os.path.join(os.path.realpath(options.source), "examples"), os.path.join(work, "examples"))
    prefix = os.path.realpath(prefix_of(options, "moved prefix"))
    found = {**os.environ, "CMAKE_PREFIX_PATH": prefix, "CXX": options.cxx}
    run(["bash", "-e", "-c", shell], cwd=work, env=found)
    port = free_port()
    for number in range(3):
        replicas = replicas.replace(str(7401 + number), str(port + number))
    programs = [Program(shlex.split(line), os.path.join(work, "mydb")) for line in replicas.splitlines()]
    try:
        # Which of them is asked is the reader's choice.
        for place, (typed, answer) in enumerate(re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", dialogue, re.MULTILINE)):
            programs[place % 3].say(typed)
            programs[place % 3].expect(*answer.splitlines())
        for one in programs:
            one.say("SELECT count(*) FROM people")
            one.expect("ok 1 rows, 0 changed", "2")
        for one in programs:
            one.end()
    finally:
        end_all(programs)
    print(f"{len(dialogue.splitlines())} lines of docs/sqlite.md, as they stand there")


def build_types(options):
    """Each build type of CMake builds, whatever a compiler warns of there. Not the whole tree: what is asked of the
    compiler is looked at, and one room, whose -O3 once warned, is built."""
    for kind in ("", "Debug", "Release", "RelWithDebInfo", "MinSizeRel"):
        build = os.path.join(options.work, "build_types", kind or "none")
        run(["cmake", "-S", options.source, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={options.cxx}",
             f"-DCMAKE_BUILD_TYPE={kind}", "-DLEASEHOLD_PORTABLE_ONLY=ON", "-DLEASEHOLD_BUILD_TESTS=OFF",
             "-DLEASEHOLD_BUILD_BENCH=OFF", "-DLEASEHOLD_BUILD_PROGRAM=OFF", "-DLEASEHOLD_INSTALL=OFF"])
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            if "-Werror" in file.read():
                sys.exit(f"build type {kind or 'none'}: a warning is an error, which is for our presets alone")
        print(run(["cmake", "--build", build, "--target", "leasehold_lease"]).splitlines()[-1])


def add_subdirectory(options):
    """Compiles an example of each component, with --full every example, against the tree. The library is the one that
    find_package links, compiled a second time: one example is linked and run, and with --full all are. That is built as
    the preset "release" builds, where a warning is an error: the tests run in "dev", and a compiler that optimizes more
    warns of more."""
    each = COMPONENT if options.full else {component: example for example, component in COMPONENT.items()}.values()
    for example in each:
        whole = options.full or example == "bare_core"
        release = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "-DLEASEHOLD_WERROR=ON"]
        build = with_cmake(options, "add_subdirectory", example,
                           f"-DLEASEHOLD_SOURCE={os.path.realpath(options.source)}", "-DLEASEHOLD_BATCHES=ON",
                           *(release if whole else []),
                           target=None if whole else f"CMakeFiles/{example}.dir/main.cc.o")
        if whole:
            try_out(options, example, os.path.join(build, example))


class Program:
    """One process of a page's program; what it prints is read as it comes."""

    def __init__(self, command, folder):
        self.process = subprocess.Popen(command, cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, args=[self.process.stdout], daemon=True).start()

    def listen(self, stream):
        for line in stream:
            self.lines.put(line.rstrip("\n"))

    def say(self, line):
        print("<", line)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def expect(self, *expected):
        for line in expected:
            try:
                heard = self.lines.get(timeout=RUN_SECONDS_MAX)
            except queue.Empty:
                sys.exit(f"expected {line!r}, heard nothing")
            print(">", heard, flush=True)
            if heard != line:
                sys.exit(f"expected {line!r}")

    def end(self):
        self.process.stdin.close()
        if self.process.wait(timeout=RUN_SECONDS_MAX) != 0:
            sys.exit("the program ended with an error")


def build_page(options, page, name):
    """Builds the program NAME that the page shows: its blocks begin with `// NAME.cc` and, if the page has one,
    `# CMakeLists.txt`; else CMake gets the README's, under this name. Gives the program's path."""
    blocks = {}
    for source in ("README.md", page):
        with open(os.path.join(options.source, source), encoding="utf-8") as file:
            text = file.read()
        for block in re.findall(r"^```(?:cmake|cpp)\n(.*?)^```$", text, re.M | re.S):
            blocks[block.split("\n", 1)[0]] = block
    wanted = {"CMakeLists.txt": blocks.get("# CMakeLists.txt"), f"{name}.cc": blocks.get(f"// {name}.cc")}
    for file, text in wanted.items():
        if text is None:
            sys.exit(f"no block of {page} begins with its file's name: {file}")
    folder = os.path.join(options.work, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    # Only the ports differ from what a reader copies.
    start = free_port()
    ports = {f"127.0.0.1:730{number}": f"127.0.0.1:{start + number - 1}" for number in (1, 2, 3)}
    program = wanted[f"{name}.cc"]
    if '"127.0.0.1:730"' in program:  # the number is appended
        program = program.replace('"127.0.0.1:730" + std::to_string(id)',
                                  f'"127.0.0.1:" + std::to_string({start - 1} + id)')
    for written, free in ports.items():
        program = program.replace(written, free)
    wanted[f"{name}.cc"] = program
    wanted["CMakeLists.txt"] = re.sub(r"\bcounter\b", name, wanted["CMakeLists.txt"])
    for file, text in wanted.items():
        with open(os.path.join(folder, file), "w", encoding="utf-8") as output:
            output.write(text)
    run(["cmake", "-B", "build", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={options.cxx}",
         f"-DCMAKE_PREFIX_PATH={os.path.realpath(options.work)}/prefix", "."], cwd=folder)
    run(["cmake", "--build", "build"], cwd=folder)
    return os.path.join(os.path.realpath(folder), "build", name), folder


def end_all(programs):
    for one in programs:
        one.process.kill()
        one.process.wait()


def readme(options):
    path, folder = build_page(options, "README.md", "counter")
    nodes = [Program([path, str(number)], folder) for number in (1, 2, 3)]
    try:
        for one in nodes:
            one.say("+")
            one.expect("counted")
        for one in nodes:
            one.say("?")
            one.expect("3")
        for one in nodes:
            one.end()
    finally:
        end_all(nodes)


def notes(options):
    path, folder = build_page(options, "docs/embedding.md", "notes")
    nodes = [Program([path, str(number)], folder) for number in (1, 2, 3)]
    try:
        nodes[0].say("buy milk")
        nodes[0].expect("note 1")
        nodes[1].say("call home")
        nodes[1].expect("note 2")
        for one in nodes:
            one.say("?")
            one.expect("buy milk", "call home", "-- 2 notes")
        nodes[2].process.kill()
        nodes[2].process.wait()
        nodes[0].say("sleep")
        nodes[0].expect("note 3")
        nodes[2] = Program([path, "3"], folder)
        nodes[2].say("?")
        nodes[2].expect("buy milk", "call home", "sleep", "-- 3 notes")
        for one in nodes:
            one.end()
        # All of it again, from the logs.
        nodes = [Program([path, str(number)], folder) for number in (1, 2, 3)]
        nodes[1].say("?")
        nodes[1].expect("buy milk", "call home", "sleep", "-- 3 notes")
    finally:
        end_all(nodes)


def main():
    parser = argparse.ArgumentParser()
    ways = {way.__name__: way for way in (install, readme, notes, find_package, pkg_config, shared, c_interface,
                                          sqlite, sqlite_page, build_types, add_subdirectory, build_tree)}
    parser.add_argument("way", choices=ways)
    parser.add_argument("--source", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--build")
    parser.add_argument("--prefix", help="where the Leasehold to link is installed (default: in WORK, by `install`)")
    parser.add_argument("--program", help="leasehold, for the examples that need a group")
    parser.add_argument("--checker", help="leasehold_check, which judges the history of sqlite")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--flags", default="")
    parser.add_argument("--full", action="store_true", help="all examples, all rounds")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    ways[options.way](options)


if __name__ == "__main__":
    main()
