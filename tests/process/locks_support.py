"""`leasehold lock` for tests: one that runs to its end, and one whose command runs on."""

import subprocess
import threading
import time

import resp
from cluster import check, wait_for


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Locks:
    """The program at one cluster. `timing` are flags of every lock."""

    def __init__(self, cluster, timing=()):
        self.cluster = cluster
        self.timing = timing
        self.ports = [node.port for node in cluster.nodes]
        self.servers = ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def words(self, name, *command, flags=()):
        return [self.cluster.binary, "lock", name, "--servers", self.servers,
                *self.timing, *flags, "--", *command]

    def run(self, status, name, *command, flags=()):
        """To its end. Returns what it and its command wrote."""
        done = subprocess.run(self.words(name, *command, flags=flags), capture_output=True,
                              text=True, timeout=60, check=False)
        check(done.returncode == status,
              f"{command}: status {done.returncode}, not {status}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def start(self, name, *command, flags=(), prepare=None, stderr=subprocess.STDOUT):
        return Held(self.words(name, *command, flags=flags), prepare, stderr)

    def call(self, *words):
        """At any node that takes it."""
        def attempt():
            for port in self.ports:
                with resp.Client(port) as client:
                    answer = client.call(*words)
                if not (isinstance(answer, resp.RespError) and answer.not_executed):
                    return [answer]
            return None
        return wait_for(f"an answer to {words}", 20, attempt)[0]

    def queue(self, name):
        """(kind, holder, lease) of each, in their order: the first one holds the lock."""
        rows = self.call("LEASEHOLD", "RANGE", f"leasehold/queue/{name}/", "VALUES")[2]
        rows.sort(key=lambda row: row[2])
        return [(*row[5].decode().split(" ", 1), row[4]) for row in rows]

    def holder(self, name):
        """As --holder says; behind it stands what no other has."""
        queue = self.queue(name)
        return queue[0][1].split(":")[0] if queue else None


class Held:
    """A lock with a command that runs on; its lines as they come."""

    def __init__(self, words, prepare=None, stderr=subprocess.STDOUT):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=stderr, text=True, preexec_fn=prepare)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_line(self, start, seconds=20):
        """The first line that begins so."""
        return wait_for(f"a line '{start}...' in {self.lines}", seconds, lambda: next(
            (line for line in self.lines if line.startswith(start)), None))

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def end(self, status, seconds=20):
        """Waits for its end, and returns when that was."""
        ended = self.process.wait(seconds)
        at = time.monotonic()
        self._reader.join(5)
        check(ended == status, f"status {ended}, not {status}: {self.lines}")
        return at

    def child(self):
        """The process of the command."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[0])
