"""Stalls of the disk under a node: tests/process/disk_shim.cc, a library before the unmodified program."""

import os
import pathlib
import struct

# Numbers of 64 bits, in the order of `Control` in disk_shim.cc.
FIELDS = ("skip_syncs", "hold_writes", "leak_per_mille", "seed", "syncs_until_fail", "fail_errno", "stalls", "stall_ms",
          "full", "syncs", "failed", "stalled", "held", "refused")


def library(options):
    """Where it is, or None."""
    places = [options.shim] if options.shim else [options.build_dir / "tests" / "process" / "disk_shim.so"]
    return next((place.resolve() for place in places if place.exists()), None)


class Stalls:
    """Of one node."""

    def __init__(self, shim, folder, node):
        self.path = pathlib.Path(folder) / f"node{node}.disk"
        self.path.write_bytes(bytes(8 * len(FIELDS)))
        self.environment = {"LD_PRELOAD": str(shim), "DISK_SHIM_FOLDER": os.path.realpath(f"{folder}/n{node}"),
                            "DISK_SHIM_CONTROL": str(self.path)}

    def get(self, field):
        with self.path.open("rb") as file:
            file.seek(8 * FIELDS.index(field))
            return struct.unpack("q", file.read(8))[0]

    def set(self, field, value):
        with self.path.open("r+b", buffering=0) as file:
            file.seek(8 * FIELDS.index(field))
            file.write(struct.pack("q", value))

    def begin(self, seconds):
        """The next sync of the log takes that long."""
        self.set("stall_ms", round(seconds * 1000))
        self.set("stalls", 1)
