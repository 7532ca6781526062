"""Tests of bench/load_blocks.py."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import goals  # noqa: E402
import load_blocks  # noqa: E402
from report import Report  # noqa: E402

TARGETS = {"one": ("a:1", [os.getpid()]), "other": ("b:2", [os.getpid()])}


class LoadBlocksTest(unittest.TestCase):
    def setUp(self):
        self.asked = []

    def run_of(self, discarded):
        def run(_program, _work, address, _flags, seconds):
            self.asked.append(address)
            operations = 300 if address == "a:1" else 100
            return {"discarded": discarded.get(address, ""), "operations": operations, "elapsed_ns": seconds * 1e9,
                    "latency": {"read": {"slots": [[1000, operations]]}}}
        return run

    def measure(self, discarded, pairs=4):
        return load_blocks.measure("program", None, "title", TARGETS, (), pairs, run=self.run_of(discarded))

    def test_blocks_alternate_and_the_first_ones_do_not_count(self):
        found = self.measure({}, pairs=3)
        self.assertEqual(self.asked, ["a:1", "b:2", "b:2", "a:1", "a:1", "b:2", "b:2", "a:1"])
        self.assertEqual([len(found[name].blocks) for name in TARGETS], [3, 3])

    def test_only_what_has_a_judge_is_recorded_each_block_in_a_file_of_its_own(self):
        class Judge:
            files = 0

            def flags(self):
                self.files += 1
                return ["--history", self.files]

        flags = []

        def run(_program, _work, address, given, seconds):
            flags.append((address, given))
            return self.run_of({})(_program, _work, address, given, seconds)

        load_blocks.measure("program", None, "title", TARGETS, ["-x"], 1, run=run, judges={"one": Judge()})
        self.assertEqual(flags, [("a:1", ["-x", "--history", 1]), ("b:2", ["-x"]), ("b:2", ["-x"]),
                                 ("a:1", ["-x", "--history", 2])])

    def test_members_of_etcd_are_named_as_such(self):
        self.assertEqual(load_blocks.servers("a:1,b:2"), ("--servers", "a:1,b:2"))
        self.assertEqual(load_blocks.servers("etcd=a:1,b:2"), ("--etcd", "a:1,b:2"))

    def test_the_ratio_of_rates_is_judged(self):
        found = self.measure({})
        goal = goals.Goal("one / other", "one", "rate", 2.5, at_most=False)
        report = Report([goal])
        load_blocks.report_pair(report, "one", found["one"], "other", found["other"])
        verdict = report.verdicts()[0]
        self.assertAlmostEqual(verdict.bad_end, 3.0)
        self.assertEqual(verdict.state, "met")

    def test_a_target_whose_client_was_the_bottleneck_is_given_up(self):
        found = self.measure({"b:2": "the client was busy"})
        self.assertEqual(self.asked.count("b:2"), load_blocks.TRIALS)
        self.assertEqual(found["other"], "the client was busy")
        report = Report([goals.Goal("one / other", "one", "rate", 2.5, at_most=False)])
        load_blocks.report_pair(report, "one", found["one"], "other", found["other"])
        self.assertEqual(report.verdicts()[0].state, "not measured")
        self.assertEqual(report.results["other (one)"], {"discarded": "the client was busy"})


if __name__ == "__main__":
    unittest.main()
