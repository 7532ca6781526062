"""Whether the answers of a measurement are linearizable. The clients of a part record what they asked of some keys, and
what was answered; the checker judges that when the part ends. Linearizability is a property of each key alone, so whole
keys are a sound sample."""

import re
import shutil
import subprocess

import cluster as c
import load_blocks
from sweeps import say

KEYS = 16
# At the end clients read and write the same keys at the same time, for so many seconds in each read mode of the part.
MIX_S = 0.5
MIX_CONNECTIONS = 8
ROW = "judged, "
OPERATIONS = "judged: operations"
VIOLATIONS = "judged: violations"


class Judge:
    """Of one cluster, in one part. Meanwhile nobody else may write the first keys of the cluster."""

    def __init__(self, options, report, name, port, value_bytes, keys=KEYS, modes=("lease",)):
        """`modes`: read modes, of what is asked at the end."""
        self.options, self.report, self.name = options, report, name
        self.port, self.value_bytes, self.keys, self.modes = port, value_bytes, keys, modes
        self.folder = options.work / ("history-" + re.sub(r"\W+", "-", name))
        self.folder.mkdir()
        self.files = []
        # A history has to know what a key held at its beginning.
        self.ask("load")

    def ask(self, command, keys=None, port=None):
        """`load` writes the first keys, `verify` reads them; if nothing else is said, those that are judged."""
        c.load(self.options.programs, command, port or self.port, keys or self.keys, self.value_bytes, self.file(),
               self.keys)

    def file(self):
        """For the history of one more process."""
        self.files.append(self.folder / f"{len(self.files)}.jsonl")
        return self.files[-1]

    def flags(self):
        """Of one more process of `leasehold bench`."""
        return ["--history", self.file(), "--judged-keys", self.keys]

    def mix(self, mode):
        """Where reads and writes do not overlap, an old value has few chances to be seen."""
        load_blocks.block(self.options.program, self.options.work, f"127.0.0.1:{self.port}", [
            "--workload", "ycsb-a", "--distribution", "uniform", "--keys", self.keys, "--value-size", self.value_bytes,
            "--connections", MIX_CONNECTIONS, "--read-mode", mode, *self.flags()], MIX_S)

    def conclude(self):
        """Errors: MeasureError, if the history is not linearizable; then it stays where it is."""
        for mode in self.modes:
            self.mix(mode)
        # Writes alone have an order, whatever was lost of them.
        self.ask("verify")
        history = joined(self.files, self.folder / "history.jsonl")
        verdict, text = judged(self.options.programs.parent / "check" / "leasehold_check", history)
        operations = sum(1 for _ in open(history, "rb"))
        if verdict is None:
            raise c.MeasureError(f"{self.name}: the checker gave no verdict on {history}: {text}")
        note(self.report, self.name, operations, 0 if verdict else 1)
        if not verdict:
            raise c.MeasureError(f"{self.name}: the history {history} is not linearizable:\n{text}")
        say(f"  {self.name}: judged: {text}")
        shutil.rmtree(self.folder)


def joined(files, path):
    """One history of all of them. A process that left none may have written what others read."""
    with open(path, "wb") as history:
        for file in files:
            try:
                with open(file, "rb") as one:
                    shutil.copyfileobj(one, history)
            except OSError as error:
                raise c.MeasureError(f"a client left no history: {error}") from error
    return path


def judged(checker, history):
    """(whether it is linearizable, what the checker says). None: it gave no verdict."""
    try:
        done = subprocess.run([str(checker), "--quiet", str(history)], capture_output=True, text=True, check=False)
    except OSError as error:
        return None, str(error)
    verdict = {0: True, 1: False}.get(done.returncode)
    return verdict, (done.stdout + done.stderr).strip()


def note(report, name, operations, violations):
    """A row for the part, and the sums over all parts, those of an earlier run among them."""
    report.value(ROW + name, operations, "operations")
    report.results[ROW + name]["violations"] = violations
    rows = [entry for row, entry in report.results.items() if row.startswith(ROW)]
    report.value(OPERATIONS, sum(entry["value"] for entry in rows), "")
    report.value(VIOLATIONS, sum(entry["violations"] for entry in rows), "")
