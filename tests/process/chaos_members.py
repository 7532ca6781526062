"""A member loses its disk for good in a chaos run: it is removed, and a new one with a number of its own takes its
place, by the program."""

import json
import subprocess
import time

import resp
from cluster import Failed
from load import LOST

# All faults of a round end within 40 s, and then nothing holds up a change of the members.
COMMAND_SECONDS = 90
# A command is interrupted after this long, and given again.
TRY_SECONDS = 20
# What a command that was refused, or found no leader, waits before it is given again.
PAUSE_SECONDS = 0.2
SHOWN = ("role", "term", "leader", "lease_left", "last", "commit", "applied", "joining", "membership", "problem")
SHOWN_MEMBERS = ("id", "voter", "match", "connected")


class Members:
    """Changes who is a member. `groups`: of each node."""

    def __init__(self, cluster, network, groups, slack):
        self._cluster = cluster
        self._network = network
        self._groups = groups
        self._limit = COMMAND_SECONDS * slack
        self._newest = max(node.id for node in cluster.nodes)

    def new_number(self):
        self._newest += 1
        return self._newest

    def others_of(self, node):
        """As --join names them."""
        return ",".join(f"{other.id}={self._network.places[other.place].peer}" if self._groups > 1 else
                        self._network.places[other.place].peer for other in self._cluster.others(node))

    def move(self, node):
        """The next member there has another address."""
        self._network.move(node.place)
        node.flags[node.flags.index("--peer-listen") + 1] = self._network.places[node.place].listen

    def remove(self, node, number):
        self._change(node, "remove", str(number))

    def add(self, node, number):
        self._change(node, "add", f"{number}={self._network.places[node.place].peer}")

    def _change(self, node, *words):
        """Until it is done: what other faults strike may stop a command."""
        servers = self._cluster.others(node)
        deadline = time.monotonic() + self._limit
        said = ""
        while True:
            asked = ",".join(f"{server.host}:{server.port}" for server in servers)
            try:
                done = subprocess.run([self._cluster.binary, "member", *words, "--servers", asked],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      stdin=subprocess.DEVNULL, check=False,
                                      timeout=TRY_SECONDS)
                if done.returncode == 0:
                    return
                heard = done.stdout
            except subprocess.TimeoutExpired as error:
                heard = (error.stdout or b"").decode("utf-8", "replace")
            said += heard
            if time.monotonic() > deadline:
                break
            # It was added to some groups, of which it leads one already.
            if node not in servers and f"node {node.id} leads, but it is not among the servers" in heard:
                servers = [*servers, node]
            time.sleep(PAUSE_SECONDS)
        self._explain(said)
        raise Failed(f"member {' '.join(words)} was not done within {self._limit:.0f} s: "
                     f"{' / '.join(said.splitlines()[-3:])}")

    def _explain(self, said):
        """Prints where everything stands."""
        print("--- the command said")
        for line in said.splitlines()[-40:]:
            print(f"    {line}")
        for node in self._cluster.nodes:
            for group in range(1, self._groups + 1):
                print(f"    {node}, group {group}: {self._state(node, group)}", flush=True)
            self._cluster.show_log(node)

    @staticmethod
    def _state(node, group):
        try:
            with node.client(2) as client:
                client.call("LEASEHOLD", "GROUP", group)
                reply = client.call("LEASEHOLD", "STATUS")
        except LOST as error:
            return str(error)
        if isinstance(reply, resp.RespError):
            return repr(reply)
        status = json.loads(reply)
        members = [[member.get(name) for name in SHOWN_MEMBERS] for member in status.pop("members", [])]
        shown = {name: status.get(name) for name in SHOWN}
        return f"{shown}; members {members} ({', '.join(SHOWN_MEMBERS)})"
