"""Processes and folders that do not belong to the cluster."""

import os
import shutil

from cluster import check, free_port, wait_for

# In this time a node that has to give up has met its peers.
GIVE_UP_SECONDS = 15


def rejected(node):
    return node.status()["node"]["frames_rejected"]


def stranger(cluster, name, node_id, *flags, peers=None):
    """Another process, on ports of its own."""
    flags = ["--peer-listen", f"127.0.0.1:{free_port()}", *flags]
    node = cluster.make_node(node_id, name, peers=peers, flags=flags)
    cluster.extra.append(node)
    return node


def gives_up(node, *texts, mark=0):
    """Ends by itself, with an error that says why (in the log from `mark` on)."""
    status = node.wait_exit(GIVE_UP_SECONDS)
    check(status == 1, f"{node} ended with status {status}")
    log = node.log_text()[mark:]
    for text in texts:
        check(text in log, f"{node} says nothing of {text!r}: {log[-2000:]}")
    print(f"{node}: {log.strip().splitlines()[-1][:300]}", flush=True)


def attack_with_strangers(cluster, victim, stayers):
    other_cluster(cluster, victim, stayers)
    same_id(cluster, stayers[0], stayers[1])


def other_cluster(cluster, victim, stayers):
    """The same addresses, another name: refused by all, and it never forms."""
    node = stranger(cluster, "other-cluster", victim.id, "--cluster", "other")
    before = {stayer: rejected(stayer) for stayer in stayers}
    node.start()
    for stayer in stayers:
        wait_for(f"{stayer} to count the stranger", 10,
                 lambda s=stayer: rejected(s) > before[s])
    # Its peers may hear of it before its port for clients is open.
    status = wait_for("the stranger's status", 10, node.status)
    check(not status["formed"] and status["missing"], "the stranger formed a group")
    wait_for("the stranger to know why", 5, lambda: "cluster" in node.status()["problem"])
    print(f"a peer of another cluster knows: {node.status()['problem']}")
    check(node.terminate() == 0, "the stranger did not end cleanly")


def same_id(cluster, twin, witness):
    """A second process under the id of a node that runs, on an empty folder."""
    node = stranger(cluster, "twin", twin.id)
    before = rejected(witness)
    node.start()
    gives_up(node, "uuid")
    check(rejected(witness) > before, f"{witness} did not count the twin")


def attack_folders(cluster, victim, stayers):
    in_use(cluster, stayers[0])
    victim.kill()
    foreign_folder(cluster, victim)
    no_folder_of_ours(cluster, victim)
    wiped(cluster, victim, stayers)
    copied(cluster, victim, stayers)


def in_use(cluster, owner):
    node = stranger(cluster, "in-use", owner.id)
    node.data_dir = owner.data_dir
    node.start()
    gives_up(node, "another process", owner.data_dir)


def foreign_folder(cluster, victim):
    """The victim's folder under another cluster's name, other peers, another id."""
    other_peers = victim.peers.replace("127.0.0.1", "127.0.0.2")
    other_id = next(n.id for n in cluster.nodes if n is not victim)
    for name, node in (
            ("another-name", stranger(cluster, "another-name", victim.id, "--cluster", "other")),
            ("other-peers", stranger(cluster, "other-peers", victim.id, peers=other_peers)),
            ("another-id", stranger(cluster, "another-id", other_id))):
        node.data_dir = victim.data_dir
        node.start()
        gives_up(node, f"belongs to node {victim.id}", victim.data_dir)


def no_folder_of_ours(cluster, victim):
    """A folder with other files in it, and a file."""
    node = stranger(cluster, "not-ours", victim.id)
    log = os.path.join(node.data_dir, "log")
    os.makedirs(log)
    with open(os.path.join(log, "thesis.tex"), "w", encoding="ascii") as file:
        file.write("do not overwrite\n")
    node.start()
    gives_up(node, log)
    check(os.listdir(log) == ["thesis.tex"] or os.path.exists(os.path.join(log, "thesis.tex")),
          "somebody else's file is gone")
    node = stranger(cluster, "a-file", victim.id)
    with open(node.data_dir, "w", encoding="ascii") as file:
        file.write("a file\n")
    node.start()
    gives_up(node, node.data_dir)


def wiped(cluster, victim, stayers):
    """The victim returns without its folder: refused until it is added again. With its folder back,
    it goes on."""
    saved = victim.data_dir + ".saved"
    os.rename(victim.data_dir, saved)
    before = {stayer: rejected(stayer) for stayer in stayers}
    mark = len(victim.log_text())
    victim.start()
    gives_up(victim, "uuid", mark=mark)
    counted = [stayer for stayer in stayers if rejected(stayer) > before[stayer]]
    check(counted, "nobody counted the wiped node")
    shutil.rmtree(victim.data_dir)
    os.rename(saved, victim.data_dir)
    victim.start()
    cluster.wait_caught_up(victim)


def copied(cluster, victim, stayers):
    """Two processes on copies of one folder: one continues, the other gives up."""
    victim.kill()
    twin = stranger(cluster, "copy", victim.id)
    shutil.copytree(victim.data_dir, twin.data_dir)
    victim.start()
    cluster.wait_caught_up(victim)
    before = sum(rejected(stayer) for stayer in stayers)
    twin.start()
    gives_up(twin, "another process")
    check(sum(rejected(stayer) for stayer in stayers) > before, "nobody counted the copy")
    cluster.wait_caught_up(victim)
