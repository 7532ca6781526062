"""What clients did and saw: a history for the linearizability checker, and a ledger of unique
writes."""

import itertools
import json
import subprocess
import threading
import time

import resp
from cluster import Failed, check

# Violations that the report of a failed read-back names.
SHOWN_MAX = 10


class History:
    """Operations on registers. Values are numbers that are never used twice, as the checker wants
    them. Any thread may record. docs/formats/history.md has the lines."""

    def __init__(self):
        self._lines = []
        self._values = itertools.count(1)
        self._lock = threading.Lock()

    def __len__(self):
        return len(self._lines)

    def new_value(self):
        with self._lock:
            return next(self._values)

    @staticmethod
    def now():
        return time.monotonic_ns()

    def wrote(self, client, key, value, invoked, reply, returned=None):
        """`reply` None: no answer came. A write that was certainly not executed is left out."""
        if isinstance(reply, resp.RespError):
            if reply.not_executed:
                return
            check(reply.unknown, f"SET was answered {reply!r}")
            reply = None
        if reply is not None and returned is None:
            returned = self.now()
        self._add(client, key, "put", value, invoked, returned if reply is not None else None)

    def read(self, client, key, reply, invoked, returned=None):
        """A read that was refused says nothing and is left out."""
        if isinstance(reply, resp.RespError):
            check(reply.not_executed, f"GET was answered {reply!r}")
            return
        value = None if reply is None else int(reply)
        self._add(client, key, "get", value, invoked, self.now() if returned is None else returned)

    def swapped(self, client, key, expect, value, invoked, answered):
        """A compare-and-set that wrote, or, without an answer, perhaps has."""
        more = {"expect": expect, "ok": True} if answered else {"expect": expect}
        self._add(client, key, "cas", value, invoked, self.now() if answered else None, more)

    def _add(self, client, key, op, value, invoked, returned, more=None):
        line = json.dumps({"client": client, "op": op, "key": key, "value": value,
                           "start": invoked, "end": returned, **(more or {})})
        with self._lock:
            self._lines.append(line + "\n")

    def save(self, path):
        """As `leasehold check` reads it."""
        with open(path, "w", encoding="ascii") as file:
            file.writelines(self._lines)

    def judge(self, *checker):
        """(linearizable, what the checker said)."""
        run = subprocess.run([*checker, "--quiet", "-"], input="".join(self._lines), text=True, timeout=120,
                             capture_output=True, check=False)
        if run.returncode not in (0, 1):
            raise Failed(f"the checker gave no verdict: {run.stdout}{run.stderr}")
        return run.returncode == 0, run.stdout.strip()


class Ledger:
    """Writes of unique values under unique keys, each of which must be found again exactly as its
    answer said."""

    def __init__(self, prefix):
        self._prefix = prefix
        self._numbers = itertools.count()
        self.acked = set()
        self.unknown = set()
        self.not_executed = set()

    def next(self):
        number = next(self._numbers)
        return number, *self.words(number)

    def words(self, number):
        """Key and value of a write."""
        return f"{self._prefix}:{number}", f"value-{number}-{number * 2654435761 % (1 << 32):08x}"

    def record(self, number, reply):
        """`reply` None: no answer came."""
        if reply == "OK":
            self.acked.add(number)
        elif reply is None or (isinstance(reply, resp.RespError) and reply.unknown):
            self.unknown.add(number)
        elif isinstance(reply, resp.RespError) and reply.not_executed:
            self.not_executed.add(number)
        else:
            raise Failed(f"SET of the ledger was answered {reply!r}")

    def summary(self):
        return (f"{len(self.acked)} acknowledged, {len(self.unknown)} of unknown outcome, "
                f"{len(self.not_executed)} not executed")

    def read_back(self, node, batch=500):
        """Reads everything at `node`. An acknowledged write must be there, one that was not
        executed must not, an unknown one may be either, but only with its own value."""
        numbers = sorted(self.acked | self.unknown | self.not_executed)
        wrong = []
        found_unknown = 0
        with node.client(timeout=20) as client:
            for begin in range(0, len(numbers), batch):
                part = numbers[begin:begin + batch]
                replies = client.pipeline([("GET", self.words(number)[0]) for number in part])
                for number, reply in zip(part, replies):
                    value = self.words(number)[1].encode()
                    if number in self.acked:
                        right = reply == value
                    elif number in self.not_executed:
                        right = reply is None
                    else:
                        right = reply is None or reply == value
                        found_unknown += reply == value
                    if not right:
                        kind = ("acknowledged" if number in self.acked else
                                "not executed" if number in self.not_executed else "unknown")
                        wrong.append(f"{self.words(number)[0]} ({kind}) reads {reply!r}")
        check(not wrong, f"{len(wrong)} of {len(numbers)} writes are wrong at {node}: " +
              "; ".join(wrong[:SHOWN_MAX]))
        return len(numbers), found_unknown
