#!/usr/bin/env python3
"""A group of five loses three members for good. `leasehold recover` makes a group of five of what the two others
have: all that their longer log has is there, and what the report calls lost is exactly what is missing. Revisions,
fencing tokens and ids of sessions go on behind those that were lost. Nothing is done without the cluster's id, on
a member that runs, on damage, or where a majority is left; an interrupted command is repeated; and the members of
the old group, the lost ones and the survivors', are refused and say why."""

import os
import pty
import random
import re
import shutil
import subprocess
import time

from cluster import Background, Cluster, check, main, wait_for
import resp

# Only writes make entries, so that the distance of an entry's index and its revision stays the same.
FLAGS = ("--compare-interval", "60m", "--scrub-interval", "0s")
DONE, NO, USAGE = 0, 1, 2
GAP = 1 << 40
SECONDS = 30


def arguments(parser):
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writes", type=int, default=300, help="before and behind the loss, at least")
    parser.add_argument("--kills", type=int, default=4, help="of recover apply, at random moments")


def program(options, status, *words):
    done = subprocess.run([options.binary, "recover", *words], capture_output=True, text=True, timeout=120,
                          check=False, stdin=subprocess.DEVNULL)
    check(done.returncode == status, f"recover {words} ended with {done.returncode}, not {status}: "
          f"{done.stdout} {done.stderr}")
    return done.stdout + done.stderr


def at_terminal(options, typed, *words):
    """What is said to somebody who types this."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([options.binary, "recover", *words], stdin=theirs, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        os.write(ours, typed.encode() + b"\n")
        said = process.communicate(timeout=SECONDS)[0]
    os.close(ours)
    os.close(theirs)
    check(process.returncode == NO, f"recover {words} ended with {process.returncode}: {said}")
    return said


class Writer:
    """Writes keys that are named by the revision of their write; remembers those that were acknowledged."""

    def __init__(self, node, number):
        self.node = node
        self.number = number
        self.revisions = []
        self._client = None

    def step(self):
        try:
            if self._client is None:
                self._client = self.node.client(timeout=SECONDS)
            reply = self._client.call("SETSEQ", f"w{self.number}:", f"{len(self.revisions)}")
        except (resp.ConnectionLost, resp.TimedOut):
            time.sleep(0.05)  # the loss
            self._client = None
            return
        if isinstance(reply, bytes):
            self.revisions.append(int(reply.rsplit(b":", 1)[1]))


class Loss:
    """Five members under load, of which three are lost while the other two are behind."""

    def __init__(self, options, cluster):
        self.options = options
        self.cluster = cluster
        self.leader = cluster.start()
        with self.leader.client() as client:
            check(client.call("SET", "first", "write") == "OK", "SET")
            revision = int(client.call("SETSEQ", "distance:", "").rsplit(b":", 1)[1])
        # Of an entry's index and the revision that it made.
        self.distance = self.leader.status()["last"] - revision
        self.survivors = cluster.others(self.leader)[:2]
        self.lost = [node for node in cluster.nodes if node not in self.survivors]
        self.writers = [Writer(self.leader, number) for number in range(4)]
        self.lost_token = self.lost_session = 0  # that clients of the old group have

    def happen(self):
        backgrounds = [Background(writer.step) for writer in self.writers]
        for background in backgrounds:
            background.__enter__()
        self._wait_for_writes(self.options.writes)
        for node in self.survivors:
            node.pause()
        before = self.written()
        self._wait_for_writes(before + self.options.writes)
        with self.leader.client() as client:
            self.lost_token = client.call("LEASE.GRANT", "60000", "NAME", "lost")[1]
            self.lost_session = client.call("LEASEHOLD", "SESSION", "OPEN")
        # What has arrived at those that stand still is not read any more.
        for node in self.survivors + self.lost:
            node.kill()
        for background in backgrounds:
            background.__exit__(None, None, None)
        check(self.lost_token > 0 and self.lost_session > 0, "no token, or no session")
        for node in self.lost:
            os.rename(node.data_dir, node.data_dir + ".lost")
        for node in self.survivors:
            node.start()
            wait_for(f"{node} to answer", SECONDS, node.try_status)

    def written(self):
        return sum(len(writer.revisions) for writer in self.writers)

    def _wait_for_writes(self, count):
        wait_for(f"{count} writes", SECONDS, lambda: self.written() >= count)

    def revisions(self):
        return sorted(revision for writer in self.writers for revision in writer.revisions)


def look_at_those_that_run(options, loss):
    for node in loss.survivors:
        said = program(options, NO, "look", "--data-dir", node.data_dir)
        check("in use" in said or "another process" in said, said)
    # One ends in order, the other one does not.
    loss.survivors[0].terminate()
    loss.survivors[1].kill()


def refusals(options, loss, folder):
    """What is asked for wrongly changes nothing."""
    first = loss.survivors[0]
    for status, text, *words in [
            (USAGE, "expected look, plan or apply",),
            (USAGE, "none of look, plan and apply", "undo"),
            (USAGE, "needs one --data-dir", "look"),
            (USAGE, "--yes-lose-data is for apply", "plan", "--yes-lose-data", "x"),
            (USAGE, "apply needs the file of a plan", "apply", "--data-dir", first.data_dir),
            (NO, "no survivor is given", "plan"),
            (NO, "has no log of a node", "look", "--data-dir", folder),
            (NO, "cannot read", "plan", os.path.join(folder, "none")),
            (NO, "is there twice", "plan", "--data-dir", first.data_dir, "--data-dir", first.data_dir)]:
        said = program(options, status, *words)
        check(text in said, f"{words}: {said}")
    kept = [word for node in loss.survivors + loss.lost[:1] for word in
            ("--data-dir", node.data_dir + (".lost" if node in loss.lost else ""))]
    said = program(options, NO, "plan", *kept)
    check("are a majority: nothing is lost" in said, said)
    nonsense = os.path.join(folder, "nonsense.json")
    for text in ("", "{}", "[1]", "nothing", '{"leasehold_recovery_plan": 1, "survivors": []}',
                 '{"leasehold_recovery_plan": 2}', '{"leasehold_recovery_report": 1, "node": -1}'):
        with open(nonsense, "w", encoding="utf-8") as file:
            file.write(text)
        program(options, NO, "plan", nonsense)
    damaged = os.path.join(folder, "damaged")
    shutil.copytree(first.data_dir, damaged)
    segment = os.path.join(damaged, "log", sorted(name for name in os.listdir(os.path.join(damaged, "log"))
                                                  if name.endswith(".seg"))[0])
    with open(segment, "r+b") as file:
        file.seek(600)
        byte = file.read(1)
        file.seek(600)
        file.write(bytes([byte[0] ^ 1]))
    said = program(options, NO, "look", "--data-dir", damaged)
    check("damaged" in said, said)


def make_plan(options, loss, folder):
    """The file of the plan, and what it says: the cluster, the source, the last entry that is kept."""
    files = []
    for node in loss.survivors:
        done = subprocess.run([options.binary, "recover", "look", "--data-dir", node.data_dir],
                              capture_output=True, text=True, check=True)
        files.append(os.path.join(folder, f"{node.id}.json"))
        with open(files[-1], "w", encoding="utf-8") as file:
            file.write(done.stdout)
    plan = os.path.join(folder, "plan.json")
    said = program(options, DONE, "plan", *files, "--to", plan)
    check("exists" in program(options, NO, "plan", *files, "--to", plan), "a plan was overwritten")
    cluster = re.search(r"of cluster ([0-9a-f]{16})", said).group(1)
    last, _, source = map(int, re.search(r"up to entry (\d+) \(term (\d+)\), of the log of node (\d+)",
                                         said).groups())
    check(said.index("What may be lost") < said.index("What is kept"), said)
    check(f"every write behind entry {last}." in said, said)
    for node in loss.lost:
        check(re.search(rf"\b{node.id} \(", said), f"{node} is not called lost: {said}")
    print(said, flush=True)
    return plan, cluster, loss.cluster.node(source), last


def apply_plan(options, loss, folder, plan, cluster, source):
    """The file with the state. Refused without the right confirmation, and repeated after each interruption."""
    state = os.path.join(folder, "recovered")
    other = next(node for node in loss.survivors if node is not source)
    words = ["apply", plan, "--data-dir", source.data_dir, "--to", state]
    for more, text in ((["--yes-lose-data", "0" * 16], f"but this is cluster {cluster}"),
                       ([], f"confirm with --yes-lose-data {cluster}")):
        said = program(options, NO, *words, *more)
        check(text in said and "What may be lost" in said, said)
    yes = ("--yes-lose-data", cluster)
    said = at_terminal(options, "yes", *words)
    check("Type the cluster id" in said and "that is not its id: nothing was done" in said, said)
    check("name the file for its state by --to" in program(options, NO, *words[:-2], *yes), "no --to")
    check("not from this one: leave out --to" in
          program(options, NO, "apply", plan, "--data-dir", other.data_dir, "--to", state, *yes), "two sources")
    check(not any(os.path.exists(os.path.join(node.data_dir, "RETIRED")) for node in loss.survivors),
          "a refusal has retired a directory")
    check(not os.path.exists(state), "a refusal has written")
    said = program(options, DONE, "apply", plan, "--data-dir", other.data_dir, *yes)
    check("is retired" in said and "What may be lost" in said, said)
    draw = random.Random(options.seed)
    for _ in range(options.kills):
        process = subprocess.Popen([options.binary, "recover", *words, *yes], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            process.wait(draw.uniform(0.2, 2.5))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if os.path.exists(state):  # it was faster, and is whole
            os.remove(state)
    said = program(options, DONE, *words, *yes)
    check("behind entry" in said and f"wrote {state}" in said, said)
    check("exists: nothing is overwritten" in program(options, NO, *words, *yes), "it was overwritten")
    left = [name for name in os.listdir(folder) if name.startswith("recovered.")]
    check(not left, f"{left} are left over")
    with open(os.path.join(source.data_dir, "RETIRED"), encoding="utf-8") as file:
        check("What may be lost" in file.read(), "RETIRED has no report")
    return state


def retired_ones_do_not_start(loss):
    for node in loss.survivors:
        node.start()
        check(node.wait_exit(SECONDS) == NO, f"{node} ended in another way")
        check("this directory is retired: no node may start on it" in node.log_text(), node.log_text())


def restore_peers(loss, new):
    """Where a survivor was, the peer port is the same."""
    old = dict(peer.split("=") for peer in loss.cluster.peers.split(","))
    fresh = dict(peer.split("=") for peer in new.peers.split(","))
    kept = {str(node.id) for node in loss.survivors}
    new.peers = ",".join(f"{number}={(old if number in kept else fresh)[number]}" for number in fresh)


def restore(options, loss, new, state):
    """Five members."""
    restore_peers(loss, new)
    for node in new.nodes:
        node.peers = new.peers
        done = subprocess.run([options.binary, "restore", "--from", state, "--data-dir", node.data_dir, "--id",
                               str(node.id), "--peers", new.peers], capture_output=True, text=True, check=False)
        check(done.returncode == DONE, done.stderr)


def numbers_of(manifest):
    with open(manifest, "rb") as file:
        lines = file.read(4096).decode("ascii").split("\n")
    return dict(line.split(" ", 1) for line in lines if " " in line)


def the_loss_is_exact(loss, new, state, last):
    manifest = numbers_of(state)
    check(int(manifest["index"]) == last + GAP, f"{manifest}")
    kept = int(manifest["revision"]) - GAP
    check(kept + loss.distance == last, f"revision {kept} is the last one, at entry {last}, not "
          f"{kept + loss.distance}")
    with new.wait_leader().client(timeout=SECONDS) as client:
        there = set()
        for writer in loss.writers:
            for row in rows_of(client, f"w{writer.number}:"):
                there.add(int(row.rsplit(b":", 1)[1]))
        check(client.call("GET", "first") == b"write", "the first write")
        written = loss.revisions()
        missing = [revision for revision in written if revision not in there]
        check(all(revision > kept for revision in missing),
              f"lost without a word: {[r for r in missing if r <= kept]}, the log was kept to revision {kept}")
        check(all(revision <= kept for revision in there), "there is what was not in the log")
        behind = [revision for revision in written if revision > kept]
        check(behind and missing == behind, f"{len(missing)} are missing, {len(behind)} were behind the log")
        token = client.call("LEASE.GRANT", "60000", "NAME", "lost")[1]
        check(token > loss.lost_token and token > kept + GAP, f"token {token} behind {loss.lost_token}")
        session = client.call("LEASEHOLD", "SESSION", "OPEN")
        check(session > loss.lost_session, f"session {session} behind {loss.lost_session}")
    print(f"{len(written)} acknowledged writes, {len(missing)} of them lost, all behind entry {last}", flush=True)


def rows_of(client, prefix):
    """The keys with this prefix."""
    keys, cursor = [], b"0"
    while True:
        cursor, some = client.call("SCAN", cursor, "MATCH", prefix + "*", "COUNT", "1000")
        keys += some
        if cursor == b"0":
            return keys


def it_says_so(loss, new, last):
    for node in new.nodes:
        info = node.info()
        check(info["recovered"] == "yes" and int(info["recovered_end_index"]) == last, f"{info}")
        check(abs(int(info["recovered_at"]) - time.time()) < 600, f"{info['recovered_at']}")
        check("this group was recovered from a lost majority" in node.log_text(), node.log_text())
    check(loss.leader.id in {node.id for node in loss.lost}, "the leader was lost")


def old_members_are_refused(loss, new):
    """They were not lost after all. Together they are a majority, and they stop."""
    for node in loss.lost:
        os.rename(node.data_dir + ".lost", node.data_dir)
        node.start()
    for node in loss.lost:
        check(node.wait_exit(SECONDS) == NO, f"{node} ended in another way")
        check("was given up: its majority was lost" in node.log_text(), node.log_text())
    leader = new.wait_leader()
    with leader.client() as client:
        check(client.call("SET", "after", "all") == "OK", "SET")


def run(options):
    with Cluster(options.binary, size=5, flags=FLAGS, keep=options.keep) as cluster, \
            Cluster(options.binary, size=5, flags=FLAGS, keep=options.keep) as new:
        loss = Loss(options, cluster)
        loss.happen()
        look_at_those_that_run(options, loss)
        refusals(options, loss, new.folder)
        plan, cluster_id, source, last = make_plan(options, loss, new.folder)
        state = apply_plan(options, loss, new.folder, plan, cluster_id, source)
        retired_ones_do_not_start(loss)
        restore(options, loss, new, state)
        new.start()
        the_loss_is_exact(loss, new, state, last)
        it_says_so(loss, new, last)
        old_members_are_refused(loss, new)


if __name__ == "__main__":
    main(__doc__, run, arguments)
