#!/usr/bin/env python3
"""A bit flips in a stored value of one replica, and every checksum fits. The replica finds it within the
stated time, at rest and under load, by reading its disk back or by comparing itself with the others. It
stops serving and leading, is rebuilt from the others, and the history is linearizable."""

import contextlib
import os
import subprocess
import time

from cluster import Background, Cluster, built, check, main, wait_for
from history import History
import resp

SCRUB_SECONDS = 6
COMPARE_SECONDS = 1
KEYS = 400
REGISTERS = 16
LOST = (OSError, resp.ConnectionLost, resp.TimedOut)


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--flip-value", required=True, type=built, help="the flip_value program")
    parser.add_argument("--rounds", type=int, default=1, help="of each kind")


def program(options, *words):
    done = subprocess.run([options.binary, *words], capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 0, f"{words} ended with {done.returncode}: {done.stdout} {done.stderr}")
    return done.stdout


class Client:
    """Reads and writes registers at one node, and at another one while that refuses."""

    def __init__(self, number, cluster, history):
        self.number, self.cluster, self.history = number, cluster, history
        self.turn, self.client = number, None
        self.done = self.refused = 0

    def step(self):
        time.sleep(0.004)
        try:
            self._try()
        except LOST:
            self._leave()

    def _leave(self):
        if self.client is not None:
            self.client.close()
        self.client = None
        self.turn += 1
        time.sleep(0.02)

    def _try(self):
        if self.client is None:
            self.client = self.cluster.nodes[self.turn % len(self.cluster.nodes)].client(timeout=10)
        value = self.history.new_value()
        key = f"register:{value % REGISTERS}"
        invoked, reply = self.history.now(), None
        if value % 3 == 0:
            try:
                reply = self.client.call("SET", key, value)
            finally:
                self.history.wrote(self.number, key, value, invoked, reply)
        else:
            reply = self.client.call("GET", key)
            self.history.read(self.number, key, reply, invoked)
        if isinstance(reply, resp.RespError):
            self.refused += 1
            self._leave()
        else:
            self.done += 1


def flip(options, cluster, node, key, flags):
    """Stops the node, flips a bit of the key's value in its store, and starts it with more flags."""
    node.terminate()
    subprocess.run([options.flip_value, os.path.join(node.data_dir, "state"), key], check=True, timeout=60)
    node.flags = [*cluster.flags, *flags]
    node.start()
    begun = time.monotonic()
    cluster.wait_leader()
    return begun


def found(options, cluster, node, begun, seconds, words):
    state = wait_for(f"{node} to find its damage", seconds, lambda: _refused(node))
    took = time.monotonic() - begun
    check(words in state["state"]["refused"], f"{node}: {state['state']}")
    # The status is public a moment before the line is.
    wait_for(f"{node} to log it", 5, lambda: "this replica's state is not served" in node.log_text())
    with node.client() as client:
        for command in (("GET", "key:1"), ("SET", "key:1", "x"), ("DBSIZE",), ("KEYS", "*")):
            reply = client.call(*command)
            check(isinstance(reply, resp.RespError) and "is not served" in reply.text and reply.not_executed,
                  f"{node} answered {command} with {reply!r}")
        check("state_served:no" in client.call("INFO", "state").decode(), "INFO says nothing")
    wait_for(f"another leader than {node}", 20, lambda: any(
        (state or {}).get("role") == "leader" for state in (n.try_status() for n in cluster.others(node))))
    said = program(options, "status", "--servers", ",".join(f"127.0.0.1:{n.port}" for n in cluster.nodes))
    check("its state: not served" in said, said)
    for other in cluster.others(node):
        check(other.status()["state"]["served"], f"{other} does not serve: {other.status()['state']}")
    return took


def _refused(node):
    check(node.running, f"{node} ended by itself")
    state = node.try_status()
    return state if state and not state["state"]["served"] else None


def rebuild(options, cluster, node, name, expected):
    """From the others; then the value is what the group agreed on. Without `name` in one command, else by a copied
    backup of this name."""
    # Refused again after a restart without the rebuild.
    node.terminate()
    node.flags = list(cluster.flags)
    node.start()
    wait_for(f"{node} to remember that it differs", 20, lambda: _refused(node))
    hard_state = node.status()
    node.terminate()
    if name:
        source, copy = cluster.others(node)[0], os.path.join(cluster.folder, name)
        program(options, "backup", "--servers", f"127.0.0.1:{source.port}", "--to", copy, name)
        said = program(options, "rebuild", "--data-dir", node.data_dir, "--from", copy)
    else:
        # Its own address is among them: it is passed over.
        said = program(options, "rebuild", "--data-dir", node.data_dir, "--servers",
                       ",".join(f"127.0.0.1:{one.port}" for one in [node, *cluster.others(node)]))
        check(not os.listdir(os.path.join(node.data_dir, "backups")), "the copy is still there")
    check("Start the node" in said, said)
    node.start()
    wait_for(f"{node} to serve again", 30, lambda: (node.try_status() or {"state": {}})["state"].get("served"))
    cluster.wait_caught_up(node)
    state = node.status()
    check(state["uuid"] == hard_state["uuid"] and state["term"] >= hard_state["term"],
          f"{node} was {hard_state['uuid']} in {hard_state['term']}, and is {state['uuid']} in {state['term']}")
    with node.client() as client:
        for key, value in expected.items():
            check(client.call("GET", key) == value, f"{node}: {key} is {client.call('GET', key)!r}")
    # It is compared and read back again, and all is well.
    scrubs = state["state"]["scrubs"]
    wait_for("a scrub and a comparison after the rebuild", 60, lambda: _well(node, scrubs))


def _well(node, scrubs):
    state = node.status()["state"]
    check(state["served"] and not state["warning"], f"{node}: {state}")
    return state["scrubs"] > scrubs and state["compares"] > 0


def by_scrub(options, cluster, number, under):
    """It is read back, whether anybody asks for it or not."""
    leader = cluster.wait_leader()
    node = cluster.others(leader)[number % 2]
    key = f"key:{number}"
    begun = flip(options, cluster, node, key, ["--compare-interval", "0s"])
    took = found(options, cluster, node, begun, SCRUB_SECONDS + 5, "not those that were applied")
    check(took <= SCRUB_SECONDS + 1, f"found after {took:.1f} s")
    print(f"{under}: a flipped bit was found by the scrub after {took:.1f} s of {SCRUB_SECONDS}", flush=True)
    rebuild(options, cluster, node, None, {key: f"value {number}".encode()})


def by_comparison(options, cluster, number, under):
    """Nothing is read back, and the damaged value is overwritten: only the sums still differ. The node leads
    when it finds that, and leads no more."""
    leader = cluster.wait_leader()
    node = cluster.others(leader)[number % 2]
    key = f"key:{number + 100}"
    begun = flip(options, cluster, node, key, ["--scrub-interval", "0s"])
    leader = cluster.wait_leader()
    if leader is not node:
        with leader.client() as client:
            client.call("LEASEHOLD", "TRANSFER", node.id)
    check(cluster.wait_leader() is node, "the leadership was not transferred")
    with node.client() as client:
        check(client.call("SET", key, f"again {number}") == "OK", "no SET")
    took = found(options, cluster, node, begun, 30, "differs from a majority")
    print(f"{under}: a flipped bit that was overwritten was found by comparison after {took:.1f} s", flush=True)
    rebuild(options, cluster, node, f"compare-{under}-{number}", {key: f"again {number}".encode()})


def run(options):
    flags = ["--scrub-interval", f"{SCRUB_SECONDS}s", "--compare-interval", f"{COMPARE_SECONDS}s"]
    with Cluster(options.binary, flags=flags) as cluster:
        leader = cluster.start()
        with leader.client() as client:
            for number in range(KEYS):
                check(client.call("SET", f"key:{number}", f"value {number}") == "OK", "no SET")
        wait_for("comparisons and scrubs", 60, lambda: all(_well(node, 0) for node in cluster.nodes))
        for number in range(options.rounds):
            by_scrub(options, cluster, 2 * number, "idle")
            by_comparison(options, cluster, 2 * number, "idle")
        history = History()
        clients = [Client(number, cluster, history) for number in range(6)]
        with contextlib.ExitStack() as stack:
            load = [stack.enter_context(Background(client.step)) for client in clients]
            for number in range(options.rounds):
                by_scrub(options, cluster, 2 * number + 1, "loaded")
                by_comparison(options, cluster, 2 * number + 1, "loaded")
            for one in load:
                one.check()
        print(f"{sum(client.done for client in clients)} requests under load, "
              f"{sum(client.refused for client in clients)} refusals", flush=True)
        linearizable, said = history.judge(options.checker)
        check(linearizable, said)


if __name__ == "__main__":
    main(__doc__, run, arguments)
