#!/usr/bin/env python3
"""A small fleet: what it says is as its rules have it. The argument is the program."""

import json
import subprocess
import sys

HOSTS = 9


def fleet(*words):
    done = subprocess.run([sys.argv[1], "--hosts", str(HOSTS), *words], text=True, capture_output=True, check=True)
    return json.loads(done.stdout)


def check(holds, what):
    if not holds:
        sys.exit(f"fleet: {what}")


def main():
    few, many = (fleet("--groups", groups, "--event", "none")["at_rest"] for groups in ("200", "2000"))
    # Each host has its beats, and their answers, with the six of the other zones; ten a second.
    check(few["messages"] == many["messages"] == HOSTS * 6 * 2 * 10, f"at rest {few} and {many}")
    check(many["syncs"] == 0, "a host at rest writes")
    own = fleet("--groups", "2000", "--event", "none", "--beats", "own")["at_rest"]
    check(abs(own["messages"] / (2000 * 4 * 10) - 1) < 0.05, f"{own} with a heartbeat for each group")

    lost = fleet("--groups", "900", "--event", "host")
    # D, and an election timeout of 300 to 600 ms.
    check(1.2 < lost["leased_again_s"] < 2.4, f"all leases {lost['leased_again_s']} s after the loss of a host")
    after = lost["after"]
    check(after[0]["leased"] == 900 - lost["led_there"], "a lost host still leads")
    check(sum(one["elected"] for one in after) == lost["led_there"], "groups of other hosts have elected")
    known = fleet("--groups", "900", "--event", "death")
    check(known["leased_again_s"] < 0.3, f"all leases {known['leased_again_s']} s after a known death")
    zone = fleet("--groups", "900", "--event", "zone")
    check(zone["leased_again_s"] > 0, "groups without a lease after the loss of a zone")
    rolling = fleet("--groups", "900", "--event", "rolling", "--rolled", "3")
    check(all(0 < one["leased_again_s"] < 0.5 for one in rolling["restarts"]), f"{rolling['restarts']}")
    print("what a small fleet costs, and how soon it has its leases again, is as expected")


if __name__ == "__main__":
    main()
