#!/usr/bin/env python3
"""The shared library shows exactly the functions that its header declares, under their version."""

import argparse
import re
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--header", required=True)
    parser.add_argument("--library", required=True)
    options = parser.parse_args()
    with open(options.header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    # A declaration begins at the start of a line; members of structures are indented.
    declared = set(re.findall(r"^(?!typedef)\w[\w ]*\*?\s+\*?(leasehold_\w+)\(", text, re.M))
    listed = subprocess.run(["nm", "--dynamic", "--defined-only", "--with-symbol-versions", options.library],
                            capture_output=True, text=True, check=True).stdout
    shown = {line.split()[-1] for line in listed.splitlines() if line.split()[1] not in ("A", "a")}
    wanted = {f"{name}@@LEASEHOLD_0" for name in declared}
    if len(declared) < 10:
        sys.exit(f"the header declares only {sorted(declared)}")
    if shown != wanted:
        sys.exit(f"declared and not shown: {sorted(wanted - shown)}; shown and not declared: {sorted(shown - wanted)}")
    print(f"{len(shown)} functions, and nothing else")


if __name__ == "__main__":
    main()
