#!/usr/bin/env python3
"""Measures what many groups on three hosts cost, and how soon they have leases; see bench/README.md.

The same three hosts run one group, a thousand and ten thousand: what each costs at rest, how soon all have
leases after a start, after a host was killed and after a link broke, lease reads, and writes over many
groups beside writes in one."""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
from random import Random

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import results  # noqa: E402  pylint: disable=wrong-import-position
import cluster as c
import goals
from group_hosts import HOSTS, Pool, footprint, sum_of
from report import Report
from stats import Histogram
from sweeps import Noise, Series, say

# Of the hosts' beats and of the groups: the defaults.
LEASE_S = 1.0
HEARTBEAT_S = 0.1
ELECTION_TIMEOUT_S = 0.3
VALUE_BYTES = 256

GOALS = goals.limits("groups")
GOAL_KILL_S = LEASE_S + ELECTION_TIMEOUT_S + GOALS["kill_s"]


class Run:
    def __init__(self, options, report):
        self.options = options
        self.report = report
        self.pools = []

    def pool(self, groups, **how):
        pool = Pool(self.options.programs, self.options.work / f"pool{len(self.pools)}", groups, **how)
        self.pools.append(pool)
        return pool

    def begin(self, groups):
        """A pool whose groups rest, and how soon they were open and had leases."""
        say(f"{groups} group{'s' if groups > 1 else ''}: start")
        pool = self.pool(groups)
        leases_s = pool.start()
        opened_s = max(host.opened_ms for host in pool.hosts.values()) / 1000
        pool.settle()
        say(f"  open after {opened_s:.2f} s, all leases after {leases_s:.2f} s")
        return pool, {"opened": opened_s, "leases": leases_s, "cpu": Series()}

    def at_rest(self, pools):
        """What a host pays for groups that nobody uses. `pools`: by the number of groups; they rest at the same time,
        so that what else the machine does concerns all of them alike. Each window has other distances between the
        beats of the hosts."""
        random = Random(1)
        time.sleep(self.options.settle_s)  # the last have changed their leader
        # A status looks at all groups, and leaves the caches full of them: it is asked for outside of the windows.
        messages = {pool: sum_of(pool.ask("status"), "messages") for pool, _ in pools.values()}
        began = time.monotonic()
        for window in range(self.options.windows):
            for pool in messages:
                pool.shift_beats(random, HEARTBEAT_S)
            time.sleep(5 * HEARTBEAT_S)
            before = {pool: c.cpu_ns(pool.pids()) for pool in messages}
            window_began = time.monotonic()
            time.sleep(self.options.rest_s)
            seconds = time.monotonic() - window_began
            for pool, found in pools.values():
                cpu = (c.cpu_ns(pool.pids()) - before[pool]) / seconds / len(HOSTS)
                found["cpu"].blocks.append(Histogram([(cpu, 1)]))
            say(f"  {window + 1:2}/{self.options.windows}  % of a core, a host: " + "  ".join(
                f"{groups} group{'s' if groups > 1 else ''} {found['cpu'].blocks[-1].quantile(0.5) / 1e7:.3f}"
                for groups, (_, found) in pools.items()))
        passed = time.monotonic() - began
        messages = {pool: sum_of(pool.ask("status"), "messages") - sent for pool, sent in messages.items()}
        for groups, (pool, found) in pools.items():
            prints = [footprint(pid) for pid in pool.pids()]
            found.update({name: max(one[name] for one in prints) for name in prints[0]})
            found["messages"] = messages[pool] / passed / len(HOSTS)
            say(f"  {groups} group{'s' if groups > 1 else ''}: a host sends {found['messages']:.1f} messages a second, "
                f"takes {found['bytes'] / 2**20:.1f} MiB, and has {found['threads']} threads, {found['files']} open "
                f"files and {found['segments']} segments")

    def report_rest(self, one, many):
        groups, value = self.options.groups, self.report.value
        self.report.series("a second at rest, one group", one["cpu"])
        for count in sorted(many):
            found, name = many[count], f"{count} groups"
            self.report.series(f"a second at rest, {name}", found["cpu"], "one group", one["cpu"], GOALS["cpu"])
            value(f"{name}: a core at rest, a host", found["cpu"].all.quantile(0.5) / 1e7, "%", GOALS["core_percent"])
            value(f"{name}: messages of a host at rest / with one group", found["messages"] / one["messages"], "",
                  GOALS["messages"])
            value(f"{name}: threads of a host / with one group", found["threads"] / one["threads"], "",
                  GOALS["threads"])
            value(f"{name}: open files of a host but segments / with one group", found["files"] / one["files"], "",
                  GOALS["files"])
            value(f"{name}: segments of a host", found["segments"], "")
            value(f"{name}: memory of a group", (found["bytes"] - one["bytes"]) / (count - 1), "bytes",
                  GOALS["group_bytes"])
        value(f"{groups} groups: all are open", many[groups]["opened"], "s", GOALS["open_s"])
        value(f"{groups} groups: all have leases, from the start of three hosts", many[groups]["leases"], "s",
              GOALS["start_s"])

    def reads(self, single, pool):
        """The same read, in turn: in the only group, and in one of many."""
        say("lease reads in the process: in the only group, in one of many, and in all of many by turns")
        names = {"one group": (single, "one"), "one of many": (pool, "one"), "all in turn": (pool, "spread")}
        series = {name: Series() for name in names}
        host = {single: next(number for number, state in single.ask("status").items() if state["led"]), pool: 1}
        for sweep in range(self.options.sweeps):
            for name in list(names) if sweep % 2 == 0 else reversed(names):
                where, how = names[name]
                answer = where.hosts[host[where]].ask(f"read {self.options.blocks} {self.options.calls} {how}")
                if not answer["groups"]:
                    raise c.MeasureError("a host that should lead does not: measure again")
                series[name].blocks.append(Histogram([(value / 1000, 1) for value in answer["picoseconds"]]))
        self.report.series("lease read, one group", series["one group"])
        self.report.series("lease read, one of many", series["one of many"], "one group", series["one group"],
                           GOALS["read"])
        self.report.series("lease read, all in turn", series["all in turn"], "one group", series["one group"])

    def writes(self):
        groups, clients = self.options.write_groups, self.options.clients
        say(f"writes: {clients} clients, over {groups} groups and in one, in turn")
        pools = {"over many": (self.pool(groups), groups), "in one": (self.pool(1), 1)}
        for pool, _ in pools.values():
            pool.start()
            pool.settle()
        series = {name: Series() for name in pools}
        syncs = dict.fromkeys(pools, 0)
        writes = dict.fromkeys(pools, 0)
        for sweep in range(self.options.sweeps + 1):
            for name in list(pools) if sweep % 2 == 0 else reversed(pools):
                pool, spread = pools[name]
                before, began = sum_of(pool.ask("status"), "syncs"), time.monotonic()
                answers = pool.ask(f"write {clients} {spread} {self.options.write_ms} {VALUE_BYTES}")
                passed = time.monotonic() - began
                done = sum(answer["latency"]["count"] for answer in answers.values())
                failed = sum_of(answers, "failed")
                if failed or not done:
                    raise c.MeasureError(f"{failed} writes failed, {done} did not: measure again")
                if sweep == 0:
                    continue  # the logs' files grow to their size
                series[name].blocks.append(Histogram([(1e9 * passed / done, 1)]))
                syncs[name] += sum_of(pool.ask("status"), "syncs") - before
                writes[name] += done
            if sweep > 0:
                say(f"  {sweep:2}/{self.options.sweeps}  us a write: " + "  ".join(
                    f"{name} {one.blocks[-1].quantile(0.5) / 1000:.1f}" for name, one in series.items()))
        self.report.series("time of a write, in one group", series["in one"])
        self.report.series(f"time of a write, over {groups} groups", series["over many"], "in one group",
                           series["in one"], GOALS["write"])
        rate = {name: syncs[name] / writes[name] for name in pools}
        self.report.value("syncs of a write, in one group", rate["in one"], "")
        self.report.value(f"syncs of a write, over {groups} groups / in one", rate["over many"] / rate["in one"], "",
                          GOALS["syncs"])
        for pool, _ in pools.values():
            pool.stop()

    def kills(self, pool, what, goal):
        """A host that leads a third of the groups is killed, again and again."""
        longest = 0.0
        for trial in range(self.options.trials):
            victim = HOSTS[trial % len(HOSTS)]
            led = pool.ask("status")[victim]["led"]
            began = time.monotonic()
            pool.kill(victim)
            took = pool.until("every group has a lease", lambda states: sum_of(states, "leased") == pool.groups, began)
            longest = max(longest, took)
            say(f"  host {victim} was killed, which led {led}: all have a lease again after {took:.2f} s")
            pool.start([victim])
            pool.settle()
        self.report.value(f"{pool.groups} groups: leases again after kill -9 of a host, {what}", longest, "s", goal)

    def broken_link(self):
        groups = self.options.groups
        say(f"{groups} groups, and a link that breaks for two leases")
        pool = self.pool(groups, links_break=True)
        pool.start()
        pool.settle()
        longest = elections = 0.0
        for trial in range(self.options.trials):
            one, other = HOSTS[trial % 3], HOSTS[(trial + 1) % 3]
            before = sum_of(pool.ask("status"), "terms")
            pool.break_link(one, other)
            time.sleep(2 * LEASE_S)
            pool.mend_link(one, other)
            mended = time.monotonic()
            # Until the first beats that come through again, the two sides know of no lapse.
            time.sleep(2 * HEARTBEAT_S)
            took = pool.until("all groups are bound again", lambda states:
                              sum_of(states, "at_rest") == groups and sum_of(states, "leased") == groups, mended)
            rise = sum_of(pool.ask("status"), "terms") - before
            say(f"  between hosts {one} and {other}: {rise} terms more; all bound again {took:.2f} s after the mend")
            longest, elections = max(longest, took), elections + rise
        self.report.value(f"{groups} groups: elections because of a broken link", elections, "", 0)
        self.report.value(f"{groups} groups: all bound again after a broken link", longest, "s", GOALS["bound_s"])
        pool.stop()

    def everything(self):
        options = self.options
        pools = {count: self.begin(count) for count in (1, *options.counts)}
        self.at_rest(pools)
        self.report_rest(pools[1][1], {count: pools[count][1] for count in options.counts})
        for count in options.counts[:-1]:
            pools[count][0].stop()
        single, pool = pools[1][0], pools[options.groups][0]
        self.reads(single, pool)
        single.stop()
        self.kills(pool, "by the lease", GOAL_KILL_S)
        pool.stop()
        say("the same with a deputy beside each host, which tells the others of its end")
        pool = self.pool(options.groups, deputy=options.deputy)
        pool.start()
        pool.settle()
        self.kills(pool, "by its deputy", GOALS["death_s"])
        pool.stop()
        self.broken_link()
        self.writes()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--build-dir", type=pathlib.Path, default=root / "build" / "release")
    parser.add_argument("--groups", type=int, default=10_000, help="the largest number; default: %(default)s")
    parser.add_argument("--out", type=pathlib.Path, help="default: BUILD_DIR/groups.json")
    parser.add_argument("--results", type=pathlib.Path, help="write the goals as JSON, as results/groups.json is")
    parser.add_argument("--work", type=pathlib.Path, help="a folder on the disk to measure; default: in BUILD_DIR")
    parser.add_argument("--quick", action="store_true",
                        help="60 groups and few repetitions: that the tool works; no figure is held against a goal")
    options = parser.parse_args()
    options.programs = options.build_dir / "bench"
    options.deputy = options.build_dir / "server" / "leasehold-deputy"
    options.out = options.out or options.build_dir / "groups.json"
    if options.groups < 2:
        parser.error("--groups: at least 2")
    if options.quick:
        options.groups = min(options.groups, 60)
    options.counts = sorted({count for count in (1000, options.groups) if 1 < count <= options.groups})
    options.settle_s = 1.0 if options.quick else 10.0
    options.rest_s, options.windows = (0.5, 3) if options.quick else (3.0, 40)
    options.sweeps = 2 if options.quick else 20
    options.blocks, options.calls = (5, 100) if options.quick else (20, 1000)
    options.write_groups, options.clients = (6, 6) if options.quick else (64, 64)
    options.write_ms = 200 if options.quick else 1000
    options.trials = 1 if options.quick else 6
    return options


def write_results(options, report):
    asked = "python3 bench/groups.py" + (" --quick" if options.quick else "")
    asked += f" --groups {options.groups}" if options.groups != 10_000 else ""
    notes = [f"three hosts on loopback and one disk, {os.cpu_count()} cores; D {LEASE_S:g} s, heartbeat "
             f"{HEARTBEAT_S:g} s, election timeout {ELECTION_TIMEOUT_S:g} s",
             "what counts is the bad end of an interval, and of what is repeated the longest"]
    results.write(str(options.results), "many groups on three hosts", datetime.date.today().isoformat(),
                  f"{asked} --results results/groups.json", notes, [("Goals", goals.rows(report.verdicts()))])


def main():
    options = parse()
    options.work = pathlib.Path(tempfile.mkdtemp(prefix="groups.", dir=options.work or options.build_dir))
    report, noise = Report(), Noise()
    run = Run(options, report)
    began = time.monotonic()
    try:
        run.everything()
    except (c.MeasureError, OSError) as error:
        print(f"this run is worthless: {error}\nlogs are in {options.work}", file=sys.stderr)
        return 2
    finally:
        for pool in run.pools:
            pool.end()
    stolen = noise.stolen_percent()
    print(f"\n{report.table()}\n\n{report.goals_table()}\n\n{time.monotonic() - began:.0f} s; stolen processor time: "
          f"{stolen:.1f} %", flush=True)
    status = report.conclude(options.out, {"date": datetime.date.today().isoformat(), "stolen_percent": stolen,
                                           "quick": options.quick, "groups": options.groups})
    if options.results:
        write_results(options, report)
    shutil.rmtree(options.work, ignore_errors=True)
    return 0 if options.quick else status


if __name__ == "__main__":
    sys.exit(main())
