#!/usr/bin/env python3
"""What a node makes is for its owner only, whatever the umask; a data directory that an earlier version made is
tightened at the start, with one line in the log; one of another user is refused."""

import os
import stat
import subprocess

from cluster import Cluster, check, main, wait_for
import resp

SOMEBODY = 4711  # any user but root
TIGHTENED = "other users had rights to it"


def entries(folder):
    """Every file and folder of it, and itself, with its mode."""
    yield folder, stat.S_IMODE(os.lstat(folder).st_mode)
    for above, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(above, name)
            try:
                yield path, stat.S_IMODE(os.lstat(path).st_mode)
            except FileNotFoundError:
                pass  # the store replaces files while it runs


def check_private(folder):
    """Returns how many there are."""
    found = list(entries(folder))
    for path, mode in found:
        wanted = 0o700 if os.path.isdir(path) else 0o600
        check(mode == wanted, f"{path} has mode {mode:o}, not {wanted:o}")
    return len(found)


def loosen(folder):
    """As a version made it that left the modes to a umask of 022."""
    for path, _ in list(entries(folder)):
        os.chmod(path, 0o755 if os.path.isdir(path) else 0o644)


def write(cluster, name):
    with cluster.wait_leader().client() as client:
        for number in range(200):
            check(client.call("SET", f"{name}{number}", "x" * 1000) in (b"OK", "OK"), "SET is refused")
        client.call("LEASEHOLD", "SNAPSHOT")
    with cluster.nodes[0].client(timeout=30) as client:
        reply = client.call("LEASEHOLD", "BACKUP", name)
        check(not isinstance(reply, resp.RespError), f"BACKUP {name}: {reply}")


def restored(options, cluster):
    target = os.path.join(cluster.folder, "restored", "deep")
    backup = os.path.join(cluster.nodes[0].data_dir, "backups", "first")
    subprocess.run([options.binary, "restore", "--from", backup, "--id", "1", "--data-dir", target, "--peers",
                    cluster.peers], check=True, stdout=subprocess.DEVNULL, timeout=60)
    check_private(os.path.dirname(target))


def of_another(cluster):
    if os.geteuid() != 0:
        print("not root: nothing can be given to another user")
        return
    node = cluster.nodes[0]
    for path, what in ((node.data_dir, "the folder"), (os.path.join(node.data_dir, "log"), "a folder in it")):
        os.chown(path, SOMEBODY, SOMEBODY)
        begun = len(node.log_text())
        node.start()
        check(node.wait_exit(10) == 1, f"{what} of another user is used")
        said = node.log_text()[begun:]
        check(f"{path} belongs to the user with the number {SOMEBODY}" in said and "chown" in said,
              f"the reason is missing: {said}")
        os.chown(path, 0, 0)


def run(options):
    # All rights for everybody: each mode is the program's own choice.
    os.umask(0)
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start(20 * options.slack)
        write(cluster, "first")
        for node in cluster.nodes:
            print(f"{node}: {check_private(node.data_dir)} files and folders")
            check(TIGHTENED not in node.log_text(), f"{node} found rights in what it made itself")
        restored(options, cluster)
        for node in cluster.nodes:
            check(node.terminate() == 0, f"{node} did not end well")
            loosen(node.data_dir)
        cluster.start(20 * options.slack)
        for node in cluster.nodes:
            check_private(node.data_dir)
            lines = [line for line in node.log_text().splitlines() if TIGHTENED in line]
            check(len(lines) == 1 and node.data_dir in lines[0], f"{node}: not one line but {lines}")
        write(cluster, "second")
        with cluster.nodes[1].client() as client:
            wait_for("what was written before", 10, lambda: client.call("GET", "first7") == b"x" * 1000)
        for node in cluster.nodes:
            check_private(node.data_dir)
            node.terminate()
        of_another(cluster)


if __name__ == "__main__":
    main(__doc__, run)
