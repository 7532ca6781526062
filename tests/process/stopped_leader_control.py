#!/usr/bin/env python3
"""Proves that stopped_leader.py can fail: builds a copy of the tree in which a lease read does not
look at the clock (controls/no_lease_check.patch), and expects stale answers from it."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import control_build

HERE = os.path.dirname(os.path.abspath(__file__))
PATCH = os.path.join(control_build.CONTROLS, "no_lease_check.patch")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", help="build here and keep it; default: a temporary folder")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp(prefix="leasehold-control-")
    try:
        binary, checker = control_build.build(folder, PATCH, options.jobs)
        control_build.run(sys.executable, "-B", os.path.join(HERE, "stopped_leader.py"),
                          "--binary", binary, "--checker", checker,
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
