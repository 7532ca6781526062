"""The faults that recipes.py has to find, each planted alone in a copy of the files that it reads."""

import shutil

import planted
import recipes

PORT = "packaging/vcpkg/ports/leasehold/"
CONAN = "packaging/conan/conanfile.py"
LIST = "packaging/dependencies.txt"

# (file, what stands there, what is planted instead, a part of the finding).
FAULTS = (
    ("tls/CMakeLists.txt", "find_package(OpenSSL", "find_package(Zstd)\nfind_package(OpenSSL",
     "looks for package:Zstd"),
    ("net/CMakeLists.txt", "leasehold_room",
     "pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)\nleasehold_room",
     "looks for module:liburing"),
    ("tls/CMakeLists.txt", "find_package(OpenSSL", "find_path(LEASEHOLD_X x.hpp REQUIRED)\nfind_package(OpenSSL",
     "looks for header:x.hpp"),
    ("kv/CMakeLists.txt", "leasehold_room", "find_package(CLI11)\nleasehold_room", "libcli11-dev is of the part kv"),
    ("kv/rocksdb/CMakeLists.txt", "find_package(RocksDB REQUIRED)", "",
     "package:RocksDB, for which no CMake file looks"),
    ("packages.txt", "libssl-dev", "libssl-dev\nliburing-dev", "packages.txt has liburing-dev"),
    ("packages.txt", "nettle-dev ", "# ", "packages.txt does not"),
    (LIST, "kv        librocksdb-dev", "program   librocksdb-dev", "librocksdb-dev is of the part kv"),
    ("CMakeLists.txt", "leasehold VERSION 0.", "leasehold VERSION 7.", "that of the project 7."),
    ("CMakeLists.txt", "leasehold VERSION 0.", "leasehold VERSION 7.", "usage: it finds another version"),
    ("CMakeLists.txt", "option(LEASEHOLD_KV", "option(LEASEHOLD_STORE", "there is no option LEASEHOLD_KV"),
    ("CMakeLists.txt", "option(LEASEHOLD_C ", "option(LEASEHOLD_SO ", "has no option LEASEHOLD_C"),
    ("cmake/LeaseholdPackage.cmake", "leasehold_component(client ", "leasehold_component(clients ",
     "it has the components"),
    (PORT + "vcpkg.json", '"name": "leasehold",', '"name": "leasehold",,', "vcpkg.json: "),
    (PORT + "vcpkg.json", '"name": "leasehold",', '"name": "Leasehold",', "the name is Leasehold"),
    (PORT + "vcpkg.json", '"version"', '"versions"', "missing or unknown"),
    (PORT + "vcpkg.json", "Apache-2.0", "MIT", "the license is not"),
    (PORT + "vcpkg.json", '"asio",', '"asio", "boost",', "boost"),
    (PORT + "vcpkg.json", '"asio",', '"asio", "asio",', "there twice"),
    (PORT + "vcpkg.json", '"asio",', '"Asio_cpp",', "is no dependency"),
    (PORT + "vcpkg.json", '        "rocksdb"\n', "", "kv depends on"),
    (PORT + "vcpkg.json", '"default-features": [\n    "kv"', '"default-features": [\n    "store"',
     "a default feature is none"),
    (PORT + "portfile.cmake", "tools LEASEHOLD_TOOLS", "tool LEASEHOLD_TOOLS", "its features are not"),
    (PORT + "portfile.cmake", "-DLEASEHOLD_BUILD_TESTS=OFF", "", "it has no -DLEASEHOLD_BUILD_TESTS=OFF"),
    (PORT + "portfile.cmake", "../../../..", "../../..", "SOURCE_PATH is not the tree"),
    (PORT + "usage", "Leasehold::node", "Leasehold::raft", "there is no component raft"),
    (CONAN, "import re\n", "import re:\n", "SyntaxError"),
    (CONAN, "asio/[>=1.22.1 <2]", "asio/1.28.0", "has no lowest version"),
    (CONAN, '            self.requires("nettle/[>=3.8.1 <4]")\n', "", "nettle"),
    (CONAN, '        if self.options.kv:\n            self.requires', '        if True:\n            self.requires',
     "rocksdb"),
    (CONAN, 'cache_variables["LEASEHOLD_KV"]', 'cache_variables["LEASEHOLD_STORE"]', "no option LEASEHOLD_STORE"),
    (CONAN, "protobuf/<host_version>", "protobuf/3.21.12", "the compiler of protobuf"),
    (CONAN, '"tls": (["core"], ["fmt", "openssl"])', '"tls": ([], ["fmt", "openssl"])', "those below it"),
    (CONAN, '"node": (["core", "tls"], ["asio", ', '"node": (["core", "tls"], [', "no component needs ['asio']"),
    (CONAN, "if self.options.program and not self.options.kv", "if False", "validate() takes"),
    (CONAN, "Leasehold::{name}", "leasehold::{name}", "Leasehold::core"),
    (CONAN, '"cmake_file_name", "Leasehold"', '"cmake_file_name", "leasehold"', "another name"),
    ("packaging/conan/test_package/CMakeLists.txt", "Leasehold::node", "Leasehold::raft", "no component raft"),
)


def copy_of(tree, folder):
    for name in ("CMakeLists.txt", "LICENSE", "packages.txt"):
        shutil.copy(tree / name, folder / name)
    for name in ("cmake", "packaging"):
        shutil.copytree(tree / name, folder / name)
    for path in recipes.cmake_files(tree):
        place = folder / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)


def judge(tree, findings):
    """What recipes.py gets wrong: a clean copy that is refused, a fault that is not found."""
    return planted.judge(FAULTS, lambda folder: copy_of(tree, folder), findings)
