#!/usr/bin/env python3
"""Breaks one rule of the lease at a time and expects `leasehold explore` to find the schedule.

The mutants are those of tests/mutants/, and so is the machinery: a copy of the portable tree (of
the whole one for --codec), one mutant, one build. FOUND names the bounds that are wide enough for
each, and the number of steps, of which none can be saved.

  mutants.py                all of FOUND
  mutants.py NAME...        these only
  mutants.py NAME --bounds '--time 3 --no-drift'    with these bounds, whatever is found
  mutants.py --results FILE    also write the results as JSON (results/explore.json; tests/results.py prints that)

Status 0: each was found by a schedule of as many steps as FOUND says.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "mutants"))
sys.path.insert(0, os.path.dirname(HERE))
import results  # noqa: E402  pylint: disable=wrong-import-position
import run  # noqa: E402  pylint: disable=wrong-import-position

# Node 3, which was away, answers a chunk of node 1's first term, in which its log was cut. The answer is late: node 2
# led the second term, and node 1 leads the third, whose next round has the number that is in it.
LATE_CHUNK = ("--one-away --after 'pass, tick 1, cut 1, hear 3<1 snapshot, keep 1<3 snapshot_reply, lose, "
              "pass, pass, pass, tick 2, meet 1 2 3, pass, tick 2, meet 1 2 3, "
              "pass, pass, pass, tick 1, meet 1 2 3, pass, tick 1, meet 1 2 3'")

# Node 1 votes alone. It has a lease of the longer D, and the learners were started with a shorter one.
SHORTER_THAN_THE_FIRST = "--voters 1 --uneven --meetings --after 'pass, pass, tick 1, lose'"

# The promise of each group rests on those between the processes.
SHARED = "--shared --meetings --no-drift"

# The mutant, bounds, the steps of the shortest schedule. --rules is for those that another rule makes up for, and for
# those that cost availability: docs/testing.md says why.
FOUND = [
    ("carried_duration_ignored", "--first-election --uneven --time 3 --no-drift", 9),
    ("drift_margin_dropped", "--time 3", 3),
    ("lease_in_ticks", "--time 3 --no-drift", 3),
    ("append_reply_of_another_term", "--time 3 --led-before --no-drift", 5),
    ("timeout_now_under_lease", "--time 1 --transfers 1 --no-drift", 5),
    ("learner_promises_nothing", "--voters 1 --time 2 --changes 1 --no-drift", 3),
    ("lease_of_one_half", "--voters 2 --time 3 --changes 1 --no-drift", 5),
    ("promise_not_durable", "--time 3 --one-away --slow-disk --no-drift", 6),
    ("promise_lost_at_restart", "--time 3 --restarts 1 --no-drift", 7),
    ("lease_before_token_is_dead", "--time 2 --transfers 1 --no-drift", 7),
    ("quorum_read_by_earlier_round", "--time 1 --transfers 1 --reads 1 --no-drift", 7),
    ("leadership_resumed", "--time 3 --restarts 1 --late-answer --no-drift", 8),
    ("newest_round_credited", "--time 3", 8),
    ("lease_from_receipt", "--time 3", 8),
    ("lease_before_own_term", "--time 0 --proposals 1 --transfers 1 --no-drift", 9),
    ("half_is_a_quorum", "--time 3 --changes 1 --no-drift", 9),
    ("one_acknowledgement_renews", "--time 3 --changes 1 --no-drift", 9),
    ("token_of_any_index", "--time 1 --transfers 1 --no-drift", 11),
    ("campaign_while_promised", "--time 3 --no-drift", 11),
    ("no_promise", "--time 3 --no-drift", 12),
    ("lease_kept_after_step_down", "--time 0 --changes 1 --no-drift", 12),
    ("promise_only_in_pre_vote", "--time 3 --no-drift", 15),
    ("vote_not_durable", "--time 1 --first-election --restarts 1 --slow-disk --no-drift", 15),
    ("promise_tied_to_vote", "--time 3 --no-drift", 15),
    ("read_before_own_term", "--time 0 --proposals 1 --transfers 1 --reads 1 --no-drift", 18),
    ("joint_left_early", "--sole --time 3 --changes 1 --no-drift --flights 5", 21),
    ("the_dead_lead_on", "--time 3 --restarts 1 --notices 1 --no-drift", 2),
    ("a_death_of_any_process", "--time 3 --restarts 2 --notices 2 --no-drift", 10),
    ("view_after_messages", "--time 0 --proposals 1 --no-drift", 3),
    ("holder_clock_of_promises", "--time 3 --suspends 1 --no-drift", 5),
    ("chunk_reply_of_another_term", f"{LATE_CHUNK} --time 3 --no-drift", 5),
    ("one_half_is_enough", "--sole --meetings --time 3 --changes 1 --no-drift", 6),
    ("what_was_sent_is_not_noted", "--time 2 --proposals 1 --slow-apply --no-drift", 9),
    ("refusal_counts", "--one-away --unbound --time 3 --no-drift", 6),
    ("chunk_answer_before_promise", "--one-away --slow-disk --cuts 1 --time 3 --no-drift", 7),
    ("lease_in_microseconds", "--first-election --uneven --codec --time 3 --no-drift", 9),
    ("chunk_renews_nothing", "--one-away --cuts 1 --time 4 --meetings --flights 6 --no-drift", 11),
    ("new_member_acknowledged", "--rules --members 2 --time 0 --changes 1 --no-drift", 1),
    ("change_on_uncommitted", "--rules --members 2 --time 0 --changes 2 --no-drift", 2),
    ("entries_behind_the_token", "--rules --time 0 --transfers 1 --proposals 1 --no-drift", 2),
    ("token_passes_no_promise", "--rules --time 0 --transfers 1 --no-drift", 3),
    ("lease_moves_back", "--rules --time 2 --changes 1 --no-drift", 5),
    ("removed_leader_counts_itself", "--rules --time 1 --changes 1 --no-drift", 7),
    ("quorumless_leader_stays", "--rules --time 3 --no-drift", 4),
    ("another_directory_counts", "--rules --time 1 --wipes 1 --no-drift", 5),
    ("token_of_any_term", "--rules --nodes 4 --meetings --time 0 --transfers 2 --no-drift", 5),
    ("token_raises_the_term", "--rules --time 1 --transfers 1 --no-drift", 6),
    ("change_before_own_term", "--rules --first-election --time 1 --changes 1 --no-drift", 7),
    ("own_numbers_before_the_groups", "--agreed 25 --time 2", 3),
    ("a_longer_lease_before_it_is_promised", "--agreed 25 --settings 1 --time 3", 4),
    ("a_shorter_lease_ends_promises", "--agreed 25 --settings 1 --time 3 --no-drift", 6),
    ("earlier_rounds_keep_their_worth", "--agreed 0 --settings 1 --time 3", 6),
    ("acknowledged_rounds_keep_their_worth", "--agreed 0 --settings 1 --time 3", 6),
    ("lease_of_the_old_half_is_kept", f"{SHORTER_THAN_THE_FIRST} --time 1 --settings 1 --changes 1 --no-drift", 5),
    ("leader_grants_votes", "--rules --time 3 --no-drift", 8),
    ("reliance_keeps_the_epoch", f"{SHARED} --time 3 --beats 1", 8),
    ("beats_count_at_any_epoch", f"{SHARED} --time 3 --beats 1", 8),
    ("a_restart_keeps_the_epoch", f"{SHARED} --time 4 --beats 2 --restarts 1", 8),
]


def explore(mutant, bounds, work, states):
    """(steps, states, what, story) of the mutant's shortest schedule; the first two None: not found."""
    arguments = shlex.split(bounds)
    # The codec is no part of the portable tree.
    whole = "--codec" in arguments
    tree = os.path.join(work, "explored-whole" if whole else "explored")
    build = os.path.join(tree, "build")
    run.copy_tree(tree, whole=whole)
    run.apply(run.Mutant(mutant), tree)
    run.make(tree, build, "leasehold_explore_program", f"-DLEASEHOLD_PORTABLE_ONLY={'OFF' if whole else 'ON'}",
             "-DLEASEHOLD_BUILD_TESTS=OFF")
    program = os.path.join(build, "explore", "leasehold_explore")
    done = subprocess.run([program] + arguments + ["--states", str(states)], text=True, capture_output=True)
    story = re.search(r"^steps: (.*)$", done.stdout, flags=re.MULTILINE)
    story = story.group(1) if story else ""
    found = re.search(r"^(.*), after (\d+) steps \((\d+) states", done.stdout, flags=re.MULTILINE)
    if found:
        return int(found.group(2)), int(found.group(3)), found.group(1), story
    asserted = re.search(r"^an assertion fails at the last of (\d+) steps", done.stdout, flags=re.MULTILINE)
    if asserted:
        depths = re.findall(r"^depth .*?: +(\d+) states", done.stdout, flags=re.MULTILINE)
        why = (done.stderr.strip().split("\n") or [""])[0]
        return int(asserted.group(1)), int(depths[-1]) if depths else 0, "an assertion fails: " + why, story
    if done.returncode not in (0, 3):
        sys.exit(f"{program} {bounds} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    depths = re.findall(r"^depth +(\d+): +(\d+) states", done.stdout, flags=re.MULTILINE)
    return None, None, f"nothing up to {depths[-1][0]} steps, {depths[-1][1]} states", ""


def replace_table(path, title, rows):
    """Replaces one table in `path`, and leaves its other tables and its notes."""
    old = results.read(path) if os.path.exists(path) else {"notes": [], "tables": []}
    tables = {table["title"]: table["rows"] for table in old["tables"]}
    tables[title] = rows
    results.write(path, "every schedule of real cores within bounds, and the shortest schedule that finds each mutant",
                  time.strftime("%Y-%m-%d"),
                  "python3 tests/explore/{searches,mutants}.py --results results/explore.json",
                  old["notes"], list(tables.items()))


def main():
    parser = argparse.ArgumentParser(description="Explores the lease's mutants; see the head of this file.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--bounds")
    parser.add_argument("--results", metavar="FILE")
    parser.add_argument("--states", type=int, default=20_000_000)
    parser.add_argument("--work", default=os.path.join(run.TREE, "build", "mutants"))
    options = parser.parse_args()
    known = {name: (bounds, steps) for name, bounds, steps in FOUND}
    for name in options.names:
        if name not in known and not options.bounds:
            sys.exit(f"`{name}` needs --bounds; there are: {', '.join(known)}")
    os.makedirs(options.work, exist_ok=True)
    good, rows = True, []
    for name in options.names or known:
        bounds, wanted = known.get(name, ("", None))
        bounds = options.bounds or bounds
        begin = time.monotonic()
        steps, states, what, story = explore(name, bounds, options.work, options.states)
        seconds = time.monotonic() - begin
        right = steps is not None and (options.bounds or steps == wanted)
        good = good and right
        print(f"{'' if right else 'WRONG '}{name} {bounds}: {what}" +
              (f", {steps} steps, {states} states" if steps else "") + f" ({seconds:.1f} s with the build)",
              flush=True)
        rows.append({"mutant": name, "bounds": bounds, "steps": steps, "states": states, "what it showed": what,
                     "the shortest story": story})
    if options.results:
        replace_table(options.results, "The shortest schedule of each mutant", rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
