"""Threads of a process that stand still while its others run: what a hanging disk or a bug does."""

import contextlib
import ctypes
import os

from cluster import Skipped, check

PTRACE_DETACH = 17
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
WALL = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def threads(process, name):
    """The numbers of those with this name."""
    folder = f"/proc/{process}/task"
    found = []
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/comm", encoding="utf-8", errors="replace") as file:
            if file.read().strip() == name:
                found.append(int(thread))
    return found


@contextlib.contextmanager
def stopped(process, name):
    """Stops them for the block. Only the thread that entered the block may leave it."""
    found = threads(process, name)
    check(found, f"process {process} has no thread {name}")
    held = []
    try:
        for thread in found:
            if _libc.ptrace(PTRACE_SEIZE, thread, None, None) != 0:
                raise Skipped(f"threads cannot be stopped here: ptrace: {os.strerror(ctypes.get_errno())}")
            held.append(thread)
            check(_libc.ptrace(PTRACE_INTERRUPT, thread, None, None) == 0, f"{name} does not stop")
            os.waitpid(thread, WALL)
        yield
    finally:
        for thread in held:
            _libc.ptrace(PTRACE_DETACH, thread, None, None)
