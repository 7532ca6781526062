#!/usr/bin/env python3
"""Each alert of docs/alerts.yml is caused at three real nodes. A real Prometheus has it fire for the right node, and
nothing else; at rest nothing fires, and when the cause ends the alert does. promtool looks at the metrics and the
rules, and each expression of docs/grafana.json is evaluated under load."""

import contextlib
import json
import math
import os
import re
import time
import types

import disk
from admin_port import get
from alert_scenes import LASTING, SCENES, leading, write
from cluster import PATIENT, Background, Cluster, Skipped, built, check, free_port, main, wait_for
from full_disk import Space
from monitor import Prometheus, installed, lint, names, only_times_differ, quickened, watch
from peer_forge import Schema

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, "../../docs")
FIRE_SECONDS = 90
END_SECONDS = 60
ALL = ",".join(SCENES)
REST_SECONDS = 60
SMALL_MEMORY = ["--client-memory-max", "64M"]
# One alert wants elections, which the others do not want.
FLAGS = {"patient": PATIENT, "small disk": PATIENT, "hasty": ["--lease", "500ms"]}


def arguments(parser):
    parser.add_argument("--shim", required=True, type=built, help="the disk_shim library")
    parser.add_argument("--flip-value", required=True, type=built, help="the flip_value program")
    parser.add_argument("--alerts", default=ALL, help="these alone")
    parser.add_argument("--rest", type=float, default=5.0, help="seconds before each, in which nothing may fire")


class Stage:
    """Context manager: three nodes, and the Prometheus that watches them. On the stage "small disk" the last node has a
    disk of its own, which `space` fills."""

    def __init__(self, options, rules, kind):
        self.options, self.kind = options, kind
        self.schema = Schema(os.path.join(HERE, "../../wire/raft.proto"))
        self.cluster = Cluster(options.binary, flags=[*FLAGS[kind], *SMALL_MEMORY], keep=options.keep)
        self.instances = {node: f"127.0.0.1:{free_port()}" for node in self.cluster.nodes}
        self.prometheus = Prometheus(self.cluster.folder, rules, list(self.instances.values()))
        self.shims, self.space = {}, None
        self.left = set()  # alerts that look back at an earlier scene
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.cluster)
            if self.kind == "small disk":
                disk.enter_private_mounts()
                self.space = Space(types.SimpleNamespace(nodes=[self.small], folder=self.cluster.folder))
                stack.callback(self.space.off)
                stack.callback(self.small.kill)
            for node in self.cluster.nodes:
                node.flags += ["--admin", self.instances[node]]
                # The machine's own disk may be slow: nothing waits for it.
                self.shims[node] = disk.Shim(self.options.shim, node)
                self.shims[node].set(skip_syncs=1)
            # It looks at its targets 5 s after its start.
            stack.enter_context(self.prometheus)
            self.cluster.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    @property
    def small(self):
        return self.cluster.nodes[-1]

    def at_rest(self, seconds):
        """Waits until all nodes are up and no alert fires; then none may fire for `seconds`. An alert that an
        earlier scene has left does not count."""
        self.cluster.wait_leader()
        wait_for("all to be up and nothing to fire", REST_SECONDS,
                 lambda: self.prometheus.all_up() and self.ends(self.prometheus.alerts()), pause=0.2)
        watch(self.prometheus, seconds, lambda firing: False,
              lambda firing: check(self.ends(firing), f"at rest there is {firing}"))

    def ends(self, firing):
        return all(labels["alertname"] in self.left for labels in firing)


def play(stage, name, scene, options):
    """One alert, from rest to rest."""
    stage.at_rest(options.rest)
    alert, begun, wanted = f"Leasehold{name}", time.monotonic(), None
    beside = scene.beside | stage.left

    def judge(firing):
        for labels in firing:
            right = labels["alertname"] == alert and (not wanted or labels["instance"] in wanted)
            check(right or labels["alertname"] in beside, f"{name} was caused at {wanted}, and there is {labels}")
    with scene.cause(stage) as nodes:
        wanted = {stage.instances[node] for node in nodes}
        fires = watch(stage.prometheus, FIRE_SECONDS * options.slack,
                      lambda firing: _for_all(wanted, alert, firing), judge)
        check(fires, f"{name} does not fire for {wanted}: {stage.prometheus.alerts()}, and pending "
                     f"{stage.prometheus.alerts('pending')}")
        fired = time.monotonic()
    wanted = None  # nodes that return may have it, too
    stage.left |= ({alert} | scene.beside) & LASTING
    check(watch(stage.prometheus, END_SECONDS * options.slack, stage.ends, judge),
          f"{name} does not end: {stage.prometheus.alerts()}")
    ended = "lasts" if alert in stage.left else f"ended {time.monotonic() - fired:.1f} s later"
    others = stage.prometheus.fired(time.monotonic() - begun) - {alert} - beside
    check(not others, f"{name} was caused, and {others} fired")
    print(f"{name}: fired after {fired - begun:.1f} s, {ended}", flush=True)


def _for_all(wanted, alert, firing):
    found = {labels["instance"] for labels in firing if labels["alertname"] == alert}
    return found and wanted <= found


def metrics_are_clean(stage):
    leader = stage.cluster.wait_leader()
    for node in (leader, stage.cluster.others(leader)[0]):
        lint(["check", "metrics"], get(node, "/metrics")[1])


def dashboard_has_data(stage):
    """Each expression of the dashboard, under load."""
    with open(os.path.join(DOCS, "grafana.json"), encoding="utf-8") as file:
        board = json.load(file)
    leader = leading(stage)
    with leader.client() as client, Background(lambda: (write(leader, 5), client.call("GET", "key:1"))):
        for panel in board["panels"]:
            for target in panel["targets"]:
                text = target["expr"].replace("$__rate_interval", "8s").replace("$job", "leasehold").replace(
                    "$instance", ".*")
                wait_for(f"data of {text}", 20, lambda text=text: any(
                    not math.isnan(value) for _, value in stage.prometheus.query(text)), pause=0.5)
    print(f"the dashboard's {len(board['panels'])} panels have data", flush=True)


def read_rules():
    """The rules with shorter times."""
    path = os.path.join(DOCS, "alerts.yml")
    lint(["check", "rules", path])
    with open(path, encoding="utf-8") as file:
        rules = file.read()
    check(names(rules) and {f"Leasehold{name}" for name in SCENES} == set(names(rules)), "alerts without a scene")
    copy = quickened(rules)
    check(only_times_differ(rules, copy), "the copy of the rules has other changes")
    check("[15m]" not in copy and "for: 1m" not in copy, "the copy has long times")
    for found, instead in ((r"> \d+", "> 12345"), (r" for: \w+", " for: soon"), (r"\]", "] offset 1m"),
                           ("rate", "irate")):
        changed = re.sub(found, instead, copy, count=1)
        check(changed != copy and not only_times_differ(rules, changed), f"{instead!r} would not be seen")
    return copy


def perform(options, rules, kind, wanted, left_out):
    """The scenes of a stage; what this machine cannot do is left out."""
    with Stage(options, rules, kind) as stage:
        if kind == "patient":
            metrics_are_clean(stage)
            if options.alerts == ALL:
                dashboard_has_data(stage)
        for name in wanted:
            try:
                play(stage, name, SCENES[name], options)
            except Skipped as reason:
                print(f"left out: {name}: {reason}", flush=True)
                left_out.append(name)


def run(options):
    wanted = options.alerts.split(",")
    check(set(wanted) <= set(SCENES), f"--alerts: there are {', '.join(SCENES)}")
    installed("prometheus")
    rules = read_rules()
    left_out = []
    for kind in FLAGS:
        scenes = [name for name in SCENES if name in wanted and SCENES[name].stage == kind]
        try:
            if scenes:
                perform(options, rules, kind, scenes, left_out)
        except Skipped as reason:
            print(f"left out: {', '.join(scenes)}: {reason}", flush=True)
            left_out += scenes
    if set(left_out) == set(wanted):
        raise Skipped("nothing is left")


if __name__ == "__main__":
    main(__doc__, run, arguments)
