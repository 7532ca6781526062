#!/usr/bin/env python3
"""Carries out the Dockerfile in a fresh Debian, without docker, and runs the group of compose.yaml: three nodes with
the commands of their services, each in namespaces of its own, behind addresses that are not loopback. They serve, one
is killed and comes back, all are stopped, and start again with what they knew. Needs root, debootstrap, iproute2 and
4 GB of disk, and takes a quarter of an hour.

  tests/clean-room/images.py [--cache DIR] [--keep]
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import container
from container import SOURCE, check, run, wait_for

import chaos_net  # noqa: E402  # container has said where it is
import compose
import resp
from cluster import Failed, Skipped

WRITES = 200


class Group:
    """The services of the compose file."""

    def __init__(self, image, folder):
        self._image = image
        self._file = compose.read(SOURCE / "compose.yaml")
        self._volumes = folder / "volumes"
        self._hosts = folder / "hosts"
        self._net = chaos_net.Namespaces(len(self._file.nodes), False)
        self.nodes = {}
        names = {number: host for number, (host, _) in self._file.peers.items()}
        self._hosts.write_text("127.0.0.1 localhost\n" + "".join(
            f"{place.host} {names[number]}\n" for number, place in self._net.places.items()), encoding="ascii")

    def address(self, number):
        return self._net.places[number].host

    def port(self, number):
        service = next(service for service in self._file.nodes if service.flags["--id"] == str(number))
        return int(service.flags["--listen"].rpartition(":")[2])

    def up(self):
        key = next(service for service in self._file.services if service.name == "key")
        made = container.Container(self._image, key, self._volumes, self._hosts)
        check(made.wait() == 0, "the service key has failed")
        for number in self._net.places:
            self.start(number)

    def start(self, number):
        service = next(service for service in self._file.nodes if service.flags["--id"] == str(number))
        self.nodes[number] = container.Container(self._image, service, self._volumes, self._hosts,
                                                 self._net.places[number].namespace)

    def ask(self, number, *words):
        """None: no answer, or none that counts."""
        try:
            with resp.Client(self.port(number), host=self.address(number), timeout=3) as client:
                reply = client.call(*words)
                return None if isinstance(reply, resp.RespError) else reply
        except (resp.ConnectionLost, resp.TimedOut):
            return None

    def rows(self):
        servers = ",".join(f"{self.address(number)}:{self.port(number)}" for number in self._net.places)
        command = ["leasehold", "status", "--json", "--timeout", "2s", "--servers", servers]
        done = subprocess.run(["chroot", self._image.root, *command],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return json.loads(done.stdout or "[]")

    def leader(self):
        return next((row["id"] for row in self.rows() if row.get("role") == "leader"), None)

    def key_file(self):
        return (self._volumes / "key" / "group.key").read_bytes()


def write_all(group, name):
    """Each key is asked of one node after the other until one has written it: the leader may change."""
    for number in range(WRITES):
        wait_for(f"a write of {name}{number}", 20,
                 lambda: any(group.ask(node, "SET", f"{name}{number}", number) == "OK" for node in group.nodes))


def read_all(group, name, node):
    for number in range(WRITES):
        wait_for(f"{name}{number} at node {node}", 20,
                 lambda: group.ask(node, "GET", f"{name}{number}") == str(number).encode())


def stop_all(group):
    for number, node in group.nodes.items():
        status, seconds = node.stop()
        check(status == 0, f"node {number} ended with status {status} after SIGTERM")
        print(f"node {number} ended {seconds:.2f} s after SIGTERM")


def story(group):
    started = time.monotonic()
    group.up()
    wait_for("the group answers", 60, lambda: group.ask(1, "SET", "first", "1") == "OK")
    print(f"the group served {time.monotonic() - started:.1f} s after its start")
    for number, node in group.nodes.items():
        wait_for(f"node {number} is healthy", 30, node.health)
    os.kill(group.nodes[1].first, signal.SIGSTOP)
    check(not group.nodes[1].health(), "a node that stands still is taken for a healthy one")
    os.kill(group.nodes[1].first, signal.SIGCONT)
    write_all(group, "before")
    victim = wait_for("somebody leads", 20, group.leader)
    group.nodes[victim].kill()
    started = time.monotonic()
    others = [number for number in group.nodes if number != victim]
    wait_for("a write without the leader", 30, lambda: group.ask(others[0], "SET", "second", "2") == "OK")
    print(f"the leader, node {victim}, was killed; the others wrote after {time.monotonic() - started:.2f} s")
    del group.nodes[victim]
    write_all(group, "without")
    group.start(victim)  # as restart: unless-stopped does
    read_all(group, "without", victim)
    wait_for(f"node {victim} is healthy again", 30, group.nodes[victim].health)
    stop_all(group)

    key = group.key_file()
    group.up()
    wait_for("the group answers again", 60, lambda: group.ask(2, "GET", "first") == b"1")
    check(group.key_file() == key, "the group has another key than before")
    read_all(group, "before", 3)
    stop_all(group)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, help="keep the unpacked base system there, for the next run")
    parser.add_argument("--keep", action="store_true", help="leave the folders of the stages and volumes in place")
    options = parser.parse_args()
    cache = []
    if options.cache:
        options.cache.mkdir(parents=True, exist_ok=True)
        cache = ["--cache", options.cache.resolve() / "bookworm-image.tar"]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leasehold-images."))
    folder.chmod(0o755)
    os.environ["PATH"] = container.PATH
    group = None
    try:
        started = time.monotonic()
        image = container.Image(SOURCE, folder, lambda root: run([SOURCE / "tests/clean-room/base", root, *cache]))
        size = run(["du", "-s", "--block-size=1000000", "--one-file-system", image.root]).split()[0]
        print(f"the image was made in {time.monotonic() - started:.0f} s and has {size} MB, Debian included")
        chaos_net.enter_router()
        group = Group(image, folder)
        story(group)
        print("the image is built, and three of it serve, lose one, end and start again")
    except (Failed, Skipped, subprocess.TimeoutExpired) as error:
        for log in sorted(folder.glob("*.log")):
            print(f"== {log.name}\n" + "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]))
        sys.exit(f"images: {error}")
    finally:
        for node in group.nodes.values() if group else ():
            if node.process.poll() is None:
                node.kill()
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
