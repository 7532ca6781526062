#!/usr/bin/env python3
"""A backup of a living group becomes a new group. It holds every write that was acknowledged before the
backup began, whichever node took it; the nodes of the two groups refuse each other, whatever their names
and addresses; what is damaged or interrupted is refused, and says what to do."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import time

from cluster import Background, Cluster, Skipped, check, main, wait_for
import disk
import resp

KEYS = 300  # of each writer
VALUE_BYTES = 400
# The log is cut on demand alone.
FLAGS = ("--log-tail", "64K", "--log-cut", "64M")
DONE, NO, USAGE, NOT_EXECUTED = 0, 1, 2, 4


def arguments(parser):
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flips", type=int, default=12, help="damaged copies of a backup")
    parser.add_argument("--kills", type=int, default=8, help="of restore, at random moments")


def program(options, status, *words):
    """What it says on both outputs."""
    done = subprocess.run([options.binary, *words], capture_output=True, text=True, timeout=120,
                          check=False)
    check(done.returncode == status, f"{words} ended with {done.returncode}, not {status}: "
          f"{done.stdout} {done.stderr}")
    return done.stdout + done.stderr


def servers_of(*nodes):
    return ",".join(f"127.0.0.1:{node.port}" for node in nodes)


class Writer:
    """One client of one node that writes numbered values in turn and knows what was acknowledged."""

    def __init__(self, node):
        self.node = node
        self.acknowledged = 0  # writes 0 .. acknowledged - 1 were
        self.sent = 0
        self._client = None

    def _key(self, number):
        return f"w{self.node.id}:{number % KEYS}"

    def step(self):
        """Until it is acknowledged; a refusal was not executed, and is tried again."""
        if self._client is None:
            self._client = self.node.client(timeout=30)
        number = self.acknowledged
        self.sent = number + 1
        value = f"{number}:".ljust(VALUE_BYTES, "v")
        while True:
            reply = self._client.call("SET", self._key(number), value)
            if reply == "OK":
                break
            check(isinstance(reply, resp.RespError) and reply.not_executed, f"SET gave {reply!r}")
            time.sleep(0.01)
        self.acknowledged = number + 1

    def close(self):
        if self._client is not None:
            self._client.close()

    def check_prefix(self, client, least, most):
        """The store holds this writer's first writes, at least `least` and at most `most` of them, and
        nothing else of it."""
        values = client.call("MGET", *(self._key(i) for i in range(KEYS)))
        numbers = [-1 if value is None else int(value.split(b":")[0]) for value in values]
        last = max(numbers)
        check(least <= last + 1 <= most, f"{self.node}: {last + 1} writes, not {least} to {most}")
        for i, number in enumerate(numbers):
            expected = last - (last - i) % KEYS
            check(number == max(expected, -1), f"key {i} is of write {number}, not {expected}")


def snapshot_cuts_the_log(options, cluster):
    servers = servers_of(*cluster.nodes)
    before = {node.id: node.status() for node in cluster.nodes}
    said = json.loads(program(options, DONE, "snapshot", "--servers", servers, "--json"))
    for node, made in zip(cluster.nodes, said):
        was = before[node.id]
        check(made["index"] >= was["applied"], f"{node}: {made}, but it had applied {was['applied']}")
        check(made["first_before"] == was["first"] == 1, f"{node}: {made}, first was {was['first']}")
        check(made["first"] > 1 and made["log_bytes"] <= 70_000, f"{node}: nothing was cut: {made}")
        now = node.status()
        check(now["first"] == made["first"] and now["store_durable"] >= made["index"],
              f"{node}: {made}, but status says {now}")
    # Again there is nothing to cut; a node out of reach must not hide the others.
    out = program(options, NOT_EXECUTED, "snapshot", "--servers", servers + ",127.0.0.1:1",
                  "--timeout", "1s")
    check(out.count("nothing to cut") == len(cluster.nodes), out)


def backup_under_writes(options, cluster):
    """The path of the backup, the writers, and for each how much it may hold."""
    leader = cluster.start()
    # Not the leader: what was acknowledged elsewhere is in it all the same.
    taker = cluster.others(leader)[0]
    writers = [Writer(node) for node in cluster.nodes]
    with contextlib.ExitStack() as stack:
        backgrounds = [stack.enter_context(Background(writer.step)) for writer in writers]

        def wait_for_writes(what, goals):
            def reached():
                for background in backgrounds:
                    background.check()
                return all(writer.acknowledged > goal for writer, goal in zip(writers, goals))
            wait_for(what, 60, reached)

        wait_for_writes("some writes", [400] * len(writers))
        # It is asked while it stands still, and lacks what the others acknowledged meanwhile.
        taker.pause()
        # Not for long: the write that waits there would end as unknown.
        wait_for_writes("writes beside it", [
            0 if writer.node is taker else writer.acknowledged + 50 for writer in writers])
        least = [writer.acknowledged for writer in writers]
        words = [options.binary, "backup", "--servers", servers_of(taker), "monday", "--json"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            time.sleep(0.3)
            taker.resume()
            out = process.communicate(timeout=60)[0]
        check(process.returncode == DONE, f"backup ended with {process.returncode}")
        most = [writer.sent for writer in writers]
        wait_for_writes("writes behind the backup", [bound + 20 for bound in most])
    for writer in writers:
        writer.close()
    made = json.loads(out)
    check(made["path"] == os.path.join(taker.data_dir, "backups", "monday"), f"{made}")
    check(made["node"] == taker.id and os.path.getsize(made["path"]) == made["bytes"], f"{made}")
    print(f"backup of index {made['index']}, {made['bytes']} bytes: at least {least}, at most {most} "
          f"writes of {[writer.acknowledged for writer in writers]}", flush=True)
    return made["path"], writers, least, most


def backup_refusals(options, cluster):
    node = cluster.wait_leader()
    servers = servers_of(node)
    folder = os.path.join(node.data_dir, "backups")
    out = program(options, DONE, "backup", "--servers", servers)
    check("backup complete: " + os.path.join(folder, "backup-20") in out, out)
    names = set(os.listdir(folder))
    existing = min(names)
    out = program(options, NOT_EXECUTED, "backup", "--servers", servers, existing)
    check("exists: choose another name" in out, out)
    for name in ("../x", "/tmp/x", ".x", "a b", "x.part", "n" * 129, "x/y"):
        out = program(options, NOT_EXECUTED, "backup", "--servers", servers, name)
        check("a backup's name has 1 to 128 letters" in out, out)
    program(options, NOT_EXECUTED, "backup", "--servers", "127.0.0.1:1", "--timeout", "300ms")
    program(options, USAGE, "backup", "--servers", "nowhere", "x")
    check(set(os.listdir(folder)) == names, f"{os.listdir(folder)} instead of {names}")
    # A copy on this machine, which only its owner may read.
    copy = os.path.join(cluster.folder, "copy")
    out = program(options, DONE, "backup", "--servers", servers, "--to", copy, "copied")
    check(f"A copy is in {copy}." in out and os.stat(copy).st_mode & 0o777 == 0o600, out)
    with open(copy, "rb") as here, open(os.path.join(folder, "copied"), "rb") as there:
        check(here.read() == there.read(), "the copy is another one")
    out = program(options, NOT_EXECUTED, "backup", "--servers", servers, "--to", copy, "again")
    check(f"{copy} exists: nothing is overwritten" in out, out)
    out = program(options, NOT_EXECUTED, "backup", "--servers", servers, "--to", "/nowhere/copy", "again")
    check("there is no folder /nowhere" in out and not os.path.exists(os.path.join(folder, "again")), out)
    # Without a majority no node knows what a backup has to hold; --stale does not ask.
    for other in cluster.others(node):
        other.kill()
    wait_for("the leader to notice", 20, lambda: node.status()["lease_left"] == 0)
    out = program(options, NOT_EXECUTED, "backup", "--servers", servers, "--timeout", "1s", "alone")
    check("with STALE it is" in out or "the leader changed" in out, out)
    program(options, DONE, "backup", "--servers", servers, "--stale", "alone")
    # The remains of an interrupted backup are removed at the next start.
    node.kill()
    with open(os.path.join(folder, "cut.part"), "wb") as part:
        part.write(b"x" * 1000)
    cluster.start()
    check(not os.path.exists(os.path.join(folder, "cut.part")), "the remains are still there")


@contextlib.contextmanager
def small_disk(path, mebibytes):
    """A disk of this size at `path` while the block runs."""
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "none", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def full_disks(options, old, new, file):
    """Refused before anything is written, with what to do; and nothing is left of it."""
    node = old.wait_leader()
    folder = os.path.join(node.data_dir, "backups")
    with small_disk(folder, 64):
        out = program(options, NOT_EXECUTED, "backup", "--servers", servers_of(node), "full")
        check("free some space on it" in out and os.listdir(folder) == [], f"{os.listdir(folder)}: {out}")
    node = new.nodes[1]
    with small_disk(node.data_dir, 4):
        out = program(options, NO, *restore_words(node, file))
        check("free some space" in out and os.listdir(os.path.join(node.data_dir, "state")), out)
        check("db-1" not in os.listdir(os.path.join(node.data_dir, "state")), "there is half a store")
        node.start()
        check(node.wait_exit(20) == NO, "a node started on a restoration that found no space")
    os.rmdir(node.data_dir)


def restore_words(node, file):
    return ("restore", "--from", file, "--data-dir", node.data_dir, "--id", str(node.id), "--peers",
            node.peers)


def damaged_backups(options, cluster, file, source):
    with open(file, "rb") as original:
        good = original.read()
    copy = os.path.join(cluster.folder, "damaged")
    target = os.path.join(cluster.folder, "never")

    def refused(bytes_now, *texts):
        with open(copy, "wb") as damaged:
            damaged.write(bytes_now)
        for words in (("restore", "--from", copy, "--check"),
                      ("restore", "--from", copy, "--data-dir", target, "--id", "1", "--peers",
                       cluster.peers)):
            out = program(options, NO, *words)
            check(all(text in out for text in texts), f"{texts} not in {out}")
        check(not os.path.exists(target), f"{texts}: a folder was made")

    flips = [len(good) - 1, 4096, 20] + [source.randrange(len(good)) for _ in range(options.flips)]
    for at in flips:
        refused(good[:at] + bytes([good[at] ^ 1 << source.randrange(8)]) + good[at + 1:])
    refused(good[:-1], "bytes instead of", "copy the backup again")
    refused(good[:5000], "bytes instead of")
    refused(good[:4000], "its manifest is damaged")
    refused(good + b"x", "bytes instead of")
    refused(b"", "does not begin like a backup")
    middle = len(good) // 2
    refused(good[:middle] + bytes([good[middle] ^ 4]) + good[middle + 1:], "is damaged", "of its file",
            "Copy it again")
    out = program(options, DONE, "restore", "--from", file, "--check")
    check("leasehold-backup 1\ncluster default\n" in out and "every checksum is right" in out, out)
    out = program(options, NO, "restore", "--from", file + ".none", "--check")
    check("cannot read" in out, out)
    out = program(options, USAGE, "restore", "--from", file, "--data-dir", target, "--id", "9",
                  "--peers", cluster.peers)
    check("--peers does not name this node" in out, out)


def interrupted_restores(options, cluster, node, file, source):
    """Kills restore at random moments: no node starts on what is left, and restore begins again."""
    words = [options.binary, *restore_words(node, file)]
    begun = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    whole = time.monotonic() - begun
    left = 0
    for _ in range(options.kills):
        shutil.rmtree(node.data_dir, ignore_errors=True)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(source.uniform(0.2, 1) * whole)
        process.kill()
        process.wait()
        if not os.path.exists(os.path.join(node.data_dir, "RESTORING")):
            continue
        left += 1
        node.start()
        check(node.wait_exit(20) == NO, "a node started on half a restoration")
        check("run the same leasehold restore again" in node.log_text(), "it did not say what to do")
        program(options, DONE, *words[1:])
    print(f"{left} of {options.kills} restorations were interrupted", flush=True)
    # One more by hand, in addition to the random ones.
    shutil.rmtree(node.data_dir, ignore_errors=True)
    os.makedirs(os.path.join(node.data_dir, "state", "db-1"))
    for name in ("RESTORING", "RESTORED", os.path.join("state", "db-1", "CURRENT")):
        with open(os.path.join(node.data_dir, name), "w", encoding="ascii") as file_left:
            file_left.write("half")
    program(options, DONE, *words[1:])
    # And what is not of a restoration is never touched.
    shutil.rmtree(node.data_dir, ignore_errors=True)
    os.makedirs(node.data_dir)
    for name in ("RESTORING", "precious"):
        with open(os.path.join(node.data_dir, name), "w", encoding="ascii") as file_left:
            file_left.write("mine")
    out = program(options, NO, *words[1:])
    check("is not empty: it has precious" in out and os.listdir(node.data_dir), out)
    shutil.rmtree(node.data_dir, ignore_errors=True)


def restored_group_works(options, new, file, writers, least, most):
    for node in new.nodes:
        out = program(options, DONE, *restore_words(node, file))
        check("This is a new group" in out, out)
        out = program(options, NO, *restore_words(node, file))
        check("is not empty" in out, out)
    leader = new.start()

    def check_all():
        for node in new.nodes:
            new.wait_caught_up(node)
            with node.client(timeout=30) as client:
                for writer, low, high in zip(writers, least, most):
                    writer.check_prefix(client, low, high)

    check_all()
    with leader.client() as client:
        check(client.call("SET", "new", "group") == "OK", "the new group does not write")
        check(client.call("GET", "new") == b"group", "the new group forgot")
        explained = client.call("LEASEHOLD", "EXPLAIN")
        check(explained[:2] == [b"served", b"lease"], f"not a lease read: {explained}")
        for number in range(200):
            check(client.call("SET", f"more:{number}", "x" * 1000) == "OK", "SET")
    program(options, DONE, "snapshot", "--servers", servers_of(*new.nodes))
    # A member that was away comes back, over the base of a restored log too.
    away = new.others(leader)[0]
    away.kill()
    with leader.client() as client:
        check(client.call("SET", "while", "away") == "OK", "SET")
    away.start()
    new.wait_caught_up(away)
    for node in new.nodes:
        node.kill()
    new.start()
    check_all()
    with new.nodes[1].client() as client:
        check(client.call("MGET", "new", "while", "more:199") ==
              [b"group", b"away", b"x" * 1000], "the new group forgot")


def refusals_of(nodes):
    return [node for node in nodes if "wrong_cluster" in node.log_text()]


def strangers_are_refused(options, old, new, file):
    """One restored directory in the old group, and one old directory in the new group."""
    old.start()
    stranger = old.others(old.wait_leader())[0]
    stranger.kill()
    kept = stranger.data_dir + ".kept"
    os.rename(stranger.data_dir, kept)
    program(options, DONE, *restore_words(stranger, file))
    stranger.start()
    peers = old.others(stranger)
    wait_for("refusals on both sides", 20, lambda: refusals_of([stranger]) and refusals_of(peers))
    # Another leader is elected among the two, without the stranger's vote: with one of them alone,
    # nobody is.
    leader = old.wait_leader(among=peers)
    leader.kill()
    survivor = next(node for node in peers if node is not leader)
    wait_for("the leader to be missed", 20, lambda: survivor.status()["leader"] == 0)
    term = survivor.status()["term"]
    time.sleep(2)  # several election timeouts
    state = survivor.status()
    check(state["leader"] == 0 and state["role"] != "leader", f"elected by a stranger: {state}")
    check(state["term"] <= term, f"a campaign passed the pre-vote with a stranger's help: {state}")
    state = stranger.try_status()
    check(state is None or (not state["formed"] and state["term"] == 0 and state["applied"] == 0),
          f"it takes part: {state}")
    leader.start()
    old.wait_leader(among=peers)
    stranger.kill()

    # The other way round: the old member's own directory, at the place of a member of the new group.
    place = new.others(new.wait_leader())[0]
    place.kill()
    impostor = new.make_node(place.id, "impostor", peers=old.peers)
    impostor.id = stranger.id
    impostor.data_dir = kept
    address = dict(peer.split("=") for peer in new.peers.split(","))[str(place.id)]
    impostor.flags += ["--peer-listen", address]
    new.extra.append(impostor)
    for node in peers:
        node.kill()
    impostor.start()
    rest = new.others(place)
    wait_for("refusals of the impostor", 20,
             lambda: refusals_of([impostor]) or refusals_of(rest))
    # Its log is quicker than the port for its clients.
    state = wait_for("the impostor's status", 20, impostor.status)
    check(state["leader"] == 0, f"it follows somebody: {state}")
    new.wait_leader(among=rest)
    impostor.kill()
    # Its directory does not even start under the new group's name.
    shutil.rmtree(os.path.join(place.data_dir, "log"))
    shutil.copytree(os.path.join(kept, "log"), os.path.join(place.data_dir, "log"))
    place.start()
    check(place.wait_exit(20) == NO, "it started with the log of the old group")
    check("it belongs to node" in place.log_text(), "it does not say whose log that is")


def run(options):
    source = random.Random(options.seed)
    try:
        disk.enter_private_mounts()
        mounts = True
    except Skipped as reason:
        mounts = False
        print(f"without full disks: {reason}", flush=True)
    with Cluster(options.binary, flags=FLAGS, keep=options.keep) as old, \
            Cluster(options.binary, flags=FLAGS, keep=options.keep) as new:
        made, writers, least, most = backup_under_writes(options, old)
        snapshot_cuts_the_log(options, old)
        file = os.path.join(new.folder, "monday")
        shutil.copy(made, file)
        backup_refusals(options, old)
        if mounts:
            full_disks(options, old, new, file)
        for node in old.nodes:
            node.kill()
        damaged_backups(options, new, file, source)
        interrupted_restores(options, new, new.nodes[0], file, source)
        restored_group_works(options, new, file, writers, least, most)
        strangers_are_refused(options, old, new, file)


if __name__ == "__main__":
    main(__doc__, run, arguments)
