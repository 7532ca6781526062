#!/usr/bin/env python3
"""Five nodes with many groups lose three of them for good. `leasehold recover` makes a cluster of five of what the
other two have: of each group it says what may be lost, and exactly that is missing; every slot is served again, by
new nodes and for clients that go on. With --replicas some groups have lost their majority, some have kept it, and
some have no survivor: those come from a backup. The old nodes are refused, and an interrupted command is repeated."""

import os
import random
import re
import shutil
import subprocess
import time

import resp
from cluster import Background, Cluster, check, main, wait_for
from recover import DONE, FLAGS, GAP, NO, SECONDS, USAGE, numbers_of, program, retired_ones_do_not_start, restore_peers
from resp import RespError
from slots import COUNT, owners, slot_of


def arguments(parser):
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--replicas", type=int, help="of each group but the first; all nodes else")
    parser.add_argument("--writes", type=int, default=60, help="to each group, before and behind the loss, at least")
    parser.add_argument("--kills", type=int, default=3, help="of recover apply, at random moments")


def tag_of(group, groups):
    """A word whose slot is the group's at the beginning."""
    return next(f"t{n}" for n in range(COUNT) if slot_of(f"t{n}") * groups // COUNT + 1 == group)


class Writer:
    """Writes keys of one group, named by the revision of their write; remembers those that were acknowledged."""

    def __init__(self, cluster, group, groups):
        self.group = group
        self.prefix = "{" + tag_of(group, groups) + "}:"
        self.ports = [node.port for node in cluster.nodes[2:]]  # those that will be lost
        self.port = self.ports[0]
        self.revisions = []
        self._client = None

    def step(self):
        try:
            if self._client is None:
                self._client = resp.Client(self.port, 2, "127.0.0.1", None, None)
            reply = self._client.call("SETSEQ", self.prefix, f"{len(self.revisions)}")
        except (resp.ConnectionLost, resp.TimedOut):
            time.sleep(0.05)
            self._client = None
            self.port = random.choice(self.ports)
            return
        if isinstance(reply, bytes):
            self.revisions.append(int(reply.rsplit(b":", 1)[1]))
        elif isinstance(reply, RespError) and reply.word == "MOVED":
            self.port = int(reply.text.rsplit(":", 1)[1])
            self._client = None
        else:
            time.sleep(0.02)


class Loss:
    """Nodes 3, 4 and 5 are lost, while nodes 1 and 2 are behind."""

    def __init__(self, options, cluster):
        self.options = options
        self.cluster = cluster
        cluster.start()
        self.survivors, self.lost = cluster.nodes[:2], cluster.nodes[2:]
        self.writers = [Writer(cluster, group, options.groups) for group in range(1, options.groups + 1)]
        self.served = self.writers  # those whose group goes on without the nodes that stand still

    def happen(self, folder):
        backgrounds = [Background(writer.step) for writer in self.writers]
        for background in backgrounds:
            background.__enter__()
        self._wait_for_writes(self.writers)
        backup = os.path.join(folder, "backup")
        servers = ",".join(f"127.0.0.1:{node.port}" for node in self.cluster.nodes)
        done = subprocess.run([self.options.binary, "backup", "--servers", servers, "--to", backup], text=True,
                              capture_output=True, check=False, timeout=120)
        check(done.returncode == 0, f"backup: {done.stdout} {done.stderr}")
        for node in self.survivors:
            node.pause()
        served = self.writers
        if self.options.replicas:
            before = {writer: len(writer.revisions) for writer in self.writers}
            time.sleep(6)  # beyond a lease and an election
            served = [writer for writer in self.writers if len(writer.revisions) > before[writer] + 1]
            check(served and served[0].group == 1, f"groups {[w.group for w in served]} are served")
        self._wait_for_writes(served)
        for node in self.survivors + self.lost:
            node.kill()
        for background in backgrounds:
            background.__exit__(None, None, None)
        for node in self.lost:
            os.rename(node.data_dir, node.data_dir + ".lost")
        return backup

    def _wait_for_writes(self, writers):
        goals = {writer: len(writer.revisions) + self.options.writes for writer in writers}
        wait_for("writes to each group", SECONDS, lambda: all(len(w.revisions) >= goals[w] for w in writers))


def look(options, loss, folder):
    files = []
    for node in loss.survivors:
        done = subprocess.run([options.binary, "recover", "look", "--data-dir", node.data_dir],
                              capture_output=True, text=True, check=False)
        check(done.returncode == DONE, done.stderr)
        files.append(os.path.join(folder, f"node-{node.id}.json"))
        with open(files[-1], "w", encoding="utf-8") as file:
            file.write(done.stdout)
    return files


class Plan:
    """What the plan says of each group."""

    def __init__(self, options, loss, folder):
        files = look(options, loss, folder)
        groups = ("--groups", str(options.groups))
        check("give --groups with the number" in program(options, NO, "plan", *files), "no --groups")
        check("is no number" in program(options, NO, "plan", *files, "--groups", "x"), "--groups x")
        check("there is no group 99" in program(options, NO, "plan", *files, *groups, "--group", "99"), "--group 99")
        check("are said to be 1 groups" in program(options, NO, "plan", *files, "--groups", "1"), "--groups 1")
        check("for plan" in program(options, USAGE, "look", "--data-dir", loss.survivors[0].data_dir, *groups), "look")
        check("is there twice" in program(options, NO, "plan", files[0], files[0], *groups), "twice")
        one = program(options, DONE, "plan", *files, *groups, "--group", "1")
        check(one.count("it was not asked for (--group)") == options.groups - 1, one)
        self.path = os.path.join(folder, "plan.json")
        self.text = program(options, DONE, "plan", *files, *groups, "--to", self.path)
        print(self.text, flush=True)
        self.cluster = re.search(r"of cluster ([0-9a-f]{16})", self.text).group(1)
        lost, kept = self.text.split("What is kept:")
        self.lost = {int(group): what for group, what in re.findall(r"group (\d+): (.*)", lost)}
        found = re.findall(r"group (\d+): everything up to entry (\d+) \(term \d+\), of the log of node (\d+)", kept)
        self.kept = {int(group): (int(last), int(node)) for group, last, node in found}
        check(sorted(self.lost) == list(range(1, options.groups + 1)), self.text)
        for node in loss.lost:
            check(f"127.0.0.1:{node.peer_port}" in self.text, f"{node} is not called lost: {self.text}")


def apply(options, loss, plan, folder):
    """A folder with a file for each group that goes on."""
    whole = os.path.join(folder, "recovered")
    os.mkdir(whole)
    yes = ("--yes-lose-data", plan.cluster)
    draw = random.Random(options.seed)
    for node in loss.survivors:
        own = sorted(group for group, (_, source) in plan.kept.items() if source == node.id)
        to = os.path.join(folder, f"from-{node.id}")
        words = ["apply", plan.path, "--data-dir", node.data_dir]
        if not own:
            check("leave out --to" in program(options, NO, *words, "--to", to, *yes), "--to")
            program(options, DONE, *words, *yes)
            continue
        check("confirm with --yes-lose-data" in program(options, NO, *words, "--to", to), "no confirmation")
        check("but this is cluster" in program(options, NO, *words, "--to", to, "--yes-lose-data", "0" * 16), "wrong")
        check("name the folder" in program(options, NO, *words, *yes), "no --to")
        check(not os.path.exists(to) and not os.path.exists(os.path.join(node.data_dir, "RETIRED")), "it has written")
        for _ in range(options.kills):
            process = subprocess.Popen([options.binary, "recover", *words, "--to", to, *yes],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(draw.uniform(1.5, 3.5))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        said = program(options, DONE, *words, "--to", to, *yes)
        check("is retired" in said and "What may be lost" in said, said)
        check(sorted(map(int, os.listdir(to))) == own, f"{os.listdir(to)}, not {own}")
        os.mkdir(os.path.join(to, f"{own[0]}.work"))  # as a call leaves it that was killed in its last step
        check(program(options, DONE, *words, "--to", to, *yes).count("is there already") == len(own), "again")
        check(sorted(map(int, os.listdir(to))) == own, f"{os.listdir(to)}, not {own}, after another call")
        for name in os.listdir(to):
            shutil.copy(os.path.join(to, name), whole)
    return whole


def fill_up(options, plan, whole, backup):
    """Groups that no survivor has come from the backup."""
    missing = [group for group in range(1, options.groups + 1) if group not in plan.kept]
    for group in missing:
        check("all of it, unless a backup has it" in plan.lost[group], plan.lost[group])
        shutil.copy(os.path.join(backup, str(group)), whole)
    return missing


def restore(options, loss, new, whole):
    restore_peers(loss, new)
    for node in new.nodes:
        node.peers = new.peers
        done = subprocess.run([options.binary, "restore", "--from", whole, "--data-dir", node.data_dir, "--id",
                               str(node.id), "--peers", new.peers, "--groups", str(options.groups)],
                              capture_output=True, text=True, check=False)
        check(done.returncode == DONE, done.stderr)


def keys_of(node, prefix):
    """At this node, which may have no replica of the group."""
    found, cursor = set(), b"0"
    with node.client(timeout=SECONDS) as client:
        while True:
            cursor, some = client.call("SCAN", cursor, "MATCH", prefix + "*", "COUNT", "1000")
            found |= {int(row.rsplit(b":", 1)[1]) for row in some}
            if cursor == b"0":
                return found


def all_slots_are_served(options, new):
    def ok():
        with new.nodes[0].client() as client:
            reply = client.call("CLUSTER", "INFO")
        return isinstance(reply, bytes) and b"cluster_state:ok" in reply
    wait_for("all slots to be served", SECONDS, ok, pause=0.1)
    check(owners(new.nodes[0]) == [slot * options.groups // COUNT + 1 for slot in range(COUNT)], "slots have moved")


def the_loss_is_exact(loss, new, plan, whole, missing):
    total = lost = 0
    for writer in loss.writers:
        manifest = numbers_of(os.path.join(whole, str(writer.group)))
        kept = int(manifest["revision"])
        if writer.group not in missing:
            last, _ = plan.kept[writer.group]
            check(int(manifest["index"]) == last + GAP, f"group {writer.group}: {manifest}")
            kept -= GAP
        there = set().union(*(keys_of(node, writer.prefix) for node in new.nodes))
        gone = [revision for revision in writer.revisions if revision not in there]
        behind = [revision for revision in writer.revisions if revision > kept]
        check(gone == behind, f"group {writer.group}: {len(gone)} are missing, {len(behind)} were behind {kept}")
        check(all(revision <= kept for revision in there), f"group {writer.group} has what was not in its log")
        if plan.lost[writer.group].startswith("nothing"):
            check(not gone, f"group {writer.group} was to lose nothing, and lacks {len(gone)}")
        total += len(writer.revisions)
        lost += len(gone)
    check(lost > 0, "nothing was lost: the test shows nothing")
    print(f"{total} acknowledged writes, {lost} of them lost, all as the plan says; groups {missing} from the backup")


def clients_go_on(loss, new, missing):
    """Revisions rise. A group that came from the backup has gone back to those of the backup."""
    for writer in loss.writers:
        writer.ports = [node.port for node in new.nodes]
        writer.port, writer._client = writer.ports[0], None
        before = len(writer.revisions)
        wait_for(f"a write to group {writer.group}", SECONDS, lambda w=writer: w.step() or len(w.revisions) > before)
        highest = max(writer.revisions[:before], default=0) if writer.group not in missing else 0
        check(writer.revisions[-1] > highest, f"revision {writer.revisions[-1]} behind {highest}")


def old_nodes_are_refused(loss):
    for node in loss.lost:
        os.rename(node.data_dir + ".lost", node.data_dir)
        node.start()
    for node in loss.lost:
        check(node.wait_exit(SECONDS) == NO, f"{node} ended in another way")
        check("was given up: its majority was lost" in node.log_text(), node.log_text())


def with_clients(cluster, peers_of=None):
    addresses = ",".join(f"{node.id}=127.0.0.1:{node.port}" for node in (peers_of or cluster).nodes)
    for node in cluster.nodes:
        node.flags += ["--client-addresses", addresses]


def run(options):
    flags = [*FLAGS, "--groups", str(options.groups)]
    if options.replicas:
        flags += ["--replicas", str(options.replicas)]
    with Cluster(options.binary, size=5, flags=flags, keep=options.keep) as cluster, \
            Cluster(options.binary, size=5, flags=flags, keep=options.keep) as new:
        with_clients(cluster)
        with_clients(new)
        loss = Loss(options, cluster)
        backup = loss.happen(new.folder)
        plan = Plan(options, loss, new.folder)
        whole = apply(options, loss, plan, new.folder)
        missing = fill_up(options, plan, whole, backup)
        retired_ones_do_not_start(loss)
        restore(options, loss, new, whole)
        new.start()
        all_slots_are_served(options, new)
        the_loss_is_exact(loss, new, plan, whole, missing)
        clients_go_on(loss, new, missing)
        info = new.nodes[0].info()
        check(info["recovered"] == "yes" and info["recovered_from_cluster"] == plan.cluster, f"{info}")
        check("group 1 was recovered from a lost majority" in new.nodes[0].log_text(), new.nodes[0].log_text())
        old_nodes_are_refused(loss)
        clients_go_on(loss, new, missing)


if __name__ == "__main__":
    main(__doc__, run, arguments)
