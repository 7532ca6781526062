#!/usr/bin/env python3
"""Proves that stopped_leader.py can fail: builds a copy of the tree in which a lease read does not
look at the clock (controls/no_lease_check.patch), and expects stale answers from it."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
PATCH = os.path.join(HERE, "controls", "no_lease_check.patch")


def run(*command, **options):
    print("$ " + " ".join(command), flush=True)
    subprocess.run(command, check=True, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", help="build here and keep it; default: a temporary folder")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp(prefix="leasehold-control-")
    copy, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
    try:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(TREE, copy, ignore=shutil.ignore_patterns("build", ".git", ".cache"))
        run("patch", "-p1", "--fuzz=0", "-i", PATCH, cwd=copy)
        run("cmake", "-S", copy, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
        run("ninja", "-C", build, "-j", str(options.jobs), "leasehold", "leasehold_check_program")
        run(sys.executable, "-B", os.path.join(HERE, "stopped_leader.py"),
            "--binary", os.path.join(build, "server", "leasehold"),
            "--checker", os.path.join(build, "check", "leasehold_check"),
            "--rounds", str(options.rounds), "--expect-stale")
    except subprocess.CalledProcessError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)
    print("the control did what it should: without the lease check the test fails")
    return 0


if __name__ == "__main__":
    sys.exit(main())
