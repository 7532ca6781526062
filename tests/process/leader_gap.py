#!/usr/bin/env python3
"""How long an application has no leader, if its leader is the holder of a lock: after a crash
(the time to live, an expiry, a question), after a planned end (well below 200 ms), and with a
successor that has to warm up first (as long as that takes, unless it warms up before it asks)."""

import os
import signal
import sys
import time

from cluster import Cluster, check, main, wait_for
from locks_support import Locks

TTL = 3.0
WARM_UP = 1.0
NAME = "coordinator"
COORDINATOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "coordinator.py")
# The expiry is looked for every 200 ms and committed; the name is asked for every 100 ms at most;
# the process starts.
LATE = 0.5
HANDOVER = 0.2


def arguments(parser):
    parser.add_argument("--rounds", type=int, default=10, help="planned ends")


def acts(held):
    return [float(line.split()[1]) for line in list(held.lines) if line.startswith("act ")]


class Story:
    def __init__(self, cluster):
        self.locks = Locks(cluster, ["--ttl", f"{TTL:g}s", "--margin", "500ms",
                                     "--max-round-trip", "300ms"])

    def coordinator(self, warm_up=0.0):
        command = [sys.executable, "-B", "-S", COORDINATOR, str(warm_up)]
        return self.locks.start(NAME, *command)

    def leading(self, warm_up=0.0):
        held = self.coordinator(warm_up)
        held.wait_line("act")
        return held

    def gap(self, first, end_first, warm_up=0.0, status=None):
        """From the last act of `first`, which `end_first` ends, to the first of its successor."""
        second = self.coordinator(warm_up)
        # It has asked, and the first leads on.
        time.sleep(0.5)
        check(not acts(second), "two lead")
        end_first(first)
        if status is not None:
            first.end(status)
        wait_for("the successor", TTL + 20, lambda: acts(second))
        return acts(second)[0] - acts(first)[-1], second


def crash(held):
    """The process that held the lock dies, and its command with it."""
    held.process.kill()


def planned(held):
    """Nothing new, what is in flight is finished, then the lock is released."""
    held.process.send_signal(signal.SIGTERM)


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        story = Story(cluster)
        leader = story.leading()

        after_crash, leader = story.gap(leader, crash)
        check(after_crash > TTL * 0.5, f"a crash: {after_crash:.3f} s; the old one may still act")
        check(after_crash <= TTL + LATE * options.slack, f"a crash: {after_crash:.3f} s")

        gaps = []
        for _ in range(options.rounds):
            gap, leader = story.gap(leader, planned, status=0)
            gaps.append(gap)
        check(max(gaps) <= HANDOVER * options.slack, f"planned ends: {sorted(gaps)}")

        cold, leader = story.gap(leader, planned, warm_up=WARM_UP, status=0)
        check(WARM_UP <= cold <= WARM_UP + HANDOVER * options.slack, f"a cold start: {cold:.3f} s")
        planned(leader)
        leader.end(0)
        gaps.sort()
        print(f"crash {after_crash:.3f} s of {TTL:g}; planned: median {gaps[len(gaps) // 2]:.3f}, "
              f"max {gaps[-1]:.3f} s; with a successor that warms up for {WARM_UP:g} s: {cold:.3f} s")


if __name__ == "__main__":
    main(__doc__, run, arguments)
