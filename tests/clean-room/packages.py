#!/usr/bin/env python3
"""Installs the Debian packages of BUILD on this machine, which is one to throw away (tests/clean-room/run makes one):
what they bring, a group of three nodes as the unit runs them, an upgrade to the next revision under load, the removal.

  tests/clean-room/packages.py BUILD --this-machine
"""

import argparse
import glob
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests" / "process"))
import resp  # noqa: E402
from cluster import check, wait_for  # noqa: E402

NAMES = ("leasehold", "libleasehold0", "libleasehold-dev")
UNIT = "/lib/systemd/system/leasehold.service"
CONFIG = "/etc/leasehold/leasehold.toml"
PROGRAM_BYTES_MAX = 8_000_000
INSTALLED_KIB_MAX = 40_000
CLIENTS, PEERS = 7200, 7300
NODES = (1, 2, 3)
# Nothing is uploaded to Debian; the scripts that call ldconfig are CPack's.
NOT_OURS = ("initial-upload-closes-no-bugs", "maintscript-calls-ldconfig")
# A node that restarts transfers its leadership first.
GAP_MAX_S = 2.0


def run(*command, **options):
    print("+", shlex.join(str(word) for word in command), flush=True)
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    check(done.returncode == 0, f"{command[0]} ended with status {done.returncode}: {done.stdout}")
    return done.stdout


def install(folder):
    packages = [path for name in NAMES for path in glob.glob(f"{folder}/{name}_*.deb")]
    check(len(packages) == len(NAMES), f"{folder} has {packages}")
    if shutil.which("lintian"):
        print(run("lintian", "--fail-on", "error,warning", "--suppress-tags", ",".join(NOT_OURS), "--allow-root",
                  *packages), end="")
    else:
        print("lintian is not installed: the packages are not looked at")
    run("apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", *packages,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def look_at_what_is_there():
    state = pathlib.Path("/var/lib/leasehold").stat()
    check(state.st_mode & 0o777 == 0o700, "/var/lib/leasehold is not private")
    owner = run("stat", "-c", "%U:%G", "/var/lib/leasehold").strip()
    check(owner == "leasehold:leasehold", f"/var/lib/leasehold is of {owner}")
    mode = run("stat", "-c", "%G %a", "/etc/leasehold").strip()
    check(mode == "leasehold 750", f"/etc/leasehold is {mode}")
    size = pathlib.Path("/usr/bin/leasehold").stat().st_size
    installed = sum(int(run("dpkg-query", "-W", "-f", "${Installed-Size}", name)) for name in NAMES)
    print(f"the program has {size / 1e6:.1f} MB, the three packages {installed / 1000:.1f} MB")
    check(size <= PROGRAM_BYTES_MAX, "the program is too large")
    check(installed <= INSTALLED_KIB_MAX, "the packages are too large")
    look = SOURCE / "tests/packaging/unit.py"
    looked = subprocess.run([look, SOURCE, "--program", "/usr/bin/leasehold"], check=False)
    check(looked.returncode in (0, 77), "the unit has a fault")
    ours = (SOURCE / "packaging/debian/leasehold.service").read_bytes()
    check(pathlib.Path(UNIT).read_bytes() == ours, f"{UNIT} is not the one of the source")
    check("leasehold" in run("leasehold", "--version"), "leasehold --version")
    check(pathlib.Path("/usr/share/man/man1/leasehold.1.gz").exists() or
          pathlib.Path("/usr/share/man/man1/leasehold.1").exists() or
          "path-exclude" in run("sh", "-c", "cat /etc/dpkg/dpkg.cfg.d/* 2>/dev/null || true"), "no manual page")


def try_examples(folder):
    """All of them, with what libleasehold-dev brings: link.py has the table."""
    checker = folder / "leasehold_check"
    checker.write_text('#!/bin/sh\nexec leasehold check "$@"\n', encoding="ascii")
    checker.chmod(0o755)
    for way in ("find_package", "pkg_config", "c_interface", "sqlite"):
        print(run(sys.executable, "-B", SOURCE / "tests/linking/link.py", way, "--prefix", "/usr", "--source", SOURCE,
                  "--work", folder, "--program", "/usr/bin/leasehold", "--checker", checker), end="")


class Node:
    """As the unit runs it, but with settings of its own."""

    def __init__(self, number):
        self.number = number
        self.process = None
        peers = ",".join(f"{node}=127.0.0.1:{PEERS + node}" for node in NODES)
        self.config = f"/etc/leasehold/node{number}.toml"
        pathlib.Path(self.config).write_text(
            f'id = {number}\npeers = "{peers}"\nlisten = "127.0.0.1:{CLIENTS + number}"\n'
            f'data-dir = "/var/lib/leasehold/node{number}"\n', encoding="utf-8")
        self.start()

    def start(self):
        lines = pathlib.Path(UNIT).read_text(encoding="utf-8").splitlines()
        command = next(line.split("=", 1)[1] for line in lines if line.startswith("ExecStart="))
        check(CONFIG in command, f"the unit does not read {CONFIG}")
        log = open(f"/tmp/leasehold-node{self.number}.log", "ab")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["setpriv", "--reuid", "leasehold", "--regid", "leasehold", "--clear-groups", "--",
             *shlex.split(command.replace(CONFIG, self.config))], stderr=log)

    def check_that_it_runs(self):
        if self.process.poll() is not None:
            log = pathlib.Path(f"/tmp/leasehold-node{self.number}.log").read_text(encoding="utf-8", errors="replace")
            check(False, f"node {self.number} ended with status {self.process.returncode}: {log[-2000:]}")

    def restart(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(30) in (0, 128 + signal.SIGTERM, -signal.SIGTERM), "the node did not end well")
        self.start()
        wait_for(f"node {self.number} answers again", 30, lambda: ask(self.number, "GET", "first") is not None)


def ask(number, *words):
    """None: no answer."""
    try:
        with resp.Client(CLIENTS + number, timeout=2) as client:
            return client.call(*words)
    except (OSError, resp.ConnectionLost, resp.TimedOut):
        return None


class Writer(threading.Thread):
    """Writes one key after the other, at any node that answers, until stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.acknowledged = []
        self.longest = 0.0
        self.stopped = threading.Event()

    def run(self):
        last = time.monotonic()
        number = 0
        while not self.stopped.is_set():
            number += 1
            for node in NODES:
                if ask(node, "SET", f"key{number}", number) == "OK":
                    now = time.monotonic()
                    self.longest, last = max(self.longest, now - last), now
                    self.acknowledged.append(number)
                    break


def serve_and_upgrade(upgrade):
    nodes = [Node(number) for number in NODES]
    try:

        def answers():
            for node in nodes:
                node.check_that_it_runs()
            return ask(1, "SET", "first", "1") == "OK"
        wait_for("the group answers", 30, answers)
        writer = Writer()
        writer.start()
        time.sleep(1)
        upgrade()
        for node in nodes:
            node.restart()
        time.sleep(1)
        writer.stopped.set()
        writer.join(30)
        with resp.Client(CLIENTS + 2) as client:
            for number in writer.acknowledged:
                check(client.call("GET", f"key{number}") == str(number).encode(), f"key{number} is lost")
        print(f"{len(writer.acknowledged)} writes beside the upgrade, none lost, longest gap {writer.longest:.2f} s")
        check(writer.longest <= GAP_MAX_S, "the group has not kept serving")
    finally:
        for node in nodes:
            node.process.terminate()
        for node in nodes:
            node.process.wait(30)


def remove():
    said = run("apt-get", "purge", "-y", "-q", *NAMES, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    check("/var/lib/leasehold" in said, "nothing is said of the data that is left")
    check(not os.path.exists("/usr/bin/leasehold") and not os.path.exists(CONFIG), "something is left")
    check(os.path.exists("/var/lib/leasehold/node1"), "the data is gone")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="where make packages has built")
    parser.add_argument("--this-machine", action="store_true", required=True, help="yes, install them here")
    options = parser.parse_args()
    check(os.getuid() == 0, "this has to run as root")
    check(not os.path.exists("/usr/bin/leasehold"), "a leasehold is installed here: use a machine to throw away")
    options.build = options.build.resolve()
    install(options.build / "debian")
    look_at_what_is_there()
    folder = options.build / "examples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try_examples(folder)
    next_folder = options.build / "next"
    run("cmake", options.build, "-DLEASEHOLD_DEBIAN_REVISION=2")
    run("cpack", "--config", options.build / "CPackConfig.cmake", "-B", next_folder)
    run("cmake", options.build, "-DLEASEHOLD_DEBIAN_REVISION=1")

    def upgrade():
        install(next_folder)
        check(run("dpkg-query", "-W", "-f", "${Version}", "leasehold").endswith("-2"), "it is not the next revision")

    serve_and_upgrade(upgrade)
    remove()
    print("the packages install, serve, are upgraded under load, and go")


if __name__ == "__main__":
    main()
