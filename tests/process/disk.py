"""Disks that fail on command. Two kinds, which prove different things:

LoopDisk: a real ext4 in a file of its own per node, cut off by the kernel's own "shut down" call.
Everything counts: the calls of the program, the kernel's page cache, the file system's journal.
Needs root.

Shim: a library before the unmodified program (disk_shim.cc) that keeps the unsynced writes of the
log from the file. It needs no rights and tears writes inside a batch, but knows nothing of file
systems."""

import ctypes
import errno
import fcntl
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time

from cluster import Failed, Skipped, check

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from disk_control import DiskControl  # noqa: E402  pylint: disable=wrong-import-position

CLONE_NEWNS = 0x00020000
FS_IOC_SHUTDOWN = 0x8004587D
# Neither the data nor the journal is written any more.
SHUTDOWN_NOLOGFLUSH = 2
UNMOUNT_SECONDS = 10


def _command(*words):
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failed(f"{' '.join(words)}: {run.stderr.strip()}")


def enter_private_mounts():
    """Mounts of this process end with it, however it ends. Skips the test where that, or a loop
    device, is not allowed."""
    if os.geteuid() != 0:
        raise Skipped("mounting a disk of our own needs root")
    if not os.path.exists("/dev/loop-control") or shutil.which("mkfs.ext4") is None:
        raise Skipped("no loop devices, or no mkfs.ext4")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise Skipped(f"no mounts of our own: {os.strerror(ctypes.get_errno())}")
    try:
        _command("mount", "--make-rprivate", "/")
    except Failed as error:
        raise Skipped(str(error)) from error


class LoopDisk:
    """An ext4 in a file, mounted at `path`. Call enter_private_mounts() before."""

    def __init__(self, path, mebibytes):
        self.path = path
        self._image = path + ".ext4"
        with open(self._image, "wb") as image:
            image.truncate(mebibytes << 20)
        # Everything is made at once: nothing of it happens during a test.
        _command("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0",
                 self._image)
        os.makedirs(path)
        self._mounted = False
        self.mount()

    def mount(self):
        """Replays the journal, as after a power cut."""
        try:
            _command("mount", "-o", "loop", self._image, self.path)
        except Failed as error:
            if "loop" in str(error):
                raise Skipped(str(error)) from error
            raise
        self._mounted = True

    def cut(self):
        """Power off: what is not synced is lost. Nothing may run on it any more. A process that
        still runs can be told by ext4 that a sync succeeded which the cut has just undone (the blocks
        or the conversion of new extents were in the journal that was thrown away; seen in a tenth to
        a quarter of all cuts), which no disk without power does: so kill first."""
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, FS_IOC_SHUTDOWN, struct.pack("I", SHUTDOWN_NOLOGFLUSH))
        finally:
            os.close(folder)
        self.unmount()

    def unmount(self):
        if not self._mounted:
            return
        deadline = time.monotonic() + UNMOUNT_SECONDS
        while True:
            try:
                _command("umount", self.path)
                break
            except Failed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        self._mounted = False


class Shim(DiskControl):
    """The faults of one node's disk, from now on or from its next start."""

    def __init__(self, library, node):
        # Not on the disk itself, which could not be unmounted then.
        super().__init__(node.log_path + ".disk")
        node.environment.update(self.environment(library, node.data_dir))

    def hold(self, leak_per_mille=300):
        """kill -9 is a power cut from the next start on."""
        self.set(hold_writes=1, leak_per_mille=leak_per_mille, seed=random.getrandbits(62))

    def fail_sync(self, number=1, error=errno.EIO):
        """The `number`-th sync from now fails."""
        self.set(fail_errno=error, syncs_until_fail=number)


def cluster_of(folder):
    """The cluster in the mark of a log's folder, as hex digits."""
    with open(os.path.join(folder, "LEASEHOLD"), "rb") as mark:
        found = re.search(rb"^cluster ([0-9a-f]+)$", mark.read(), re.MULTILINE)
    check(found, f"{folder} has no mark with a cluster")
    return found.group(1).decode()


def dump_folder(program, folder, node_id, cluster, *more):
    """The contents of a log's folder that no process uses: (the lines, None), or (None, why it is refused).
    Writes to the folder."""
    words = [program, folder, str(node_id), cluster, *more]
    run = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    if run.returncode == 1:
        return None, run.stderr.strip()
    check(run.returncode == 0, f"{' '.join(words)}: status {run.returncode}: {run.stderr}")
    return run.stdout.splitlines(), None


def log_facts(program, node, groups=1):
    """Of a node that does not run: for each group that its log has, the hard state and the end of the log by name."""
    folder = os.path.join(node.data_dir, "log")
    copy = node.data_dir + ".copy"
    shutil.copytree(folder, copy)
    try:
        lines, refusal = dump_folder(program, copy, node.id, cluster_of(folder), *(["--groups"] if groups > 1 else []))
    finally:
        shutil.rmtree(copy)
    check(refusal is None, f"the log of {node} is refused: {refusal}")
    facts = {} if groups > 1 else {1: {}}
    group = 1
    for name, value in (line.split(" ", 1) for line in lines):
        if name == "group":
            group = int(value)
            facts[group] = {}
        elif not name.startswith("entry"):
            facts[group][name] = value
    return facts
