#!/usr/bin/env python3
"""Bytes of a small node's folder are flipped in turn, after a clean end and after a kill. Each flip
is either harmless, and the node reads what it read before (all entries, the vote, the promise, all
keys), perhaps after its log made up for what its store had lost, or it is refused with an error that
names the folder and the repair. A sample of the damaged folders goes to the real program within its
group."""

import concurrent.futures
import fnmatch
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile

import disk
from cluster import Cluster, Node, built, check, main, wait_for
from resp import RespError

WRITES = 12
FLUSHES = 3
# Behind the last frame stand zeroes to the end of the file: of those the near ones, and then every
# so many bytes.
ZEROES_STEP = 997
ZEROES_NEAR = 1024
# RocksDB's own, which opening does not read.
IGNORED = ("LOG", "LOCK", "IDENTITY", "OPTIONS")
# Debian's RocksDB has its assertions on, and a flipped byte of a table can meet one (seen: once in 704
# flips). The node ends at once and serves nothing, but does not say how to repair it.
ROCKSDB_ASSERTS = re.compile(r"table/.*Assertion .* failed")
START_SECONDS = 20


def ignored(name):
    return os.path.basename(name).split(".")[0].split("-")[0] in IGNORED


def arguments(parser):
    parser.add_argument("--log-dump", required=True, type=built, help="the log_dump program")
    parser.add_argument("--store-dump", required=True, type=built, help="the store_dump program")
    parser.add_argument("--step", type=int, default=1, help="every so many bytes of the log")
    parser.add_argument("--store-step", type=int, default=1, help="the same of the store")
    parser.add_argument("--starts", type=int, default=300, help="of the real program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--phases", default="end,kill,cut", help="which of these to flip after")
    parser.add_argument("--files", default="*", help="only names that match one of A,B,...")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))


def files_of(folder):
    """Names of the regular files below, and their bytes."""
    found = {}
    for path in glob.glob(os.path.join(folder, "**"), recursive=True):
        name = os.path.relpath(path, folder)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[name] = file.read()
    return found


def sparse_write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    used = len(content.rstrip(b"\0"))
    with open(path, "wb") as file:
        file.write(content[:used])
        file.truncate(len(content))


def places(files, step, wanted):
    """(file, byte) pairs: what is used, every `step` bytes, and some of the zeroes behind it."""
    for name, content in sorted(files.items()):
        base = os.path.basename(name)
        if ignored(name) or not any(fnmatch.fnmatch(base, one) for one in wanted.split(",")):
            continue
        used = len(content.rstrip(b"\0"))
        near = min(len(content), used + ZEROES_NEAR)
        yield from ((name, at) for at in range(0, near, step))
        yield from ((name, at) for at in range(near, len(content), ZEROES_STEP * step))


def names_repair(said):
    return any(words in said for words in ("wipe", "Wipe", "remove this node from the group and add"))


def durable_of(lines):
    """Up to which index a store is durable, of what store_dump says; None for a log."""
    found = [int(line.split()[1]) for line in lines if line.startswith("durable ")]
    return found[0] if found else None


class Dump:
    """One of the two programs that read a folder offline, with what it says of the good one."""

    def __init__(self, program, files, node_id, cluster, extra, room):
        self._words = [program, None, str(node_id), cluster, *extra]
        self._files = files
        self._room = room
        status, self.good, said = self._read(None)
        check(status == 0, f"the undamaged folder is refused: {said}")

    def _read(self, flip):
        with tempfile.TemporaryDirectory(dir=self._room) as folder:
            place = os.path.join(folder, "x")
            for name, content in self._files.items():
                path = os.path.join(place, name)
                sparse_write(path, content)
                if flip and flip[0] == name:
                    with open(path, "r+b") as file:
                        file.seek(flip[1])
                        file.write(bytes([content[flip[1]] ^ flip[2]]))
            words = [place if word is None else word for word in self._words]
            run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False,
                                 errors="replace")
        lines = [line for line in run.stdout.splitlines() if not line.startswith("incarnation")]
        return run.returncode, lines, run.stderr.strip().replace(place, "FOLDER")

    def judge(self, flip):
        """("harmless", "") or ("refused", why) or ("aborted", by what) or ("older", up to which
        index) or ("wrong", what)."""
        status, lines, said = self._read(flip)
        if status == 0:
            if lines == self.good:
                return "harmless", ""
            durable = durable_of(lines)
            older = durable is not None and durable < durable_of(self.good)
            return ("older", durable) if older else ("wrong", str(lines[:12]))
        if status == -signal.SIGABRT and ROCKSDB_ASSERTS.search(said):
            return "aborted", said
        if status != 1:
            return "wrong", f"status {status}: {said}"
        if "FOLDER" not in said or not names_repair(said):
            return "wrong", f"an unclear refusal: {said}"
        return "refused", said


def flip_all(what, dump, chosen, options):
    """Judges each; prints the counts, fails if any is wrong. Returns those that gave an older state, and which:
    RocksDB takes a wrong length near the end of a small MANIFEST for a write that a crash has torn,
    and leaves out what follows. That is for the node to judge, which knows where its log begins."""
    source = random.Random(options.seed)
    flips = [(name, at, bits) for name, at in chosen for bits in (1 << source.randrange(8), 0xFF)]
    counts, by_file, wrong, older = {}, {}, [], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for flip, (verdict, said) in zip(flips, pool.map(dump.judge, flips)):
            counts[verdict] = counts.get(verdict, 0) + 1
            of_file = by_file.setdefault(flip[0], {})
            of_file[verdict] = of_file.get(verdict, 0) + 1
            if verdict == "older":
                older.append((flip, said))
            if verdict == "wrong":
                wrong.append(f"{flip[0]} byte {flip[1]} ^ {flip[2]:#x}: {said}")
    print(f"{what}: {len(flips)} flips: {counts}; by file: {by_file}", flush=True)
    check(not wrong, f"{what}: {len(wrong)} flips are wrong: " + "; ".join(wrong[:5]))
    return older


def start_damaged(node, files, flip, expected):
    """The real program on a damaged folder, in its group."""
    shutil.rmtree(node.data_dir)
    for name, content in files.items():
        sparse_write(os.path.join(node.data_dir, name), content)
    path = os.path.join(node.data_dir, flip[0])
    with open(path, "r+b") as file:
        file.seek(flip[1])
        file.write(bytes([files[flip[0]][flip[1]] ^ flip[2]]))
    said = len(node.log_text())
    node.start()

    def ready():
        state = node.try_status()
        return not node.running or (state and state["applied"] >= expected["commit"])
    wait_for(f"{node} to be refused or to catch up after {flip}", START_SECONDS, ready)
    if not node.running:
        words = node.log_text()[said:]
        if ROCKSDB_ASSERTS.search(words):
            return "aborted"
        check(node.wait_exit(1) == 1, f"{node} ended with another status than 1 after {flip}")
        check(node.data_dir in words and names_repair(words),
              f"{node} was refused without a repair after {flip}: {words}")
        return "refused"
    check(node.status()["uuid"] == expected["uuid"], f"{node} has another uuid after {flip}")
    with node.client() as client:
        for number in range(WRITES):
            value = client.call("GET", f"key:{number}")
            if isinstance(value, RespError) and names_repair(value.text):
                # Opening does not read every table: the first reader meets it, and the node stops.
                check(node.wait_exit(START_SECONDS) == 1, f"{node} goes on after {flip}: {value}")
                return "met by a reader"
            check(value == f"value {number}".encode(), f"key:{number} is {value!r} after {flip}")
    return "harmless"


def of_store(files):
    return {name: content for name, content in files.items() if name.startswith("state" + os.sep)}


def without_store(files):
    return {name: files[name] for name in files.keys() - of_store(files).keys()}


def used_places(files):
    """(file, byte) pairs of the whole folder of a node, without the zeroes at the end of the log."""
    for name, content in sorted(files.items()):
        if not ignored(name):
            yield from ((name, at) for at in range(len(content.rstrip(b"\0"))))


def start_sample(what, node, end, options, expected):
    """`end` stops the node when it has started well. It goes on from there: a folder that was put
    back would be a copy, and its node refused by the others."""
    source = random.Random(options.seed)
    counts = {}
    files = files_of(node.data_dir)
    for _ in range(options.starts):
        name, at = source.choice(list(used_places(files)))
        verdict = start_damaged(node, files, (name, at, 1 << source.randrange(8)), expected)
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict == "harmless":
            end(node)
            files = files_of(node.data_dir)
        elif verdict == "met by a reader":
            files = {**without_store(files_of(node.data_dir)), **of_store(files)}
    shutil.rmtree(node.data_dir)
    for name, content in files.items():
        sparse_write(os.path.join(node.data_dir, name), content)
    print(f"{what}: {options.starts} starts of the real program: {counts}", flush=True)


def start_older(what, node, store, older, end, expected):
    """The real program on each store that came back in an older state, with the log as it is. It has
    to be refused if the log no longer holds all that the store has lost."""
    counts, too_old = {}, 0
    store = {os.path.join("state", name): content for name, content in store.items()}
    for (name, at, bits), durable in older:
        files = {**without_store(files_of(node.data_dir)), **store}
        verdict = start_damaged(node, files, (os.path.join("state", name), at, bits), expected)
        counts[verdict] = counts.get(verdict, 0) + 1
        if durable + 1 < expected["first"]:
            too_old += 1
            check(verdict != "harmless",
                  f"{what}: state/{name} byte {at} ^ {bits:#x}: an older store was taken")
        if verdict == "harmless":
            end(node)
    shutil.rmtree(os.path.join(node.data_dir, "state"))
    for name, content in store.items():
        sparse_write(os.path.join(node.data_dir, name), content)
    print(f"{what}: {len(older)} starts with an older store, {too_old} of them too old: {counts}",
          flush=True)
    return too_old


def write_all(nodes):
    for number in range(WRITES):
        with nodes[number % len(nodes)].client() as client:
            reply = client.call("SET", f"key:{number}", f"value {number}")
            check(reply == "OK", f"SET was answered {reply!r}")


def expected_of(cluster, node, options, first):
    leader = cluster.wait_leader(among=cluster.others(node))
    return {"commit": leader.status()["commit"], "uuid": options.uuid, "first": first}


def flip_after_cut(cluster, node, options, room):
    """The log no longer holds what an older store would need."""
    what = "after a cut of the log"
    node.start()
    for _ in range(FLUSHES):
        write_all([cluster.wait_leader()])
        cluster.wait_caught_up(node)
        with node.client() as client:
            client.call("LEASEHOLD", "SNAPSHOT")
    expected = expected_of(cluster, node, options, node.status()["first"])
    check(expected["first"] > 1, "the log was not cut")
    node.kill()
    store = files_of(os.path.join(node.data_dir, "state"))
    manifest = {name: content for name, content in store.items() if "MANIFEST" in name}
    name = disk.cluster_of(os.path.join(node.data_dir, "log"))
    older = flip_all(f"{what}, the store", Dump(options.store_dump, store, node.id, name, [], room),
                     places(manifest, options.store_step, "*"), options)
    too_old = start_older(what, node, store, older, Node.kill, expected)
    check(too_old > 0 or options.store_step > 1, "no flip gave a store that is too old")


def flip_node(what, cluster, node, end, options, room):
    """`node` does not run."""
    log = files_of(os.path.join(node.data_dir, "log"))
    store = files_of(os.path.join(node.data_dir, "state"))
    name = disk.cluster_of(os.path.join(node.data_dir, "log"))
    flip_all(f"{what}, the log", Dump(options.log_dump, log, node.id, name, ["--entries"], room),
             places(log, options.step, options.files), options)
    older = flip_all(f"{what}, the store", Dump(options.store_dump, store, node.id, name, [], room),
                     places(store, options.store_step, options.files), options)
    expected = expected_of(cluster, node, options, 1)
    start_older(what, node, store, older, end, expected)
    start_sample(what, node, end, options, expected)


def end_well(node):
    check(node.terminate() == 0, "no clean end")


def run(options):
    print(f"--seed {options.seed}", flush=True)
    room = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with Cluster(options.binary, flags=["--log-tail", "1"], keep=options.keep) as cluster:
        node = cluster.others(cluster.start())[0]
        write_all(cluster.nodes)
        cluster.wait_caught_up(node)
        options.uuid = node.status()["uuid"]
        end_well(node)
        phases = options.phases.split(",")
        if "end" in phases:
            flip_node("after a clean end", cluster, node, end_well, options, room)
        node.start()
        cluster.wait_caught_up(node)
        with cluster.wait_leader().client() as client:
            check(client.call("SET", "key:0", "value 0") == "OK", "SET failed")
        cluster.wait_caught_up(node)
        node.kill()
        if "kill" in phases:
            flip_node("after a kill", cluster, node, Node.kill, options, room)
        if "cut" in phases:
            flip_after_cut(cluster, node, options, room)


if __name__ == "__main__":
    main(__doc__, run, arguments)
