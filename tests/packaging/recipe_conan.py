"""packaging/conan/conanfile.py, run with stand-ins for the modules of Conan: what it asks for, and what it says of the
package."""

import collections
import itertools
import os
import re
import runpy
import sys
import types

OPTIONS = ("kv", "program", "tools")


class _Named:
    """Takes any attribute, and the values of set_property()."""

    def __init__(self, **values):
        self.__dict__.update(values)
        self.properties = {}

    def set_property(self, name, value):
        self.properties[name] = value


class _Base:
    """In the place of ConanFile: it writes down what a recipe asks for."""

    def __init__(self):
        self.asked = []
        self.tools = []
        self.options = _Named(**self.default_options)
        self.settings = _Named(os="Linux")
        self.cpp_info = _Named(components=collections.defaultdict(_Named))

    def requires(self, reference):
        self.asked.append(reference)

    def tool_requires(self, reference):
        self.tools.append(reference)


class _Toolchain:
    newest = None

    def __init__(self, *_, **__):
        self.cache_variables = {}
        _Toolchain.newest = self

    def generate(self):
        pass


class _Refused(Exception):
    """In the place of ConanInvalidConfiguration."""


def _load(_, path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _module(name, **content):
    module = types.ModuleType(name)
    module.__dict__.update(content)
    return module


def _stand_ins():
    def nothing(*_, **__):
        return None
    return [_module("conan", ConanFile=_Base), _module("conan.errors", ConanInvalidConfiguration=_Refused),
            _module("conan.tools"), _module("conan.tools.build", check_min_cppstd=nothing, can_run=nothing),
            _module("conan.tools.cmake", CMake=_Toolchain, CMakeDeps=lambda _: _Named(generate=nothing),
                    CMakeToolchain=_Toolchain, cmake_layout=nothing),
            _module("conan.tools.files", copy=nothing, load=_load, rmdir=nothing),
            _module("conan.tools.gnu", PkgConfigDeps=lambda _: _Named(generate=nothing))]


def _class_of(path):
    """The class of a recipe. Raises whatever Python does not like of the file."""
    sys.modules.update((module.__name__, module) for module in _stand_ins())
    try:
        found = runpy.run_path(str(path))
    finally:
        for module in _stand_ins():
            sys.modules.pop(module.__name__, None)
    return next(value for value in found.values()
                if isinstance(value, type) and issubclass(value, _Base) and value is not _Base)


def _recipe(path, **values):
    recipe = _class_of(path)()
    recipe.recipe_folder = os.path.dirname(path)
    recipe.options.__dict__.update(values)
    return recipe


def _names(references):
    return {reference.split("/")[0] for reference in references}


def _check_requirements(path, listed):
    for values in itertools.product((True, False), repeat=len(OPTIONS)):
        chosen = dict(zip(OPTIONS, values))
        recipe = _recipe(path, **chosen)
        possible = not (chosen["program"] and not chosen["kv"]) and not (chosen["tools"] and not chosen["program"])
        try:
            recipe.validate()
            refused = False
        except _Refused:
            refused = True
        if refused == possible:
            yield f"validate() {'refuses' if refused else 'takes'} {chosen}"
        recipe.requirements()
        recipe.build_requirements()
        wants = {dependency.conan for dependency in listed if dependency.part == "library" or chosen[dependency.part]}
        if _names(recipe.asked) != wants:
            yield f"{chosen}: it requires {sorted(_names(recipe.asked))}, by the list {sorted(wants)}"
        for reference in recipe.asked:
            if not re.fullmatch(r"[a-z0-9_+-]+/\[>=[\d.]+ <[\d.]+\]", reference):
                yield f"{reference} has no lowest version, or no end"
        if "protobuf/<host_version>" not in recipe.tools:
            yield "the compiler of protobuf is not of the version of its library"


def _check_variables(path, known):
    for values in itertools.product((True, False), repeat=len(OPTIONS)):
        chosen = dict(zip(OPTIONS, values))
        _recipe(path, **chosen).generate()
        variables = _Toolchain.newest.cache_variables
        yield from (f"CMakeLists.txt has no option {name}" for name in sorted(set(variables) - known))
        expected = {"LEASEHOLD_KV": chosen["kv"], "LEASEHOLD_BUILD_PROGRAM": chosen["program"], "LEASEHOLD_C": False,
                    "LEASEHOLD_TOOLS": chosen["tools"], "LEASEHOLD_BUILD_TESTS": False, "LEASEHOLD_BUILD_BENCH": False,
                    "LEASEHOLD_INSTALL": True}
        if variables != expected:
            yield f"{chosen}: it sets {variables}"


def _check_components(path, listed, components, build):
    recipe = _recipe(path, kv=True, program=True, tools=True)
    recipe.requirements()
    recipe.package_info()
    if recipe.cpp_info.properties != {"cmake_file_name": "Leasehold"}:
        yield "the CMake package has another name than the one of `make install`"
    found = dict(recipe.cpp_info.components)
    program = found.pop("program")
    if set(found) != set(components):
        yield f"it has the components {sorted(found)}, `make install` {sorted(components)}"
        return
    used = {requirement.split("::")[0] for part in (*found.values(), program) for requirement in part.requires
            if "::" in requirement}
    asked = _names(recipe.asked)
    if used != asked:
        yield f"no component needs {sorted(asked - used)}, or nobody requires {sorted(used - asked)}"
    names = {"rocksdb": "rocksdb", "fmt": "fmt", "openssl": "openssl", "protobuf": "protobuf"}
    for name, component in found.items():
        if component.libs != [f"leasehold_{name}"] or component.properties["cmake_target_name"] != f"Leasehold::{name}":
            yield f"{name}: it is not libleasehold_{name}.a, Leasehold::{name}"
        if [requirement for requirement in component.requires if "::" not in requirement] != components[name]:
            yield f"{name}: those below it are {components[name]}"
        if build:
            file = build / "package" / f"{component.properties['pkg_config_name']}.pc"
            if not file.exists():
                yield f"{name}: there is no {file.name}"
                continue
            required = re.search(r"^Requires: (.*)", file.read_text(encoding="utf-8") + "\nRequires: ", re.MULTILINE)[1]
            wants = {other for other in re.findall(r"[\w-]+", required) if not other.startswith("leasehold")}
            has = {other.split("::")[0] for other in component.requires if "::" in other}
            if {names[other] for other in has if other in names} != wants:
                yield f"{name}: it requires {sorted(has)}, {file.name} requires {sorted(wants)}"
    if {dependency.conan for dependency in listed if dependency.part == "library"} - used:
        yield "a dependency of the library is of no component"


def check(folder, listed, known, version, components, build):
    """Findings. `known`: the options of CMakeLists.txt; `components`: {name: those below it}."""
    path = folder / "conanfile.py"
    try:
        recipe = _recipe(path)
        recipe.set_version()
        if recipe.version != version:
            yield f"conanfile.py: the version is {recipe.version}"
        if recipe.name != "leasehold" or recipe.license != "Apache-2.0" or set(recipe.options.__dict__) < set(OPTIONS):
            yield "conanfile.py: another name, license or other options"
        for check_part, arguments in ((_check_requirements, (listed,)), (_check_variables, (known,)),
                                      (_check_components, (listed, components, build))):
            yield from (f"conanfile.py: {finding}" for finding in check_part(path, *arguments))
        _class_of(folder / "test_package" / "conanfile.py")
    except Exception as error:  # pylint: disable=broad-except  # whatever a recipe raises is a finding
        yield f"conanfile.py: {type(error).__name__}: {error}"
    text = (folder / "test_package" / "CMakeLists.txt").read_text(encoding="utf-8")
    yield from (f"test_package: there is no component {name}" for name in re.findall(r"Leasehold::(\w+)", text)
                if name not in components)
