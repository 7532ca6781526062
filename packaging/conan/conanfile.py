"""Leasehold for Conan 2, from the tree that this file stands in: conan create packaging/conan --build=missing"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.gnu import PkgConfigDeps

required_conan_version = ">=2.0"

# Whatever an archive of ours stands on: (its requirements among ours, those of others).
COMPONENTS = {
    "core": ([], []),
    "tls": (["core"], ["fmt", "openssl"]),
    "node": (["core", "tls"], ["asio", "fmt", "openssl", "protobuf"]),
    "kv": (["core", "tls", "node"], ["fmt", "rocksdb"]),
    "client": (["core", "tls"], ["fmt", "nlohmann_json", "openssl"]),
    "local": (["core", "tls", "node", "kv", "client"], ["fmt", "openssl"]),
}
# What a build does not read; .dockerignore leaves the same out.
UNUSED = ("build/*", ".git/*", "docs/*", "results/*", "tests/*")
# Which of them a host finds by pkg-config under another name than leasehold-COMPONENT.
PKG_CONFIG = {"kv": "leasehold"}
OF_KV = ("kv", "local")
OF_PROGRAM = ("cli11", "cpp-httplib", "nettle", "spdlog", "tomlplusplus")
OF_TOOLS = ("libnghttp2", "zlib")


class Leasehold(ConanFile):
    name = "leasehold"
    description = "A Raft consensus engine with a built-in leader lease"
    license = "Apache-2.0"
    topics = ("raft", "consensus", "lease", "replication")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"kv": [True, False], "program": [True, False], "tools": [True, False]}
    # RocksDB's own default has no type information, and ours derives classes from its.
    default_options = {"kv": True, "program": False, "tools": False, "rocksdb/*:use_rtti": True}

    def set_version(self):
        project = load(self, os.path.join(self.recipe_folder, "..", "..", "CMakeLists.txt"))
        self.version = re.search(r"project\(leasehold VERSION ([\d.]+)", project)[1]

    def export_sources(self):
        tree = os.path.join(self.recipe_folder, "..", "..")
        copy(self, "*", src=tree, dst=self.export_sources_folder, excludes=UNUSED)

    def requirements(self):
        self.requires("asio/[>=1.22.1 <2]")
        self.requires("fmt/[>=9.1.0 <12]")
        self.requires("nlohmann_json/[>=3.11.2 <4]")
        self.requires("openssl/[>=3.0 <4]")
        self.requires("protobuf/[>=3.21.12 <4]")
        if self.options.kv:
            self.requires("rocksdb/[>=6.29.5 <11]")
        if self.options.program:
            self.requires("cli11/[>=2.3.2 <3]")
            self.requires("cpp-httplib/[>=0.11.4 <1]")
            self.requires("nettle/[>=3.8.1 <4]")
            self.requires("spdlog/[>=1.10 <2]")
            self.requires("tomlplusplus/[>=3.3.0 <4]")
        if self.options.tools:
            self.requires("libnghttp2/[>=1.51.0 <2]")
            self.requires("zlib/[>=1.2.13 <2]")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25 <4]")
        self.tool_requires("ninja/[>=1.11 <2]")
        self.tool_requires("protobuf/<host_version>")
        if self.options.program:
            self.tool_requires("pkgconf/[>=2.0 <3]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Leasehold runs on Linux")
        if self.options.program and not self.options.kv:
            raise ConanInvalidConfiguration("the program needs the key-value store: -o leasehold/*:kv=True")
        if self.options.tools and not self.options.program:
            raise ConanInvalidConfiguration("the tools are commands of the program: -o leasehold/*:program=True")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.cache_variables["LEASEHOLD_BUILD_TESTS"] = False
        toolchain.cache_variables["LEASEHOLD_BUILD_BENCH"] = False
        toolchain.cache_variables["LEASEHOLD_INSTALL"] = True
        toolchain.cache_variables["LEASEHOLD_C"] = False
        toolchain.cache_variables["LEASEHOLD_KV"] = bool(self.options.kv)
        toolchain.cache_variables["LEASEHOLD_BUILD_PROGRAM"] = bool(self.options.program)
        toolchain.cache_variables["LEASEHOLD_TOOLS"] = bool(self.options.tools)
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        # Conan makes files of its own for CMake and pkg-config, of what package_info says.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "Leasehold")
        for name, (ours, others) in COMPONENTS.items():
            if name in OF_KV and not self.options.kv:
                continue
            component = self.cpp_info.components[name]
            component.libs = [f"leasehold_{name}"]
            component.requires = [*ours, *(f"{other}::{other}" for other in others)]
            component.system_libs = ["pthread"]
            component.set_property("cmake_target_name", f"Leasehold::{name}")
            component.set_property("pkg_config_name", PKG_CONFIG.get(name, f"leasehold-{name}"))
        program = (*(OF_PROGRAM if self.options.program else ()), *(OF_TOOLS if self.options.tools else ()))
        if program:
            # No host links it, but Conan wants to know who needs these.
            self.cpp_info.components["program"].requires = [f"{other}::{other}" for other in program]
