#!/usr/bin/env python3
"""Simulates groups whose members run this code or release 0.1, and change between the two while they are upgraded.

  run.py [--work WORK] [options of `leasehold sim`]     such as --seeds 1..2000 --jobs 2 --keep-going

WORK is a folder for the sources of that release, taken from this repository's history, and for the build; what is
there stays (default: build/mixed). Exit status: that of `leasehold sim`.
"""

import os
import shutil
import subprocess
import sys

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMIT = "8ebb529"
NAME = "leasehold_0_1"
ROOMS = ["base", "lease", "net", "node", "raft", "storage", "wire"]


def prepare(folder):
    """The sources under another name, so that one program can hold both versions."""
    if os.path.isdir(folder):
        return
    fresh = folder + ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(os.path.join(fresh, NAME))
    with subprocess.Popen(["git", "-C", TREE, "archive", COMMIT, *ROOMS], stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x", "-C", os.path.join(fresh, NAME)], stdin=archive.stdout, check=True)
    if archive.returncode != 0:
        sys.exit(f"{COMMIT} is not a commit of {TREE}: a shallow clone has no history")
    for path, _, files in os.walk(fresh):
        for name in files:
            if not name.endswith((".h", ".cc", ".proto")):
                continue
            with open(os.path.join(path, name), encoding="utf-8") as source:
                text = source.read()
            text = text.replace("leasehold", NAME).replace("LEASEHOLD", NAME.upper())
            text = text.replace(f"<{NAME}/wire/raft.pb.h>", f'"{NAME}/wire/raft.pb.h"')
            with open(os.path.join(path, name), "w", encoding="utf-8") as source:
                source.write(text)
    os.rename(fresh, folder)


def main():
    given = sys.argv[1:]
    if given and given[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    work = os.path.join(TREE, "build", "mixed")
    if given and given[0] == "--work":
        if len(given) < 2:
            sys.exit("--work needs a folder")
        work, given = os.path.abspath(given[1]), given[2:]
    earlier, build = os.path.join(work, "earlier"), os.path.join(work, "build")
    prepare(earlier)
    subprocess.run(["cmake", "-S", TREE, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DCMAKE_CXX_FLAGS_RELEASE=-O2", "-DLEASEHOLD_BATCHES=ON", "-DLEASEHOLD_BUILD_BENCH=OFF",
                    f"-DLEASEHOLD_EARLIER={earlier}"], stdout=sys.stderr, check=True)
    subprocess.run(["ninja", "-C", build, "leasehold_mixed_sim"], stdout=sys.stderr, check=True)
    program = os.path.join(build, "tests", "mixed", "leasehold_mixed_sim")
    return subprocess.run([program, *given], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
