#!/usr/bin/env python3
"""Two full members and a witness, real processes: the group goes on without any one of the three, the
witness keeps no state and sends clients elsewhere, and nothing that was acknowledged is lost."""

import json
import os
import subprocess

from cluster import Cluster, check, main, wait_for
from member_changes import Members
import resp


class Witnessed(Members):
    """The two first members, and the witness that joins them."""

    def add_witness(self):
        witness = self.joiner(3)
        witness.flags += ["--witness", "on"]
        witness.start()
        wait_for("the witness to wait", 20,
                 lambda: (witness.try_status() or {}).get("joining"))
        wrong = self.command("add", self.address(witness), status=4)
        check("runs as a witness" in wrong, f"added as a full member: {wrong}")
        self.command("add", self.address(witness), "--witness")
        self.live.append(witness)
        return witness


def put(node, key, value):
    with node.client() as client:
        return client.call("SET", key, value)


def write(nodes, key, value):
    """At whichever node takes it."""
    def probe():
        for node in nodes:
            try:
                if node.running and put(node, key, value) == "OK":
                    return True
            except (resp.ConnectionLost, resp.TimedOut):
                pass
        return False
    wait_for(f"a write of {key}", 20, probe)


def read(node, key):
    with node.client() as client:
        return client.call("GET", key)


def run(options):
    with Cluster(options.binary, size=2, keep=options.keep) as cluster:
        cluster.start()
        members = Witnessed(cluster)
        witness = members.add_witness()
        shown = json.loads(members.command("list", "--json"))
        check([m["witness"] for m in shown["members"]] == [False, False, True], f"{shown}")
        check("witness" in members.command("list"), "the list does not show the witness")

        refused = str(put(witness, "k", "v")) + str(read(witness, "k"))
        check(refused.count("WITNESS") == 2, f"the witness answers {refused}")
        wait_for("the witness to name a member", 10,
                 lambda: "ask node" in str(put(witness, "k", "v")))
        check(not os.path.exists(os.path.join(witness.data_dir, "state")), "it has a state")

        everybody = [*cluster.nodes, witness]
        count = 0
        for lost in everybody * options.rounds:
            write(cluster.nodes, f"before{count}", "x")
            lost.kill()
            for _ in range(20):
                write([node for node in cluster.nodes if node is not lost], f"key{count}", "v")
                count += 1
            lost.start()
            cluster.wait_leader(20)
        for node in cluster.nodes:
            cluster.wait_caught_up(node)
            missing = [i for i in range(count) if read(node, f"key{i}") != b"v"]
            check(not missing, f"{node} lacks {len(missing)} of {count} writes")
        wait_for("the witness to say what it is", 20,
                 lambda: (witness.try_status() or {}).get("witness"))

        # Of three voters two have to be there, and a witness alone has no state to lead with.
        leader = cluster.wait_leader()
        done = subprocess.run([options.binary, "transfer", "--to", "3", "--servers",
                               f"127.0.0.1:{leader.port}"], capture_output=True, text=True,
                              timeout=60, check=False)
        check(done.returncode == 4 and "witness" in done.stderr + done.stdout,
              f"a transfer to the witness: {done}")
        print(f"{count} writes, each member lost {options.rounds} times")


if __name__ == "__main__":
    main(__doc__, run,
         lambda parser: parser.add_argument("--rounds", type=int, default=3))
