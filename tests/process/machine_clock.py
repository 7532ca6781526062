"""The clocks of one node, by a library that is preloaded before the program (clock_shim.cc), and the
device by which a host tells a virtual machine that it was stopped."""

import mmap
import os
import struct


class Clock:
    """Changes hold for this process of the node and for the ones after it."""

    FIELDS = ("monotonic_ppm", "boottime_ppm", "slept_ns", "lost_ns", "jumped_ns", "wall_ns",
              "change", "seen")

    def __init__(self, library, node):
        path = node.log_path + ".clock"
        with open(path, "wb") as file:
            file.write(bytes(8 * len(self.FIELDS)))
        self._file = os.open(path, os.O_RDWR)
        self._values = dict.fromkeys(self.FIELDS, 0)
        before = node.environment.get("LD_PRELOAD")
        node.environment.update(
            LD_PRELOAD=":".join([*([before] if before else []), os.path.abspath(library)]),
            CLOCK_SHIM_CONTROL=path)

    def close(self):
        os.close(self._file)

    def _set(self, **values):
        values["change"] = self._values["change"] + 1
        self._values.update(values)
        for field, value in values.items():  # `change` is the last
            os.pwrite(self._file, struct.pack("q", value), 8 * self.FIELDS.index(field))

    def drift(self, monotonic_ppm, boottime_ppm):
        """From now on each clock gains this many microseconds a second."""
        self._set(monotonic_ppm=monotonic_ppm, boottime_ppm=boottime_ppm)

    def slept(self, seconds):
        """The machine was suspended for this time: CLOCK_MONOTONIC stood still. Call it while the
        process is stopped, and has been for longer, or its clock would run backwards."""
        self._set(slept_ns=self._values["slept_ns"] + round(seconds * 1e9))

    def lost(self, seconds):
        """The host stopped the machine for this time: both clocks stood still. Call it as slept()."""
        self._set(lost_ns=self._values["lost_ns"] + round(seconds * 1e9))

    def jump(self, seconds):
        """CLOCK_BOOTTIME is ahead by this much more."""
        self._set(jumped_ns=self._values["jumped_ns"] + round(seconds * 1e9))

    def wall(self, seconds):
        """CLOCK_REALTIME is off by this much."""
        self._set(wall_ns=round(seconds * 1e9))


class VmClock:
    """The page of a VM clock, as a file for --vm-clock."""

    MARKER = 16  # the offset of the disruption marker

    def __init__(self, path):
        self.path = path
        # Its head: "VCLK", its size, version 1.
        head = struct.pack("<IIHBBIQ", 0x4B4C4356, 4096, 1, 0, 0, 0, 1)
        with open(path, "w+b") as file:
            file.write(head.ljust(mmap.PAGESIZE, b"\0"))
            file.flush()
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def disrupted(self):
        """The machine was stopped, or moved."""
        marker, = struct.unpack_from("=Q", self._page, self.MARKER)
        struct.pack_into("=Q", self._page, self.MARKER, marker + 1)
