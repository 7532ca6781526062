"""The floor of a replicated write answers what clients of Redis send, redis-benchmark among them.

  null_floor_test.py FLOOR_NULL_REPLICATE
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from cluster import MeasureError, Process, Resp  # noqa: E402

REQUESTS = 2000


def check(what, told):
    if not what:
        sys.exit(f"null_floor_test: {told}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        floor = Process("null", [sys.argv[1], "--dir", folder, "--log-mib", 4, "serve"], folder, True)
        try:
            client = Resp(floor.port)
            client.socket.sendall(b"".join(map(Resp.request, (
                ("CONFIG", "GET", "save"), ("SET", "k", b"x" * 3), ("PING",), ("SET", "k", b"y" * 300_000)))))
            replies = [client.reply() for _ in range(4)]
            check(replies == [[b"save", b""], "OK", "PONG", "OK"], f"in turn were answered {replies}")
            try:
                check(False, f"GET was answered {client.command('GET', 'k')}")
            except MeasureError:
                pass  # an error
            client.close()
            benchmark = shutil.which("redis-benchmark")
            for pipeline in (1, 16) if benchmark else ():
                done = subprocess.run([benchmark, "-p", str(floor.port), "-t", "set", "-n", str(REQUESTS), "-c", "8",
                                       "-r", "1000", "-d", "256", "-P", str(pipeline), "--csv"],
                                      capture_output=True, text=True, timeout=40)
                check(done.returncode == 0 and '"SET"' in done.stdout, f"redis-benchmark: {done.stdout}{done.stderr}")
        finally:
            floor.stop()


if __name__ == "__main__":
    main()
