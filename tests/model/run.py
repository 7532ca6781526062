#!/usr/bin/env python3
"""Checks the model of the lease protocol, lease/model/lease.pml, with SPIN.

As it is no schedule within the bounds may break a property. Then one rule after the other is
dropped (RULES below; each is a macro of the model), and SPIN has to find a shortest schedule that
breaks one.

  run.py                    the model with three terms, then every rule; a few minutes, 1 GiB
  run.py --terms 4          the same, the model with four terms
  run.py --terms 2 --short  two terms, and without the rules that are harmless alone: what ctest does
  run.py NAME...            these rules only, without the model as it is
  run.py --readers [NAME...]    only what a reader could notice counts, with three terms
  run.py --show NAME        the schedule that breaks a property without this rule

Status 0: no violation in the model as it is, and one without each rule.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(TREE, "lease", "model", "lease.pml")

# The macro that drops a rule, the terms it takes to see that, and the rule.
RULES = [
    ("LEASE_FROM_RECEIPT", 2, "a lease is counted from before the send of the round"),
    ("NEWEST_ROUND_CREDITED", 2, "an acknowledgement counts for the round that it echoes"),
    ("REFUSAL_COUNTS", 2, "an answer counts only if the voter promised"),
    ("ACKNOWLEDGED_IN_ANOTHER_TERM", 2, "an answer counts only in the term that it is of"),
    ("SELF_IS_A_QUORUM", 2, "the lease ends at the value that a quorum has reached"),
    ("LEASE_BEFORE_OWN_TERM", 2, "the lease is shown after the term's first commit"),
    ("DROP_DRIFT_MARGIN", 2, "the holder uses U(D), not D"),
    ("HOLDERS_CLOCK_SLEEPS", 2, "the holder's clock counts suspend"),
    ("NO_PROMISE", 2, "a promise binds the votes"),
    ("CAMPAIGN_WHILE_PROMISED", 2, "nobody campaigns while a promise to another lives"),
    ("ACKNOWLEDGED_WITHOUT_PROMISE", 2, "a voter echoes a round after it has promised"),
    ("PROMISE_TIED_TO_VOTE", 2, "a promise is state of its own"),
    ("PROMISE_LOST_AT_RESTART", 2, "a restart starts the promise anew"),
    ("REMEMBERED_D_FORGOTTEN", 2, "a restart promises the remembered D"),
    ("CARRIED_D_IGNORED", 2, "a voter promises the larger of its own D and the round's"),
    ("LEASE_KEPT_AFTER_STEP_DOWN", 2, "who leaves the leader's role gives the lease up first"),
    ("LEADERSHIP_RESUMED", 2, "a restarted node does not resume its leadership"),
    ("VOTE_NOT_DURABLE", 2, "a vote is durable before it is sent"),
    ("TIMEOUT_NOW_UNDER_LEASE", 2, "the lease is given up before the token is sent"),
    ("LEASE_BEFORE_TOKEN_IS_DEAD", 2, "it returns with an entry beyond the token"),
    ("NOTICE_OF_ANY_PROCESS", 2, "a notice ends the promise to the process that it names only"),
    ("TOKEN_OF_ANY_INDEX", 2, "a token passes a promise with its last index only"),
]

# Rules that protect nobody by themselves; the model shows that dropping one alone breaks nothing.
HARMLESS = [
    ("LEADER_GRANTS_VOTES", 3, "a leader refuses votes under its lease: one that granted it would give it up first"),
    ("ACKNOWLEDGED_BY_DEFAULT", 3, "nothing is acknowledged by default: the term's first commit needs real answers"),
    ("TOKEN_OF_ANY_TERM", 3, "a token's term: its campaign is in the next one, and its leader left no older lease"),
]

# What an assertion of the model forbids, by a part of its text.
FORBIDDEN = [
    ("<=1", "two valid leases"),
    ("committed", "a valid lease, and a commit it does not know of"),
    ("until", "a valid lease, and no promise under it"),
    ("role", "two leaders of a term"),
]


def run(command, folder, **settings):
    try:
        return subprocess.run(command, cwd=folder, text=True, capture_output=True, **settings)
    except FileNotFoundError:
        sys.exit(f"there is no `{command[0]}` here: `make deps-develop` installs it")


def checked(command, folder):
    done = run(command, folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def verify(folder, defines, flags, depth_max):
    """(states, what was broken or None, the schedule that broke it, seconds) of one model."""
    checked(["spin"] + [f"-D{one}" for one in defines] + ["-a", "lease.pml"], folder)
    compiler = ["ccache", "gcc"] if shutil.which("ccache") else ["gcc"]
    checked(compiler + ["-w", "-DSAFETY", "-DNOREDUCE", "-DNOFAIR", "-DMEMLIM=2048"] + flags +
            ["-c", "-o", "pan.o", "pan.c"], folder)
    checked(["gcc", "-o", "pan", "pan.o"], folder)
    begin = time.monotonic()
    output = checked(["./pan", "-w20", f"-m{depth_max}"], folder)
    seconds = time.monotonic() - begin
    states = int(re.search(r"^\s*(\d+) states, stored", output, flags=re.MULTILINE).group(1))
    found = re.search(r"^pan:\d+: assertion violated (.*) \(at depth", output, flags=re.MULTILINE)
    if found:
        broken = next(what for text, what in FORBIDDEN if text in found.group(1))
        return states, broken, schedule(folder), seconds
    if not re.search(r"errors: 0$", output, flags=re.MULTILINE) or "Search not completed" in output or \
            "max search depth too small" in output:
        sys.exit(f"the search did not come to its end:\n{output}")
    return states, None, [], seconds


def schedule(folder):
    """The steps of the trail that pan has written."""
    told = run(["./pan", "-r"], folder).stdout
    return re.findall(r"^(\d [a-z].*|a tick: .*)$", told, flags=re.MULTILINE)


def without(rule, terms, folder, readers=False):
    # Breadth first: nothing shorter was found, where a tick counts for a few steps. Of each state a hash is kept, which
    # may pass over a schedule, but invents none.
    if readers:
        return verify(folder, [rule, "READERS", "TERMS=3"], ["-O1", "-DBFS", "-DHC4"], 10000)
    return verify(folder, [rule, f"TERMS={terms}"], ["-O0", "-DBFS", "-DHC4"], 10000)


def as_it_is(terms, folder, *more):
    # With four terms the states do not fit into 2 GiB; of each a hash of 64 bits and more is kept.
    store = "-DCOLLAPSE" if terms < 4 else "-DHC4"
    return verify(folder, ["SYMMETRY", f"TERMS={terms}", *more], ["-O2", store], 4_000_000)


def row(name, result, wanted):
    states, broken, steps, seconds = result
    print(f"{name:30} {states:9} {len(steps) or '':>6} {seconds:6.1f}  {broken or 'nothing'}"
          f"{'' if (broken is not None) == wanted else '  WRONG'}", flush=True)
    return (broken is not None) == wanted


def main():
    parser = argparse.ArgumentParser(description="Checks lease/model/lease.pml; see the head of this file.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--terms", type=int, default=3)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--readers", action="store_true")
    parser.add_argument("--show", metavar="NAME")
    options = parser.parse_args()
    rules = {name: terms for name, terms, _ in RULES}
    for name in options.names + ([options.show] if options.show else []):
        if name not in rules:
            sys.exit(f"there is no rule `{name}`; there are: {', '.join(rules)}")
    good = True
    with tempfile.TemporaryDirectory() as folder:
        # SPIN looks for the trail beside the model.
        shutil.copy(MODEL, folder)
        if options.show:
            _, broken, steps, _ = without(options.show, rules[options.show], folder, options.readers)
            print("\n".join(steps + [broken or "nothing was found"]))
            return 0 if broken else 1
        print(f"{'dropped':30} {'states':>9} {'steps':>6} {'s':>6}  what was found", flush=True)
        if not options.names:
            good = row(f"nothing ({options.terms} terms)", as_it_is(options.terms, folder), False)
        for name in options.names or rules:
            good = row(name, without(name, rules[name], folder, options.readers), True) and good
        if not options.names and not options.short:
            for name, terms, _ in HARMLESS:
                good = row(f"{name} ({terms} terms)", as_it_is(terms, folder, name), False) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
