"""What causes each alert of docs/alerts.yml. A scene is a block: in it the cause is there, and it gives the nodes for
which its alert has to fire."""

import contextlib
import os
import resource
import socket
import subprocess
import time

from admin_port import metrics
from cluster import Background, check, wait_for
from peer_attacks import cluster_id
from peer_forge import Forger
from resp import RespError, encode
from stopped_thread import stopped

# More than the admin port waits for the groups' threads.
SLOW_SCRAPE_SECONDS = 4
SYNC_SECONDS = 0.25
LIMIT_DESCRIPTORS = 300
# Above it clients with large replies are closed.
MEMORY_SHARE = 0.72
VALUE_BYTES = 512 << 10
BATCH = 500
# Less than a tenth of the disk; enough for the log's next file.
LEFT_MEBIBYTES = 70
SCRUB_SECONDS = 2


def write(node, count, value="v", pause=0.0):
    with node.client(30) as client:
        for begin in range(0, count, BATCH):
            replies = client.pipeline([("SET", f"key:{i % 100}", value)
                                       for i in range(begin, min(count, begin + BATCH))])
            check(all(reply == "OK" for reply in replies), f"writes at {node}: {replies[:1]}")
            time.sleep(pause)


def settings(stage, *words):
    done = subprocess.run([stage.options.binary, "settings", "set", *words, "--timeout", "20s", "--servers",
                           ",".join(f"127.0.0.1:{node.port}" for node in stage.cluster.nodes)],
                          capture_output=True, text=True, check=False, timeout=60)
    check(done.returncode == 0, f"settings set {words}: {done.stdout}{done.stderr}")


def leading(stage):
    """The leader, with or without a lease."""
    return wait_for("a leader", 30, lambda: next(
        (node for node in stage.cluster.nodes if (node.try_status() or {}).get("role") == "leader"), None))


def follower(stage):
    return stage.cluster.others(stage.cluster.wait_leader())[0]


@contextlib.contextmanager
def node_down(stage):
    node = follower(stage)
    node.kill()
    yield [node]
    node.start()


@contextlib.contextmanager
def no_leader(stage):
    last = stage.cluster.wait_leader()
    killed = stage.cluster.others(last)
    for node in killed:
        node.kill()
    yield [last]
    for node in killed:
        node.start()


@contextlib.contextmanager
def no_lease(stage):
    settings(stage, "lease-reads=off")
    yield [leading(stage)]
    settings(stage, "lease-reads=on")


@contextlib.contextmanager
def lease_fallbacks(stage):
    with no_lease(stage) as nodes:
        with nodes[0].client() as client, Background(lambda: (client.call("GET", "key:1"), time.sleep(0.02))):
            yield nodes


@contextlib.contextmanager
def threads_stand_still(stage):
    node = follower(stage)
    with stage.prometheus.scraped_every(SLOW_SCRAPE_SECONDS):
        with stopped(node.process.pid, "lh-node"):
            yield [node]
        stage.cluster.wait_leader()


@contextlib.contextmanager
def elections(stage):
    """The leader stands still until another node leads; then that one, and so on."""
    def stop_the_leader():
        leader = stage.cluster.wait_leader()
        leader.pause()
        stage.cluster.wait_leader(among=stage.cluster.others(leader))
        leader.resume()
    with Background(stop_the_leader):
        yield []


@contextlib.contextmanager
def apply_lags(stage):
    node = follower(stage)
    with stopped(node.process.pid, "lh-apply"):
        write(stage.cluster.node(node.status()["leader"]), 1500)
        yield [node]


@contextlib.contextmanager
def peer_lags(stage):
    leader, node = stage.cluster.wait_leader(), follower(stage)
    node.kill()
    write(leader, 10001)
    yield [leader]
    node.start()


@contextlib.contextmanager
def slow_syncs(stage):
    node = follower(stage)
    stage.shims[node].stall(SYNC_SECONDS, 1 << 30)
    leader = stage.cluster.wait_leader()
    with Background(lambda: write(leader, 1, pause=0.05)):
        yield [node]
    stage.shims[node].stall(0, 0)


@contextlib.contextmanager
def disk_fills_up(stage):
    node = stage.small
    stage.space.take(node, LEFT_MEBIBYTES)
    yield [node]
    stage.space.give_back(node)


@contextlib.contextmanager
def disk_full(stage):
    node = stage.small
    stage.space.take(node, 0)

    def push():
        with leading(stage).client() as client:
            reply = client.call("SET", "key:1", b"x" * (1 << 20))
            check(reply == "OK" or isinstance(reply, RespError), f"a write: {reply!r}")
        stage.space.take(node, 0)
    with Background(push):
        wait_for("the disk to be full", 60, lambda: node.status()["disk_full"], pause=0.1)
    yield [node]
    stage.space.give_back(node)


@contextlib.contextmanager
def state_damaged(stage):
    node = follower(stage)
    write(stage.cluster.wait_leader(), 100)
    stage.cluster.wait_caught_up(node)
    node.terminate()
    subprocess.run([stage.options.flip_value, os.path.join(node.data_dir, "state"), "key:7"], check=True, timeout=60)
    flags = list(node.flags)
    node.flags += ["--scrub-interval", f"{SCRUB_SECONDS}s"]
    node.start()
    yield [node]
    node.terminate()
    servers = ",".join(f"127.0.0.1:{other.port}" for other in stage.cluster.others(node))
    done = subprocess.run([stage.options.binary, "rebuild", "--data-dir", node.data_dir, "--servers", servers],
                          capture_output=True, text=True, check=False, timeout=60)
    check(done.returncode == 0, f"rebuild: {done.stdout}{done.stderr}")
    node.flags = flags
    node.start()


@contextlib.contextmanager
def protocol_violations(stage):
    """Somebody speaks in the name of a node that was killed: it asks for a vote in a term that no group can have
    reached."""
    leader, node = stage.cluster.wait_leader(), follower(stage)
    sender = next(other for other in stage.cluster.others(leader) if other is not node)
    incarnation = sender.status()["incarnation"] + 1
    sender.kill()
    status = node.status()
    forger = Forger(stage.schema, status, cluster_id("default", stage.cluster.peers))
    data = forger.hello(sender.id, node.id, incarnation=incarnation) + forger.message(
        "vote_request", {"term": 1 << 61, "last_term": status["term"], "last_index": status["commit"]})
    with socket.create_connection(("127.0.0.1", node.peer_port), timeout=5) as connection:
        connection.sendall(data)
        connection.settimeout(1)
        with contextlib.suppress(OSError):
            connection.recv(1 << 16)
    yield [node]
    sender.start()
    sender.wait_exit(30)  # its number of starts is that of somebody else already
    sender.start()


@contextlib.contextmanager
def memory_of_clients(stage):
    """Clients that ask for large values and do not read them."""
    node = follower(stage)
    with node.client() as client:
        check(client.call("SET", "large", b"x" * VALUE_BYTES) == "OK", "no SET")
    held = []

    def share():
        seen = metrics(node)
        return seen["leasehold_client_memory_bytes"] / seen["leasehold_client_memory_max_bytes"]
    try:
        while share() < MEMORY_SHARE:
            check(len(held) < 200, f"{len(held)} clients use {share():.2f} of the memory")
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", node.port))
            sock.sendall(encode("GET", "large") * 20)
            held.append(sock)
            time.sleep(0.02)
        yield [node]
    finally:
        for sock in held:
            sock.close()


@contextlib.contextmanager
def descriptors(stage):
    node = follower(stage)
    before = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (LIMIT_DESCRIPTORS, before[1]))
    held = []
    try:
        while metrics(node)["process_open_fds"] < 0.93 * LIMIT_DESCRIPTORS:
            held.append(node.client())
            check(held[-1].call("PING") == "PONG", "no PING")  # it is accepted
        yield [node]
    finally:
        for client in held:
            client.close()
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, before)


class Scene:
    """`beside`: the alerts that may come along, of any node."""

    def __init__(self, cause, beside=(), stage="patient"):
        self.cause, self.beside, self.stage = cause, {f"Leasehold{name}" for name in beside}, stage


# Their rules look back for long: no scene waits until they end.
LASTING = {"LeaseholdElections", "LeaseholdProtocolViolations"}
# In this order. What is killed or started again is down for a moment; one that is alone campaigns again and again.
SCENES = {
    "NodeDown": Scene(node_down),
    "NoLease": Scene(no_lease),
    "LeaseFallbacks": Scene(lease_fallbacks, ["NoLease"]),
    "ThreadsStandStill": Scene(threads_stand_still),
    "ApplyLags": Scene(apply_lags),
    "PeerLags": Scene(peer_lags, ["NodeDown"]),
    "SlowSyncs": Scene(slow_syncs),
    "MemoryOfClients": Scene(memory_of_clients),
    "Descriptors": Scene(descriptors),
    "StateDamaged": Scene(state_damaged, ["NodeDown"]),
    "ProtocolViolations": Scene(protocol_violations, ["NodeDown"]),
    "NoLeader": Scene(no_leader, ["NodeDown", "Elections"]),
    "DiskFillsUp": Scene(disk_fills_up, stage="small disk"),
    "DiskFull": Scene(disk_full, ["DiskFillsUp"], stage="small disk"),
    "Elections": Scene(elections, ["NodeDown", "NoLeader"], stage="hasty"),
}
