"""Tests of bench/goals.py, goals.toml, and of what bench/report.py says of goals and of processor time."""

import json
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import goals  # noqa: E402
from report import Report  # noqa: E402
from stats import Histogram  # noqa: E402
from sweeps import Series  # noqa: E402

# Of the project's table (what, limit): a goal that is made easier in goals.toml has to be made easier here too.
LIMITS = {
    ("lease check", "p50"): 1.35,
    ("lease read, one core", "p50"): 1.05, ("lease read, one core", "p99"): 1.15,
    ("lease read, two cores", "p50"): 1.05, ("lease read, two cores", "p99"): 1.15,
    ("pipelined GET", "rate"): 0.9, ("pipelined GET", "cpu"): 1.2,
    ("GET at 64 connections", "p99"): 1.1,
    ("write", "p50"): 1.2, ("write", "p99"): 1.5, ("write", "cpu"): 1.5,
    ("write beside etcd", "p50"): 0.25,
    ("writes of 64 clients", "rate"): 5.0, ("writes of 512 clients", "rate"): 6.0,
    ("writes of 4096 clients", "rate"): 6.0,
    ("512 writes in flight", "rate"): 0.85, ("values of 1 MiB", "rate"): 0.6,
    ("instructions of a GET / Redis", "value"): 1.0, ("GET at 10000 connections", "p99"): 1.1,
    ("read beside writes", "p99"): 1.25, ("read beside writes: waited for apply", "value"): 1.0,
    **{(f"reads beside {event}: p99.9 / at rest", "value"): 1.5
       for event in ("a stall of all disks", "a snapshot", "a compaction", "a cut of the log")},
    ("lease reads, beside events and for long: fallbacks", "value"): 0,
    ("lease reads for long: without a valid lease", "value"): 0.001,
    ("planned transfers: the longest wait of a read, p99", "value"): 3.0,
    ("planned transfers: the longest wait of a write, p99", "value"): 3.0,
    ("planned transfers: refused or failed", "value"): 0,
    ("ten million keys: thousands loaded in a second", "value"): 100.0,
    ("ten million keys: longest restart, until a lease", "value"): 3.0,
    ("ten million keys: memory of a node", "value"): 1.2,
}
AT_LEAST = {"ten million keys: thousands loaded in a second"}


def goal(at_most=True, limit=1.5, quantity="p50"):
    return goals.Goal("a / b", "a", quantity, limit, at_most)


def found(value, low, high, quantity="p50"):
    return {"a": {"ratio": {quantity: {"value": value, "low": low, "high": high}}}}


class JudgeTest(unittest.TestCase):
    def test_the_bad_end_decides(self):
        self.assertEqual(goals.judge(goal(), found(1.4, 1.3, 1.5)).state, "met")
        self.assertEqual(goals.judge(goal(), found(1.4, 1.3, 1.51)).state, "missed")
        self.assertEqual(goals.judge(goal(False), found(1.6, 1.5, 1.7)).state, "met")
        self.assertEqual(goals.judge(goal(False), found(1.6, 1.49, 1.7)).state, "missed")

    def test_by_how_much(self):
        self.assertEqual(goals.judge(goal(), found(1.7, 1.6, 1.8)).text(), "MISSED by 20 %")
        self.assertEqual(goals.judge(goal(False), found(0.8, 0.75, 0.9)).text(), "MISSED by 50 %")
        self.assertEqual(goals.judge(goal(), found(1.5, 1.4, 1.53)).text(), "MISSED by 2.0 %")
        self.assertEqual(goals.judge(goal(limit=0), found(2, 2, 2)).text(), "MISSED by 2")

    def test_what_was_not_measured_is_neither_met_nor_missed(self):
        self.assertEqual(goals.judge(goal(), {}).state, "not measured")
        self.assertEqual(goals.judge(goal(quantity="cpu"), found(1, 1, 1)).state, "not measured")
        self.assertEqual(goals.judge(goal(), {}).missed_by, 0.0)

    def test_a_value_is_its_own_interval(self):
        verdict = goals.judge(goal(quantity="value", limit=64.0), {"a": {"value": 63.0, "unit": "MiB"}})
        self.assertEqual((verdict.state, verdict.interval), ("met", (63.0, 63.0, 63.0)))

    def test_the_summary_names_each_miss(self):
        text = goals.summary([goals.judge(goal(), found(1.7, 1.6, 1.8)), goals.judge(goal(), {}),
                              goals.judge(goal(), found(1, 1, 1))])
        self.assertEqual(text, "goals: 1 met, 1 missed, 1 not measured\n  MISSED by 20 %: a / b")


class FileTest(unittest.TestCase):
    def test_the_limits_are_those_of_the_project(self):
        loaded = {(one.result, one.quantity): one for one in goals.load("measure")}
        for key, limit in LIMITS.items():
            self.assertEqual(loaded[key].limit, limit, key)
            self.assertEqual(loaded[key].at_most, key[1] != "rate" and key[0] not in AT_LEAST, key)

    def test_all_sections_are_read(self):
        self.assertEqual(len(goals.load("protection")), 4)
        self.assertEqual(len(goals.load("watching")), 5)
        self.assertIn("renewal", goals.limits("leases"))
        self.assertIn("kill_s", goals.limits("groups"))

    def test_a_goal_has_one_limit_and_a_quantity(self):
        good = {"what": "w", "result": "r", "quantity": "p50", "at_most": 1.0}
        self.assertEqual(goals.Goal.of(good).limit, 1.0)
        for bad in ({**good, "at_least": 1.0}, {**good, "quantity": "p42"}, {**good, "limit": 1.0},
                    {key: value for key, value in good.items() if key != "at_most"}):
            with self.assertRaises(ValueError):
                goals.Goal.of(bad)


def series(draw, latency, cpu, blocks=20):
    one = Series()
    for _ in range(blocks):
        one.blocks.append(Histogram([(latency, 100)]))
        one.cpu.append((draw.gauss(cpu, cpu / 10) * 100, 100))
    return one


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.draw = random.Random(7)

    def test_processor_time_has_an_interval(self):
        report = Report()
        floor = series(self.draw, 100, 2000)
        report.series("floor", floor)
        report.series("a", series(self.draw, 150, 3000), "floor", floor)
        own = report.results["a"]["server_cpu_ns_per_operation"]
        self.assertLess(own["low"], own["value"])
        self.assertGreater(own["high"], own["value"])
        self.assertAlmostEqual(own["value"], 3000, delta=300)
        ratio = report.results["a"]["ratio"]["cpu"]
        self.assertLess(ratio["low"], 1.5)
        self.assertGreater(ratio["high"], 1.5)
        self.assertLess(ratio["high"] - ratio["low"], 0.4)
        self.assertIn("ratio of CPU", report.table())

    def test_the_status_is_that_of_the_goals(self):
        floor = series(self.draw, 100, 2000)
        for limit, status in ((2.0, 0), (1.2, 1)):
            report = Report([goal(limit=limit), goals.Goal("never", "none", "p50", 1.0)])
            report.series("a", series(self.draw, 150, 3000), "floor", floor)
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "out.json"
                self.assertEqual(report.conclude(out, {}), status)
                written = json.loads(out.read_text())
            self.assertEqual(written["goals"][0]["state"], "missed" if status else "met")
            self.assertEqual(written["goals"][1]["state"], "not measured")

    def test_a_run_that_was_thrown_away_is_not_quoted(self):
        report = Report()
        report.discarded("reads", 1000, "echo", "the client was late")
        self.assertIn("thrown away: the client was late", report.table())
        self.assertNotIn("p50", report.results["open loop, reads at 1000/s: echo"])


if __name__ == "__main__":
    unittest.main()
