#!/usr/bin/env python3
"""`make dist` gives the same bytes wherever and whenever it is run: in two clones, by users with other settings. What
is in the archive is what is committed, and the checksum beside it is right.

  source_archive.py TREE

Status 77: TREE is no clone, as an unpacked archive is none, or there is no git.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

SKIPPED_STATUS = 77
# What a user may have set that must not matter.
OTHERS = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "GZIP": "--rsyncable", "GIT_CONFIG_COUNT": "2",
          "GIT_CONFIG_KEY_0": "tar.umask", "GIT_CONFIG_VALUE_0": "user",
          "GIT_CONFIG_KEY_1": "core.abbrev", "GIT_CONFIG_VALUE_1": "12"}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{command} ended with status {done.returncode}: {done.stdout}")
    return done.stdout


def archive_of(tree, clone, environment, umask):
    """The path of the archive that `make dist` writes in a new clone."""
    run("git", "clone", "--quiet", "--shared", tree, clone)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    said = run("make", "--no-print-directory", "-C", clone, "dist", env={**clean, **environment},
               preexec_fn=lambda: os.umask(umask))
    found = sorted((clone / "build" / "dist").iterdir())
    if [path.suffix for path in found] != [".gz", ".sha256"]:
        sys.exit(f"make dist wrote {found}")
    archive, checksum = found
    expected = f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n"
    if checksum.read_text(encoding="ascii") != expected or expected not in said:
        sys.exit(f"{checksum.name} has {checksum.read_text(encoding='ascii')}, it is {expected}")
    return archive


def compare_with_commit(archive, tree):
    committed = set(run("git", "-C", tree, "ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0")) - {""}
    folder = archive.name.removesuffix(".tar.gz") + "/"
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if not member.isdir()]
        files = {member.name.removeprefix(folder) for member in members}
        if files != committed:
            sys.exit(f"the archive differs from the commit: {sorted(files ^ committed)[:20]}")
        odd = [member.name for member in members
               if member.mode & 0o022 or (member.uname, member.gname) != ("root", "root")]
        if odd:
            sys.exit(f"others could write these, or they are somebody's: {odd[:20]}")
        seen = tar.extractfile(folder + "README.md").read()
    if seen.decode("utf-8") != run("git", "-C", tree, "show", "HEAD:README.md"):
        sys.exit("README.md of the archive is another one")
    print(f"{archive.name}: {len(files)} files, {archive.stat().st_size} bytes")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tree = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("git") or not (tree / ".git").exists():
        print("skipped: the source is no clone, or git is not here")
        sys.exit(SKIPPED_STATUS)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        first = archive_of(tree, folder / "a", {}, 0o022)
        second = archive_of(tree, folder / "elsewhere", OTHERS, 0o077)
        if first.read_bytes() != second.read_bytes():
            sys.exit(f"two runs of make dist differ: {first}, {second}")
        compare_with_commit(first, tree)


if __name__ == "__main__":
    main()
