#!/usr/bin/env python3
"""The data directories of earlier releases (golden/) are opened by this build: every value, time, lease and session is
there, the group takes writes, gets its settings, and all of it is there after another restart. A log of a later format
is refused, and no file of its directory is touched.

With --make FILE the directory of a group of one is written by --binary, which then is that of the release."""

import glob
import hashlib
import os
import signal
import tarfile

from bad_peers import crc32c
from cluster import Cluster, Node, check, main, wait_for
import resp

HERE = os.path.dirname(os.path.abspath(__file__))
# They stand in the directories; no other test takes them, nor does the kernel.
PORT, PEER_PORT = 32002, 32001
KEYS = 60
IN_THE_STORE = 50  # of them; the others are in the log alone
YEARS_IN_SECONDS = 9 * 365 * 86400


def arguments(parser):
    parser.add_argument("--make", metavar="FILE", help="write the archive of a new directory")


def ask(node, *words):
    with node.client() as client:
        reply = client.call(*words)
    check(not isinstance(reply, resp.RespError), f"{words} was answered {reply!r}")
    return reply


def node_in(cluster, binary, folder):
    node = Node(binary, 1, os.path.join(folder, "node1"), f"1=127.0.0.1:{PEER_PORT}", PORT, folder + ".log",
                ["--log-tail", "1M", "--log-cut", "1M"])
    cluster.extra.append(node)
    return node


def lead(node):
    node.start()
    wait_for(f"{node} to lead", 20, lambda: (node.try_status() or {"lease_left": 0})["lease_left"] > 0)


def make(options, cluster):
    folder = os.path.join(cluster.folder, "made")
    os.makedirs(folder)
    node = node_in(cluster, options.binary, folder)
    lead(node)
    for number in range(KEYS):
        if number == IN_THE_STORE:
            ask(node, "SET", "timed", "v", "EX", str(YEARS_IN_SECONDS))
            ask(node, "LEASE.GRANT", str(YEARS_IN_SECONDS * 1000), "ID", "77")
            ask(node, "SET", "leased", "v", "LEASE", "77")
            check(ask(node, "LEASEHOLD", "SESSION", "OPEN") == 1, "another session")
            check(ask(node, "LEASEHOLD", "ONCE", "1", "1", "INCR", "counted") == 1, "another count")
            ask(node, "LEASEHOLD", "SNAPSHOT")
        ask(node, "SET", f"kept:{number}", f"value {number}")
    node.kill()

    def nobody(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info
    with tarfile.open(options.make, "w:xz") as archive:
        archive.add(node.data_dir, "node1", filter=nobody)
    print(f"{options.make}: {os.path.getsize(options.make)} bytes")


def look(node):
    for number in range(KEYS):
        found = ask(node, "GET", f"kept:{number}")
        check(found == f"value {number}".encode(), f"{node}: kept:{number} is {found!r}")
    check(0 < ask(node, "TTL", "timed") <= YEARS_IN_SECONDS, f"{node}: the time of a key was lost")
    check(ask(node, "GET", "leased") == b"v", f"{node}: the key of a lease was lost")
    again = ask(node, "LEASEHOLD", "ONCE", "1", "1", "INCR", "counted")
    check(again == 1, f"{node}: a session forgot what it executed: {again}")
    check(ask(node, "GET", "counted") == b"1", f"{node}: a command was executed twice")


def read(options, cluster, path):
    folder = os.path.join(cluster.folder, os.path.basename(path))
    with tarfile.open(path) as archive:
        archive.extractall(folder)
    node = node_in(cluster, options.binary, folder)
    lead(node)
    look(node)
    ask(node, "SET", "new", "v")
    ask(node, "LEASEHOLD", "SETTINGS", "SET", "margin", "2ms")
    wait_for("the newest level", 10, lambda: node.status()["feature_level"] == 2)
    ask(node, "ACL", "SETUSER", "ann", "on", "+get")
    for end in (signal.SIGKILL, signal.SIGTERM):
        node.signal(end)
        node.wait_exit(15)
        lead(node)
        look(node)
        check(ask(node, "GET", "new") == b"v", "what is new was lost")
        check(ask(node, "ACL", "GETUSER", "ann") is not None, "a user was lost")
    state = node.status()["state"]
    check(state["served"] and not state["warning"], f"{node}: {state}")
    node.terminate()
    refuse_later_format(node)
    print(f"{os.path.basename(path)}: read, raised, read again, and refused as one of a later build")


def content(folder):
    """Each file, with what is in it."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def refuse_later_format(node):
    mark = os.path.join(node.data_dir, "log", "LEASEHOLD")
    with open(mark, "rb") as file:
        before = file.read()
    lines, _ = before.split(b"check ")
    lines = lines.replace(b"leasehold-log 3", b"leasehold-log 9")
    with open(mark, "wb") as file:
        file.write((lines + b"check %08x\n" % crc32c(lines)).ljust(len(before)))
    there = content(node.data_dir)
    node.start()
    check(node.wait_exit(10) == 1, "a log of a later format was opened")
    check("format 9" in node.log_text(), "the log does not name the later format")
    now = content(node.data_dir)
    touched = sorted(name for name in {*there, *now} if there.get(name) != now.get(name))
    check(not touched, f"a start that was refused touched {touched}")
    with open(mark, "wb") as file:
        file.write(before)
    lead(node)
    look(node)
    node.terminate()


def run(options):
    with Cluster(options.binary, size=0, keep=options.keep) as cluster:
        if options.make:
            return make(options, cluster)
        archives = sorted(glob.glob(os.path.join(HERE, "golden", "*.tar.xz")))
        check(archives, "there are no golden directories")
        for path in archives:
            read(options, cluster, path)


if __name__ == "__main__":
    main(__doc__, run, arguments)
