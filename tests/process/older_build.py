#!/usr/bin/env python3
"""Builds the program as it was at a commit of this repository, for upgrade.py, and prints its path.

  older_build.py WORK [--commit C]     WORK is a folder for its sources and its build; what is built stays there
"""

import argparse
import os
import subprocess
import sys

# Release 0.1.
FIRST = "8ebb529"
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("--commit", default=FIRST)
    options = parser.parse_args()
    folder = os.path.join(os.path.abspath(options.work), options.commit)
    source, build = os.path.join(folder, "source"), os.path.join(folder, "build")
    if not os.path.isdir(source):
        os.makedirs(source)
        with subprocess.Popen(["git", "-C", TREE, "archive", options.commit], stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", source], stdin=archive.stdout, check=True)
        if archive.returncode != 0:
            os.rmdir(source)
            sys.exit(f"{options.commit} is not a commit of {TREE}: a shallow clone has no history")
    # Its warnings are not those of today's compiler.
    subprocess.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG -w", "-DLEASEHOLD_WERROR=OFF",
                    "-DLEASEHOLD_BUILD_TESTS=OFF", "-DLEASEHOLD_BUILD_BENCH=OFF"], stdout=sys.stderr, check=True)
    subprocess.run(["ninja", "-C", build, "leasehold"], stdout=sys.stderr, check=True)
    print(os.path.join(build, "server", "leasehold"))


if __name__ == "__main__":
    main()
