"""frame_proxy.py as a process, and the commands to its links."""

import json
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).resolve().parent / "frame_proxy.py"
END_SECONDS = 10


class ProxyProcess:
    """Faults of one link at a time: the newest. `targets` and `sources` as in frame_proxy.py."""

    def __init__(self, seed, targets, sources):
        self._process = subprocess.Popen([sys.executable, "-B", str(PROGRAM)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, start_new_session=True)
        self._say({"seed": seed, "targets": targets, "sources": sources})
        if self._process.stdout.readline() != "ready\n":
            raise OSError("the proxy did not start")
        self._faults = {}

    def _say(self, value):
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def add(self, token, pairs, values):
        """Until remove(token). Where two faults meet, the newer one wins by name."""
        self._faults[token] = pairs, values
        self._tell(pairs)

    def remove(self, token):
        pairs, _ = self._faults.pop(token)
        self._tell(pairs)

    def moves_in(self, node, place):
        """A node that has another number than its place in `targets`."""
        self._say({"node": node, "place": place})

    def _tell(self, pairs):
        for source, target in pairs:
            values = {}
            for among, fault in self._faults.values():
                if (source, target) in among:
                    values.update(fault)
            self._say({"from": source, "to": target, "set": values})

    def close(self):
        """What it did, by name."""
        self._process.stdin.close()
        text = self._process.stdout.read()
        self._process.wait(END_SECONDS)
        return json.loads(text or "{}")
