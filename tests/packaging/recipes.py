#!/usr/bin/env python3
"""Looks at the recipes for vcpkg and Conan without either: what they name exists, and what they depend on is what the
CMake files look for and packages.txt lists. packaging/dependencies.txt, the list, is what all are compared with.

  recipes.py TREE [--build BUILD]    BUILD: a build tree, for what its files for pkg-config require
  recipes.py TREE --self-test        plant one fault of each kind in copies, expect each found
"""

import collections
import json
import pathlib
import re

import command
import recipe_conan

PARTS = ("library", "kv", "program", "tools")
# By the first folder of its path: the part of a CMake file. What is not here belongs to the library.
FOLDERS = {"kv": "kv", "server": "program", "cli": "program", "deputy": "program", "doctor": "program",
           "bench": "tools", "check": "tools", "story": "tools", "explore": "tools", "sim": "tools", "lab": "tools"}
# Of CMake itself, of what only tests and measurements need, and what _leasehold_packages repeats.
NOT_OURS = {"package:Threads", "package:PkgConfig", "package:Python3", "package:benchmark", "package:${package}"}
LOOKS = (("package", re.compile(r"find_package\((\S+?)[\s)]")), ("header", re.compile(r"find_path\(\w+ (\S+)")),
         ("module", re.compile(r"pkg_check_modules\(\w+ (?:REQUIRED )?IMPORTED_TARGET (\S+?)\)")))
TOOLS_OF_DEBIAN = {"g++", "cmake", "ninja-build", "pkg-config"}
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PORT_KEYS = {"name", "version", "description", "license", "supports", "dependencies", "default-features", "features"}
DEPENDENCY_KEYS = {"name", "host", "default-features", "features"}
HOST_TOOLS = {"vcpkg-cmake", "vcpkg-cmake-config"}

Dependency = collections.namedtuple("Dependency", "part debian looks vcpkg conan")


def dependencies(tree):
    found = []
    for line in (tree / "packaging/dependencies.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            part, debian, looks, vcpkg, conan = line.split()
            found.append(Dependency(part, debian, frozenset(looks.split(",")), vcpkg, conan))
    return found


def cmake_files(tree):
    """Those of the rooms, and those that find packages for all."""
    for folder in sorted(tree.iterdir()):
        if folder.is_dir() and folder.name not in ("build", "tests", "examples", "packaging"):
            yield from sorted(folder.glob("**/CMakeLists.txt"))
    yield tree / "cmake/LeaseholdRoom.cmake"
    yield tree / "cmake/LeaseholdPackage.cmake"


def looked_for(tree):
    """{what CMake looks for: the lowest part that does}."""
    found = {}
    for path in cmake_files(tree):
        part = FOLDERS.get(path.relative_to(tree).parts[0], "library")
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        for kind, expression in LOOKS:
            for name in expression.findall(text):
                look = f"{kind}:{name}"
                if look not in NOT_OURS:
                    found[look] = min(part, found.get(look, part), key=PARTS.index)
    return found


def check_list(tree, listed):
    """The list, against the CMake files and packages.txt."""
    lines = (tree / "packages.txt").read_text(encoding="utf-8").splitlines()
    packages = {word for line in lines for word in line.split("#")[0].split()} - TOOLS_OF_DEBIAN
    debian = {dependency.debian for dependency in listed}
    yield from (f"packages.txt has {name}, and the list does not" for name in sorted(packages - debian))
    yield from (f"the list has {name}, and packages.txt does not" for name in sorted(debian - packages))
    parts = {look: dependency.part for dependency in listed for look in dependency.looks}
    found = looked_for(tree)
    for look in sorted(found.keys() | parts.keys()):
        if look not in parts:
            yield f"CMake looks for {look}, which the list does not have: add it there and to the recipes"
        elif look not in found:
            yield f"the list has {look}, for which no CMake file looks"
    for dependency in listed:
        used = [found[look] for look in dependency.looks if look in found]
        lowest = min(used, key=PARTS.index, default=dependency.part)
        if lowest != dependency.part:
            yield f"{dependency.debian} is of the part {lowest}, which looks for it, and not of {dependency.part}"


def options_of(tree):
    return set(re.findall(r"^option\((\w+)", (tree / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE))


def version_of(tree):
    return re.search(r"project\(leasehold VERSION ([\d.]+)", (tree / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def components_of(tree):
    """{name: those below it}, of the C++ library."""
    text = (tree / "cmake/LeaseholdPackage.cmake").read_text(encoding="utf-8")
    found = re.findall(r"^ *leasehold_component\((\w+) ROOMS [\w ]+?(?: DEPENDS ([\w ]+))?\)", text, re.MULTILINE)
    return {name: below.split() for name, below in found}


def names_of_port(entries):
    """The names of a list of dependencies. Raises ValueError: the schema does not have that."""
    found = []
    for entry in entries:
        entry = {"name": entry} if isinstance(entry, str) else entry
        if set(entry) - DEPENDENCY_KEYS or not NAME.fullmatch(entry.get("name", "")):
            raise ValueError(f"{entry} is no dependency")
        found.append((entry["name"], entry.get("host", False)))
    if len(found) != len(set(found)):
        raise ValueError(f"a dependency is there twice: {found}")
    return found


def check_port_file(port, tree, listed):
    """vcpkg.json: the rules of its schema that it can break, and the list."""
    if set(port) != PORT_KEYS:
        yield f"keys are missing or unknown: {sorted(set(port) ^ PORT_KEYS)}"
        return
    if not NAME.fullmatch(port["name"]) or port["name"] != "leasehold":
        yield f"the name is {port['name']}"
    if port["version"] != version_of(tree):
        yield f"the version is {port['version']}, that of the project {version_of(tree)}"
    if port["license"] != "Apache-2.0" or "Apache License" not in (tree / "LICENSE").read_text(encoding="utf-8")[:200]:
        yield "the license is not that of the file LICENSE"
    if set(port["default-features"]) - set(port["features"]):
        yield f"a default feature is none: {port['default-features']}"
    lists = {"library": port["dependencies"]}
    for name, feature in port["features"].items():
        if not NAME.fullmatch(name) or set(feature) - {"description", "dependencies"} or not feature.get("description"):
            yield f"the feature {name} has no description, or what no feature has"
        lists[name] = feature.get("dependencies", [])
    for part, entries in lists.items():
        try:
            names = names_of_port(entries)
        except ValueError as error:
            yield str(error)
            continue
        has = {name for name, host in names if not host} - {"leasehold"}
        wants = {dependency.vcpkg for dependency in listed if dependency.part == part}
        if has != wants:
            yield f"{part} depends on {sorted(has)}, by the list on {sorted(wants)}"
        if part == "library" and {name for name, host in names if host} != {"protobuf", *HOST_TOOLS}:
            yield f"what runs during the build is not protobuf and {sorted(HOST_TOOLS)}"


def check_port(folder, tree, listed):
    try:
        port = json.loads((folder / "vcpkg.json").read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        yield f"vcpkg.json: {error}"
        return
    yield from (f"vcpkg.json: {finding}" for finding in check_port_file(port, tree, listed))
    text = (folder / "portfile.cmake").read_text(encoding="utf-8")
    text = re.sub(r"^#.*", "", text, flags=re.MULTILINE)
    named = set(re.findall(r"\b(LEASEHOLD_[A-Z_]+)\b", text))
    yield from (f"portfile.cmake: there is no option {name}" for name in sorted(named - options_of(tree)))
    features = re.search(r"FEATURES\n([^)]+)\)", text)
    if not features or set(features[1].split()[::2]) != set(port.get("features", ())):
        yield "portfile.cmake: its features are not those of vcpkg.json"
    for wanted in ("-DLEASEHOLD_BUILD_TESTS=OFF", "-DLEASEHOLD_BUILD_BENCH=OFF", "-DLEASEHOLD_INSTALL=ON",
                   "PACKAGE_NAME Leasehold CONFIG_PATH lib/cmake/Leasehold", "vcpkg_install_copyright(",
                   "TOOL_NAMES leasehold leasehold-deputy"):
        if wanted not in text:
            yield f"portfile.cmake: it has no {wanted}"
    up = re.search(r'get_filename_component\(SOURCE_PATH "\$\{CMAKE_CURRENT_LIST_DIR\}/([./]+)" ABSOLUTE\)', text)
    if not up or (folder / up[1]).resolve() != tree.resolve():
        yield "portfile.cmake: SOURCE_PATH is not the tree"
    usage = (folder / "usage").read_text(encoding="utf-8")
    yield from (f"usage: there is no component {name}" for name in re.findall(r"Leasehold::(\w+)", usage)
                if name not in components_of(tree))
    if f"find_package(Leasehold {version_of(tree).rpartition('.')[0]} " not in usage:
        yield "usage: it finds another version"


def findings(tree, build):
    listed = dependencies(tree)
    yield from check_list(tree, listed)
    yield from check_port(tree / "packaging/vcpkg/ports/leasehold", tree, listed)
    yield from recipe_conan.check(tree / "packaging/conan", listed, options_of(tree), version_of(tree),
                                  components_of(tree), build)


if __name__ == "__main__":
    command.main(__doc__, findings, "recipes_faults", "--build", type=pathlib.Path)
