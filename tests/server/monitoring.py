#!/usr/bin/env python3
"""The alert rules and the dashboard of docs/ name metrics that exist: those of docs/metrics.md, which a test of the
program compares with what it shows. Where promtool is installed (Debian: prometheus), it reads the rules and tries
some.

  monitoring.py TREE
  monitoring.py --self-test
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROW = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \|", re.MULTILINE)
METRIC = re.compile(r"\b(?:leasehold|process)_\w+")
QUOTED = re.compile(r'"[^"]*"')


def known_metrics(text):
    known = set()
    for name, kind in ROW.findall(text):
        known.add(name)
        if kind == "histogram":
            known.remove(name)
            known |= {name + suffix for suffix in ("_bucket", "_sum", "_count")}
    return known


def expressions_of_rules(text):
    """Each `expr:`, with the lines that continue it."""
    return [" ".join(found.split()) for found in re.findall(r"^ +expr: (.*(?:\n {10}\S.*)*)", text, re.MULTILINE)]


def expressions_of_board(board):
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return found + [variable["query"] for variable in board["templating"]["list"]]


def check(metrics, rules, board):
    known, faults = known_metrics(metrics), []
    if not known:
        return ["docs/metrics.md has no metrics"]
    for place, expressions in (("docs/alerts.yml", expressions_of_rules(rules)),
                               ("docs/grafana.json", expressions_of_board(board))):
        names = [name for text in expressions for name in METRIC.findall(QUOTED.sub("", text))]
        if not names:
            faults.append(f"{place} names no metric")
        faults += [f"{place}: there is no metric {name}" for name in sorted(set(names) - known)]
    panels = [panel["gridPos"] for panel in board["panels"]]
    places = {(place["x"], place["y"]) for place in panels}
    if len(places) != len(panels):
        faults.append("docs/grafana.json: two panels have one place")
    return faults


def promtool(tree):
    program = shutil.which("promtool")
    if program is None:
        print("promtool is not installed: the rules were not tried")
        return []
    alerts = os.path.abspath(os.path.join(tree, "docs/alerts.yml"))
    with open(os.path.join(tree, "tests/server/alerts_test.yml"), encoding="utf-8") as file:
        cases = file.read().replace("ALERTS", alerts)
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        tests = os.path.join(folder, "alerts_test.yml")
        with open(tests, "w", encoding="utf-8") as file:
            file.write(cases)
        for words in (("check", "rules", alerts), ("test", "rules", tests)):
            done = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=60)
            if done.returncode != 0:
                faults.append(f"promtool {' '.join(words[:2])}: {done.stdout}{done.stderr}")
    return faults


def read(tree, name):
    with open(os.path.join(tree, name), encoding="utf-8") as file:
        return file.read()


def self_test():
    metrics = "| `leasehold_a` | gauge | x |\n| `leasehold_h_seconds` | histogram | x |\n"
    rules = "      - alert: X\n        expr: >-\n          leasehold_a > 1\n          and leasehold_a < 9\n"
    targets = [{"expr": "rate(leasehold_h_seconds_bucket[1m])"}]
    board = {"panels": [{"gridPos": {"x": 0, "y": 0}, "targets": targets}],
             "templating": {"list": [{"query": "prometheus"}]}}
    twice = {**board, "panels": board["panels"] * 2}
    none = {**board, "panels": [{**board["panels"][0], "targets": [{"expr": "leasehold_h_seconds"}]}]}
    cases = [("", metrics, rules, board), ("no metric leasehold_b", metrics, rules.replace("_a <", "_b <"), board),
             ("no metric leasehold_h_seconds", metrics, rules, none), ("one place", metrics, rules, twice),
             ("has no metrics", "", rules, board), ("alerts.yml names no metric", metrics, "", board)]
    wrong = 0
    for expected, *given in cases:
        faults = check(*given)
        if expected and not any(expected in fault for fault in faults) or not expected and faults:
            print(f"expected {expected or 'nothing'!r}, found {faults}")
            wrong += 1
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    tree = arguments[0]
    board = json.loads(read(tree, "docs/grafana.json"))
    faults = check(read(tree, "docs/metrics.md"), read(tree, "docs/alerts.yml"), board)
    faults += promtool(tree)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
