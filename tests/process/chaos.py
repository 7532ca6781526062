#!/usr/bin/env python3
"""Everything at once, on the real program: a cluster under load while faults drawn from a seed
strike its processes, members, network, clocks and disks. Rounds of some 25 s: faults, then all is healed and
the cluster has to recover within a bound, then what the clients saw is judged. Also watched all the
time: that a term has one leader, that no two leases overlap, that nobody votes twice in a term. At
the end of each workload all nodes are killed, and every acknowledged write has to be there.

--control builds or makes a deliberate bug, which the same run has to find within --minutes."""

import argparse
import asyncio
import collections
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import types

import chaos_net
import chaos_picture
import control_build
import power_cut
import slots
from chaos_faults import Faults, in_thread
from chaos_load import WORKLOADS
from chaos_members import Members
from chaos_plan import CLASSES, Plan
from chaos_slots import Moves
from chaos_watch import Violation, Watch
from cluster import Cluster, Failed, Skipped, built, check, main, wait_for
from machine_clock import Clock, VmClock
from proxy_process import ProxyProcess

# Logs are cut early, so that a node that was away needs a snapshot now and then.
FLAGS = ["--log-level", "debug", "--command-timeout", "2s", "--session-idle-max", "1440m",
         "--log-tail", "256K", "--log-cut", "256K"]
# From the end of all faults until every node takes writes and reads. A lease, an election timeout
# and a start take less than 3 s; the rest is for packets that TCP sends again rarely after a cut,
# and for a machine with other work.
HEAL_SECONDS = 15
# A round that could only be shorter is not begun.
ROUND_MIN_SECONDS = 6
PROGRESS_SECONDS = 5
# Of so many keys each group has one, unless it has few slots.
KEYS_OF_ALL_GROUPS = 1000
TICK_SECONDS = 0.25
CONTROL_MINUTES = 5
CONTROLS = {
    "sync": "syncs of the log do nothing",
    "promises": "what a voter promises has ended at once",
    "lease": "a leader takes its lease for 5 s longer than it is",
}
# The faults that can show each, so that five minutes have enough of them.
CONTROL_FAULTS = {"sync": ["kill", "power"], "promises": ["partition"],
                  "lease": ["pause", "partition"]}
CONTROL_PATCHES = {
    "promises": os.path.join(control_build.CONTROLS, "no_promises.patch"),
    "lease": os.path.join(control_build.CONTROLS, "long_lease.patch"),
}


def some_of(known):
    def parse(text):
        names = list(known) if text == "all" else text.split(",")
        wrong = [name for name in names if name not in known]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]} is none of {', '.join(known)}")
        return [name for name in known if name in names]
    return parse


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--log-dump", type=built, help="the log_dump program, for power cuts")
    parser.add_argument("--shim", type=built, help="the disk_shim library, for power and disk")
    parser.add_argument("--clock-shim", type=built,
                        help="the clock_shim library, for drift and jump")
    parser.add_argument("--minutes", type=float, default=None,
                        help="of all workloads together (4; with --control 5)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--nodes", type=int, choices=(3, 5), default=3)
    parser.add_argument("--groups", type=int, default=1, help="that share the slots of the keys")
    parser.add_argument("--faults", type=some_of(CLASSES), metavar="A,B",
                        help=f"classes of faults: {', '.join(CLASSES)} (all; with --control those "
                        "that can show the bug)")
    parser.add_argument("--workload", type=some_of(WORKLOADS), metavar="A,B",
                        help=f"one after the other: {', '.join(WORKLOADS)} (all; with --control "
                        "registers)")
    parser.add_argument("--out", help="folder for the pictures, and for the logs and histories of "
                        "a violation; default: a new temporary folder")
    parser.add_argument("--show-plan", action="store_true",
                        help="print what would happen in the first round of each workload, and end")
    parser.add_argument("--control", choices=sorted(CONTROLS),
                        help="run on a deliberate bug, which has to be found")
    parser.add_argument("--control-folder", help="build the control here and keep it")
    parser.add_argument("--control-binary", type=built, help="the bug, built before: do not build")


class Report:
    """The last lines of the output, after any end."""

    def __init__(self):
        self.left_out = {}  # class of faults: why
        self.notes = []
        self.faults = collections.Counter()
        self.not_struck = collections.Counter()
        self.proxy = collections.Counter()
        self.operations = collections.Counter()
        self.rounds = collections.Counter()
        self.seconds = collections.Counter()
        self.terms = 0
        self.samples = 0
        self.heals = []
        self.slots = collections.Counter()
        self.settled = []
        self.violations = []
        self.pictures = []

    def say(self, options):
        print("--- summary", flush=True)
        for name in self.rounds:
            print(f"{name}: {self.rounds[name]} rounds in {self.seconds[name]:.0f} s, "
                  f"{self.operations[name]} operations judged")
        print(f"faults: {sum(self.faults.values())} {dict(self.faults)}; left out because the node "
              f"was in other hands or nobody led: {sum(self.not_struck.values())}")
        if self.proxy:
            print(f"the proxy: {dict(self.proxy)}")
        if self.heals:
            print(f"after a heal all nodes served again within: median "
                  f"{statistics.median(self.heals):.2f} s, maximum {max(self.heals):.2f} s "
                  f"(limit {HEAL_SECONDS * options.slack:.0f} s)")
        if self.slots["commands"]:
            print(f"commands about slots, and slots: {dict(self.slots)}; after a heal the last move ended within: "
                  f"median {statistics.median(self.settled or [0]):.2f} s, maximum {max(self.settled or [0]):.2f} s")
        print(f"{self.terms} terms had a leader; {self.samples} looks at leaders and leases")
        for note in self.notes:
            print(f"NOTE: {note}")
        for name, why in self.left_out.items():
            print(f"LEFT OUT: {name}: {why}")
        for path in self.pictures:
            print(f"picture: {path}")
        for text in self.violations:
            print(f"VIOLATION: {text}")


def possible(options, report):
    """The classes of faults that can work here, and the kind of network. Call it before any
    thread."""
    classes = list(options.faults)

    def leave_out(names, why):
        for name in names:
            if name in classes:
                classes.remove(name)
                report.left_out[name] = why
    if options.shim is None or options.log_dump is None:
        leave_out(("power", "disk"), "needs --shim and --log-dump")
    if options.clock_shim is None:
        leave_out(("drift", "jump"), "needs --clock-shim")
    if options.groups == 1:
        leave_out(("slots",), "needs --groups")
    network = chaos_net.Loopback
    if "partition" in classes:
        try:
            chaos_net.enter_router()
            network = chaos_net.Namespaces
        except Skipped as why:
            report.notes.append(f"{why}: the proxy cuts the links, on the loopback interface")
    if not classes:
        raise Skipped(f"nothing is left to do: {report.left_out}")
    return classes, network


class Stretch:
    """One workload on one cluster, until its time is over."""

    def __init__(self, options, report, workload, classes, network, seconds):
        self.options = options
        self.report = report
        self.kind = WORKLOADS[workload]
        self.classes = classes
        self.seconds = seconds
        self.seed = f"{options.seed}:{workload}"
        self.stop = None
        self.refusal = ""  # the last one of a node that had to serve
        self.done = []  # the rounds' workloads
        self.story = chaos_picture.Story(
            f"chaos: {workload}, seed {options.seed}, {options.nodes} nodes")
        self.proxied = "proxy" in classes or ("partition" in classes and not network.cuts)
        self.network = network(options.nodes, self.proxied)
        flags = FLAGS + (["--groups", str(options.groups)] if options.groups > 1 else [])
        self.cluster = Cluster(options.binary, options.nodes, flags, keep=options.keep)
        self.cluster.peers = ",".join(f"{node}={place.peer}" for node, place in
                                      self.network.places.items())
        for node in self.cluster.nodes:
            place = self.network.places[node.place]
            node.peers, node.host, node.namespace = self.cluster.peers, place.host, place.namespace
            node.flags += ["--peer-listen", place.listen]
        self.proxy = self.faults = self.watch = None
        self.moves = Moves(self.cluster, options.groups, self.seed, options.slack)

    def run(self):
        try:
            with self.cluster:
                try:
                    self._prepare()
                    asyncio.run(self._torment())
                    self._after_the_end()
                except Failed as error:
                    self.story.violation(str(error))
                    self.report.violations.append(f"{self.kind.name}: {error}")
                finally:
                    self._account()
                    if self.report.violations:
                        self._keep()
        except Failed as error:  # a bug in a node's log
            self.report.violations.append(f"{self.kind.name}: {error}")
            self._draw()
        finally:
            self.network.close()

    def _prepare(self):
        power, clocks, vm_clocks = None, {}, {}
        if "power" in self.classes or "disk" in self.classes:
            power = power_cut.Power(types.SimpleNamespace(
                log_dump=self.options.log_dump, shim=self.options.shim, way="shim", without_sync=False,
                groups=self.options.groups), self.cluster)
        if "drift" in self.classes or "jump" in self.classes:
            clocks = {node: Clock(self.options.clock_shim, node) for node in self.cluster.nodes}
            vm_clocks = {node: VmClock(node.log_path + ".vmclock") for node in self.cluster.nodes}
            for node, vm_clock in vm_clocks.items():
                node.flags += ["--vm-clock", vm_clock.path]
        if self.proxied:
            places = self.network.places
            self.proxy = ProxyProcess(
                self.seed, {node: {"listen": place.peer, "forward": place.listen} for node, place in places.items()},
                {node: self.network.proxy_source(node) for node in places})
        self.watch = Watch(self.cluster, self.story,
                           lambda node: node in self.faults.busy or self.faults.failed, self.options.groups)
        self.faults = Faults(self.cluster, self.network, power, clocks, vm_clocks, self.proxy,
                             self.watch, self.story,
                             Members(self.cluster, self.network, self.options.groups, self.options.slack),
                             self.moves, self.options.groups)
        self.cluster.start()
        self.moves.begin()
        if self.options.control == "sync":
            power.skip_syncs()

    async def _torment(self):
        self.stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupted)
        self.watch.start()
        begun = time.monotonic()
        try:
            number = 0
            while not self.stop.is_set():
                left = self.seconds - (time.monotonic() - begun)
                if number > 0 and left < ROUND_MIN_SECONDS:
                    break
                number += 1
                plan = Plan(self.seed, number, self.classes, self.options.nodes, self.options.groups)
                plan.shortened(max(left, ROUND_MIN_SECONDS))
                await self._round(plan, begun)
        finally:
            self.report.seconds[self.kind.name] += time.monotonic() - begun
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
            await self.watch.stop()

    def _interrupted(self):
        print("stopped by hand: what has happened so far is judged", flush=True)
        self.report.notes.append("stopped by hand")
        self.stop.set()

    async def _round(self, plan, begun):
        self.story.new_round(plan.number, plan.classes)
        workload = self.kind(self.cluster, plan.number, self.seed)
        self.done.append(workload)
        self.faults.workload = workload
        await in_thread(workload.prepare)
        workload.begin()
        following = asyncio.create_task(self.faults.follow(plan, self.stop))
        try:
            said = 0.0
            while not following.done():
                await asyncio.sleep(TICK_SECONDS)
                if self.faults.failed:
                    raise self.faults.failed
                self.watch.check()
                workload.check()
                if time.monotonic() - said >= PROGRESS_SECONDS:
                    said = time.monotonic()
                    self._progress(plan, workload, said - begun)
            following.result()
            await self._heal()
            await in_thread(self.moves.settle)
        except BaseException:
            self.stop.set()
            await asyncio.gather(following, workload.abandon(), return_exceptions=True)
            raise
        await workload.end()
        self.watch.check()
        await in_thread(self.moves.check_keys)
        await in_thread(workload.judge, self.options.checker)
        self.report.rounds[self.kind.name] += 1
        self.report.operations[self.kind.name] += workload.operations()
        self.story.end_round()

    def _progress(self, plan, workload, passed):
        leader = self.watch.leader()
        leads = "nobody leads" if leader is None else f"node {leader} leads"
        print(f"{passed:5.0f} s of {self.seconds:.0f}: {self.kind.name}, round {plan.number} "
              f"({', '.join(plan.classes)}); {leads}, {self.watch.terms} terms, "
              f"{sum(self.faults.done.values())} faults, "
              f"{workload.operations()} operations", flush=True)

    async def _heal(self):
        """All faults have ended by themselves; rates of clocks stay, because they are not a fault."""
        begun = time.monotonic()
        self.story.healed()
        limit = HEAL_SECONDS * self.options.slack
        try:
            await in_thread(self.cluster.wait_leader, limit)
            for node in self.cluster.nodes:
                await in_thread(wait_for, f"{node} to serve", limit, lambda n=node: self._serves(n))
        except Failed as error:
            raise Violation(f"not healed: {error}{self.refusal}") from error
        took = time.monotonic() - begun
        self.report.heals.append(took)
        if took > limit:
            raise Violation(f"it took {took:.1f} s until all nodes served again")

    def _serves(self, node):
        """A key of each group that has slots."""
        layout = self.moves.layout(node)
        keys = {}
        for number in range(KEYS_OF_ALL_GROUPS):
            keys.setdefault(layout[slots.slot_of(f"healed:{number}")], f"healed:{number}")
        with node.client(2) as client:
            for group, key in keys.items():
                replies = client.call("SET", key, node.id), client.call("GET", key)
                if replies[0] != "OK" or not isinstance(replies[1], bytes):
                    self.refusal = f"; {key} of group {group} was answered {replies}"
                    return False
        return True

    def _after_the_end(self):
        """Nothing acknowledged may be lost, of any round, also when all die at once."""
        self.moves.settle_for_good()
        for node in self.cluster.nodes:
            node.process.kill()
        for node in self.cluster.nodes:
            node.kill()
        self.cluster.start()
        for node in self.cluster.nodes:
            self.cluster.wait_caught_up(node)
            for workload in self.done:
                workload.read_back(node)
        self.moves.check_kept()

    def _account(self):
        report = self.report
        if self.proxy is not None:
            report.proxy.update(self.proxy.close())
        if self.faults is not None:
            report.faults.update(self.faults.done)
            report.not_struck.update(self.faults.left_out)
            if self.faults.starves_by_hand and "starve" in self.classes:
                note = "no control groups: nodes are starved by stopping them most of the time"
                if note not in report.notes:
                    report.notes.append(note)
            for node in self.cluster.nodes:
                node.kill()
            self.faults.close()
        report.slots.update(self.moves.counts)
        report.settled += self.moves.settled
        if self.watch is not None:
            report.terms += self.watch.terms
            report.samples += self.watch.counts["samples"]
        self._draw()

    def _draw(self):
        path = os.path.join(self.options.out, f"{self.kind.name}.svg")
        chaos_picture.draw(self.story, list(self.network.places), path)
        if path not in self.report.pictures:
            self.report.pictures.append(path)

    def _keep(self):
        """Everything that is needed to find the reason."""
        place = os.path.join(self.options.out, f"{self.kind.name}-violation")
        os.makedirs(place, exist_ok=True)
        for node in self.cluster.nodes:
            shutil.copy(node.log_path, place)
        if self.done:
            self.done[-1].history.save(os.path.join(place, "history.jsonl"))
        with open(os.path.join(place, "faults.json"), "w", encoding="utf-8") as file:
            json.dump([{"round": one.number, "begun": entry.begun, "ended": entry.ended,
                        "nodes": entry.nodes, "fault": entry.text}
                       for one in self.story.rounds for entry in one.entries], file, indent=1)
        self.report.notes.append(f"logs, faults and the last history are in {place}")


def show_plan(options, classes):
    for name in options.workload:
        plan = Plan(f"{options.seed}:{name}", 1, classes, options.nodes, options.groups)
        print(f"{name}, round 1: {plan.seconds:.1f} s of {', '.join(plan.classes)}")
        for fault in plan.faults:
            print(f"  {fault}")


def prepare_control(options, folder):
    """Changes the options so that they run the bug."""
    print(f"the control: {CONTROLS[options.control]}", flush=True)
    if options.control == "sync":
        check("power" in options.faults and options.shim and options.log_dump,
              "this control needs power cuts, --shim and --log-dump")
        return
    if options.control_binary:
        options.binary = options.control_binary
        return
    try:
        options.binary, _ = control_build.build(folder, CONTROL_PATCHES[options.control],
                                                targets=("leasehold",))
    except subprocess.CalledProcessError as error:
        raise Failed(f"the control cannot be built: {error}") from error


def torment(options):
    report = Report()
    classes, network = possible(options, report)
    if options.show_plan:
        show_plan(options, classes)
        return report
    seconds = options.minutes * 60 / len(options.workload)
    for workload in options.workload:
        stretch = Stretch(options, report, workload, classes, network, seconds)
        stretch.run()
        if report.violations or "stopped by hand" in report.notes:
            break
    report.say(options)
    return report


def run(options):
    if options.faults is None:
        options.faults = CONTROL_FAULTS.get(options.control, list(CLASSES))
    if options.workload is None:
        options.workload = ["registers"] if options.control else list(WORKLOADS)
    print(f"--seed {options.seed} --nodes {options.nodes} --groups {options.groups} "
          f"--faults {','.join(options.faults)} --workload {','.join(options.workload)}", flush=True)
    if options.minutes is None:
        options.minutes = CONTROL_MINUTES if options.control else 4
    options.out = options.out or tempfile.mkdtemp(prefix="leasehold-chaos-")
    os.makedirs(options.out, exist_ok=True)
    folder = options.control_folder or tempfile.mkdtemp(prefix="leasehold-control-")
    try:
        if options.control:
            prepare_control(options, folder)
        report = torment(options)
    finally:
        if not options.control_folder:
            shutil.rmtree(folder, ignore_errors=True)
    if options.control and not options.show_plan:
        check(report.violations, "the control did not fail: this test is blind")
        print("as it has to be with this bug")
    else:
        check(not report.violations, f"{len(report.violations)} violations, of which the first: "
              f"{report.violations[:1]}")


if __name__ == "__main__":
    main(__doc__, run, arguments)
