#!/usr/bin/env python3
"""Reads the headers of a program and says whether it is hardened: position-independent, its relocated data
read-only before main() runs, no stack that is executed, calls of the checked functions of the C library, and
marks where an indirect jump may land.

  hardened.py PROGRAM [--no-fortify]
  hardened.py --control CXX --work DIR     a program without any of it fails each check
"""

import argparse
import os
import platform
import struct
import subprocess
import sys

ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 3, 0x6474e551, 0x6474e552
PF_X, PF_W = 1, 2
DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_TEXTREL, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1 = 5, 6, 10, 22, 24, 30, 0x6ffffffb
DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 8, 1, 0x08000000
ENDBR64 = b"\xf3\x0f\x1e\xfa"
# Of a program of this size; a handful come from the C library's own start files.
LANDING_PLACES_MIN = 100


class Elf:
    """A 64-bit little-endian ELF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            sys.exit(f"{path} is no 64-bit little-endian ELF file")
        self.type, = struct.unpack_from("<H", self.bytes, 16)
        at, = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        fields = "type flags offset address physical file_size memory_size align".split()
        self.segments = [dict(zip(fields, struct.unpack_from("<IIQQQQQQ", self.bytes, at + i * size)))
                         for i in range(count)]
        self.dynamic = {}
        for segment in self.of(PT_DYNAMIC):
            for at in range(segment["offset"], segment["offset"] + segment["file_size"], 16):
                tag, value = struct.unpack_from("<QQ", self.bytes, at)
                self.dynamic.setdefault(tag, value)

    def of(self, kind):
        return [segment for segment in self.segments if segment["type"] == kind]

    def offset_of(self, address):
        for segment in self.of(PT_LOAD):
            if segment["address"] <= address < segment["address"] + segment["file_size"]:
                return address - segment["address"] + segment["offset"]
        return sys.exit(f"no segment holds the address {address:x}")

    def names(self):
        """Of all functions of shared libraries that it uses, and of its own that they see."""
        start = self.offset_of(self.dynamic[DT_STRTAB])
        return set(self.bytes[start:start + self.dynamic[DT_STRSZ]].decode(errors="replace").split("\0"))

    def code(self):
        """The section .text: the linker's own jumps to shared libraries, which it marks always, are in others."""
        at, = struct.unpack_from("<Q", self.bytes, 40)
        size, count, names = struct.unpack_from("<HHH", self.bytes, 58)
        sections = [struct.unpack_from("<IIQQQQ", self.bytes, at + i * size) for i in range(count)]
        for name, _, _, _, offset, length in sections:
            start = sections[names][4] + name
            if self.bytes[start:start + 6] == b".text\0":
                return self.bytes[offset:offset + length]
        return sys.exit("it has no section .text")


def weaknesses(elf, fortified):
    """What is missing, as sentences."""
    flags, flags_1 = elf.dynamic.get(DT_FLAGS, 0), elf.dynamic.get(DT_FLAGS_1, 0)
    names = elf.names()
    stacks = elf.of(PT_GNU_STACK)
    checks = {
        "it is not position-independent": elf.type == ET_DYN and bool(elf.of(PT_INTERP)) and flags_1 & DF_1_PIE,
        "functions are bound when they are first called": flags & DF_BIND_NOW or flags_1 & DF_1_NOW or
                                                          DT_BIND_NOW in elf.dynamic,
        "relocated data stays writable": bool(elf.of(PT_GNU_RELRO)),
        "its stack is executable": bool(stacks) and not any(stack["flags"] & PF_X for stack in stacks),
        "a segment is both writable and executable": not any(segment["flags"] & PF_X and segment["flags"] & PF_W
                                                             for segment in elf.of(PT_LOAD)),
        "its code is relocated": DT_TEXTREL not in elf.dynamic,
        "its stack is not protected": "__stack_chk_fail" in names,
    }
    if fortified:
        # Names like __memcpy_chk and __snprintf_chk.
        checks["it calls no checked function of the C library"] = any(
            name.startswith("__") and name.endswith("_chk") for name in names)
    if platform.machine() == "x86_64":
        # The property in a note needs the C library's start files to have it, which Debian's have not. Our own code
        # is what the compiler's flag decides.
        checks["places where an indirect jump may land are not marked"] = \
            elf.code().count(ENDBR64) >= LANDING_PLACES_MIN
    return [weakness for weakness, strong in checks.items() if not strong]


def control(cxx, folder):
    """The opposite of each flag: every check that can fail here has to."""
    os.makedirs(folder, exist_ok=True)
    source, program = os.path.join(folder, "weak.cc"), os.path.join(folder, "weak")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <cstring>\n#include <cstdio>\nint main(int n, char** words) {\n"
                   "  char text[64];\n  std::strcpy(text, words[n - 1]);\n  std::puts(text);\n}\n")
    subprocess.run([cxx, "-O2", "-fno-stack-protector", "-fcf-protection=none", "-U_FORTIFY_SOURCE", "-no-pie",
                    "-fno-pie", "-Wl,-z,norelro,-z,lazy,-z,execstack", source, "-o", program], check=True)
    expected = {"it is not position-independent", "functions are bound when they are first called",
                "relocated data stays writable", "its stack is executable", "its stack is not protected",
                "it calls no checked function of the C library"}
    if platform.machine() == "x86_64":
        expected.add("places where an indirect jump may land are not marked")
    found = set(weaknesses(Elf(program), True))
    if not expected <= found:
        sys.exit(f"a weak program passes: {sorted(expected - found)} were not found")
    print(f"found in a weak program: {', '.join(sorted(found))}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--no-fortify", action="store_true", help="a build without an optimiser, or with sanitizers")
    parser.add_argument("--control", metavar="CXX")
    parser.add_argument("--work")
    options = parser.parse_args()
    if options.control:
        control(options.control, options.work)
        return
    found = weaknesses(Elf(options.program), not options.no_fortify)
    if found:
        sys.exit(f"{options.program}: " + "; ".join(found))
    print(f"{options.program} is hardened")


if __name__ == "__main__":
    main()
