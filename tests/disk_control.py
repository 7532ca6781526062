"""The faults of one node's disk, by a library before the unmodified program (process/disk_shim.cc). The tests of real
processes and the measurements use it."""

import os
import struct


class DiskControl:
    """What the test and the library share, in a file that both have open. Numbers are read and written while the node
    runs."""

    # Of 64 bits, in the order of `Control` in disk_shim.cc.
    FIELDS = ("skip_syncs", "hold_writes", "leak_per_mille", "seed", "syncs_until_fail",
              "fail_errno", "stalls", "stall_ms", "full",
              "syncs", "failed", "stalled", "held", "refused")

    def __init__(self, path):
        self._path = os.path.abspath(path)
        with open(self._path, "wb") as file:
            file.write(bytes(8 * len(self.FIELDS)))
        self._file = os.open(self._path, os.O_RDWR)

    def environment(self, library, folder):
        """That of a node whose data is in the folder."""
        return {"LD_PRELOAD": os.path.abspath(library), "DISK_SHIM_FOLDER": os.path.realpath(folder),
                "DISK_SHIM_CONTROL": self._path}

    def get(self, field):
        return struct.unpack("q", os.pread(self._file, 8, 8 * self.FIELDS.index(field)))[0]

    def set(self, **values):
        for field, value in values.items():
            os.pwrite(self._file, struct.pack("q", value), 8 * self.FIELDS.index(field))

    def stall(self, seconds, count=1):
        """The next `count` syncs take that long."""
        self.set(stall_ms=round(seconds * 1000), stalls=count)
