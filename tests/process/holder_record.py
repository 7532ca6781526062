#!/usr/bin/env python3
"""`leasehold elect --record` counts how often the leadership passes to another holder: candidates are killed or end
while they lead, and nodes are killed while the next one is granted the lease and writes its record. A watcher sees
every record that was written: at the end the count is the number of changes of the holder that it saw."""

import json
import signal
import time

from cluster import Cluster, check, main, wait_for
from locks_support import Held, Locks

CANDIDATES = 3
KEY = "leader of office"
TIMING = ["--ttl", "4s", "--margin", "500ms", "--max-round-trip", "300ms"]
REFUSED = 2
# Between the end of the holder and that of a node: the next holder asks within 0.1 s.
OFFSETS = [None, 0.0, 0.05, 0.1, 0.15]


class Election:
    def __init__(self, locks):
        self.locks = locks
        self.candidates = [self.candidate() for _ in range(CANDIDATES)]
        self.watcher = Held([locks.cluster.binary, "watch", "--key", KEY, "--from", "1", "--values", "--json",
                             "--servers", locks.servers])
        self.observer = Held(self.words("--observe"))

    def words(self, *flags):
        return [self.locks.cluster.binary, "elect", "office", "--record", KEY, "--json", "--servers",
                self.locks.servers, *TIMING, *flags]

    def candidate(self):
        return Held(self.words())

    @staticmethod
    def said(held):
        """The events; what else it says goes to people."""
        return [json.loads(line) for line in list(held.lines) if line.startswith("{")]

    def elected(self):
        """The candidate that leads, and what it has said. A candidate that has ended is replaced."""
        for place, held in enumerate(self.candidates):
            if held.process.poll() is not None:
                self.candidates[place] = self.candidate()
                continue
            said = self.said(held)
            if said and said[-1]["event"] == "elected":
                return held, said[-1]
        return None

    def wait_elected(self):
        return wait_for("a leader", 40, self.elected)

    def records(self):
        events = self.said(self.watcher)
        check(all(event["event"] == "set" for event in events), f"events: {events}")
        return [json.loads(event["value"]) for event in events]

    def stored(self):
        return json.loads(self.locks.call("GET", KEY))


def changes(records):
    return sum(one["holderIdentity"] != next_one["holderIdentity"] for one, next_one in zip(records, records[1:]))


def round_of(election, offset):
    """The leader ends, then a node: at once if there is no offset."""
    cluster = election.locks.cluster
    held, said = election.wait_elected()
    node = cluster.wait_leader()
    held.process.send_signal(signal.SIGKILL if offset is None else signal.SIGTERM)
    if offset is not None:
        held.end(0)
        time.sleep(offset)
    node.kill()
    held.process.wait(20)
    _, successor = election.wait_elected()
    check(successor["token"] > said["token"], f"{successor} after {said}")
    check(successor["transitions"] > said["transitions"], f"{successor} after {said}")
    node.start()
    cluster.wait_leader(30)
    return successor


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        locks = Locks(cluster)
        election = Election(locks)
        elected = [election.wait_elected()[1]]
        check(elected[0]["transitions"] == 0, f"the first leader: {elected[0]}")
        elected += [round_of(election, offset) for offset in OFFSETS]

        last = election.stored()
        records = wait_for("the last record", 20, lambda: election.records()[-1:] == [last] and election.records())
        check(last["leaseTransitions"] == changes(records), f"{changes(records)} changes, and the record is {last}")
        check([record["leaseTransitions"] for record in records] == list(range(len(records))), f"{records}")
        check([record["fencingToken"] for record in records] == sorted({r["fencingToken"] for r in records}),
              f"tokens: {records}")
        known = {(r["holderIdentity"], r["fencingToken"], r["leaseTransitions"]) for r in records}
        for said in elected:
            check((said["holder"], said["token"], said["transitions"]) in known, f"{said} has no record")
        leads = {"event": "leads", **{name: elected[-1][name] for name in ("holder", "token", "transitions")}}
        wait_for("the observer", 20, lambda: election.said(election.observer)[-1] == leads)

        # A key with another value is not overwritten.
        locks.call("SET", "foreign", "v")
        refused = Held([cluster.binary, "elect", "other", "--record", "foreign", "--servers", locks.servers, *TIMING])
        refused.end(REFUSED)
        check(locks.call("GET", "foreign") == b"v" and "no record" in refused.lines[-1], f"said: {refused.lines}")
        check(locks.call("LEASE.INFO", "NAME", "other") is None, "refused, and it keeps the lease")
        for held in [*election.candidates, election.watcher, election.observer]:
            held.process.terminate()
            held.process.wait(20)
        print(f"{len(elected)} leaders, {len(records)} records, {last['leaseTransitions']} transitions")


if __name__ == "__main__":
    main(__doc__, run)
