"""Builds a copy of the tree with a deliberate bug, for tests that have to fail on it.

  control_build.py    whether each bug of controls/ can still be made in this tree
"""

import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
CONTROLS = os.path.join(HERE, "controls")
TARGETS = ("leasehold", "leasehold_check_program")


def run(*command, **options):
    print("$ " + " ".join(command), flush=True)
    subprocess.run(command, check=True, **options)


def build(folder, patch, jobs=os.cpu_count(), targets=TARGETS):
    """Under `folder`, where each patch, given as a path, has a place of its own. Returns the program
    and the checker; raises CalledProcessError."""
    place = os.path.join(folder, os.path.splitext(os.path.basename(patch))[0])
    copy, made = os.path.join(place, "tree"), os.path.join(place, "build")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(TREE, copy, ignore=shutil.ignore_patterns("build", ".git", ".cache"))
    run("patch", "-p1", "--fuzz=0", "-i", patch, cwd=copy)
    run("cmake", "-S", copy, "-B", made, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        stdout=subprocess.DEVNULL)
    run("ninja", "-C", made, "-j", str(jobs), "--quiet", *targets)
    return (os.path.join(made, "server", "leasehold"),
            os.path.join(made, "check", "leasehold_check"))


def check():
    stale = 0
    for patch in sorted(glob.glob(os.path.join(CONTROLS, "*.patch"))):
        done = subprocess.run(["patch", "-p1", "--fuzz=0", "--dry-run", "--force", "-i", patch], cwd=TREE,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            stale += 1
            print(f"{os.path.relpath(patch, TREE)} does not fit the tree any more:\n{done.stdout}{done.stderr}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(check())
