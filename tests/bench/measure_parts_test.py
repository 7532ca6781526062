"""Tests of the parts of bench/measure.py: of their sums, and of what they know of other files."""

import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import beside_writes  # noqa: E402
import cluster  # noqa: E402
import crowd  # noqa: E402
import goals  # noqa: E402
import large  # noqa: E402
import measure  # noqa: E402
import open_rates  # noqa: E402
import paced  # noqa: E402
import planned  # noqa: E402
from disk_control import DiskControl  # noqa: E402
from report import Report  # noqa: E402
from stats import Histogram  # noqa: E402
from sweeps import Series  # noqa: E402


class MeasurePartsTest(unittest.TestCase):
    def test_every_part_is_named(self):
        self.assertEqual(set(measure.PARTS), {*measure.SHARED_PARTS, *measure.OWN_PARTS})

    def test_the_fields_of_the_shim_are_in_its_order(self):
        text = (ROOT / "tests" / "process" / "disk_shim.cc").read_text(encoding="utf-8")
        control = text[text.index("struct Control {"):text.index("constexpr std::uint64_t kSector")]
        self.assertEqual(tuple(re.findall(r"std::atomic<std::u?int64_t> (\w+);", control)), DiskControl.FIELDS)

    def test_connections_are_shared_by_clients(self):
        self.assertEqual(crowd.shares(10, 3), [4, 3, 3])

    def test_an_earlier_run_stands_for_what_is_not_measured(self):
        def series(latency):
            one = Series()
            one.blocks = [Histogram([(latency, 10)])] * 2
            one.cpu = [(latency * 10, 10)] * 2
            return one

        earlier = Report(goals.load("measure"))
        earlier.series("echo, one core", series(100))
        earlier.series("lease read, one core", series(104), "echo", series(100))
        earlier.value("resting node: memory", 70.0, "MiB")
        later = Report(goals.load("measure"))
        later.take(json.loads(json.dumps(earlier.results)))
        self.assertEqual(later.measured(), earlier.measured())
        self.assertEqual(later.numbers(), earlier.numbers())
        self.assertEqual([one.state for one in later.verdicts()], [one.state for one in earlier.verdicts()])
        later.series("lease read, one core", series(200), "echo", series(100))
        self.assertEqual([row["ratio of p50"] for row in later.measured()], [None, "2.00 [2.00, 2.00]"])

    def test_what_has_no_answer_counts_as_slow(self):
        one = {"discarded": "", "errors": {}, "operations": 3, "elapsed_ns": 10,
               "latency": {"read": {"slots": [[5, 3]]}}}
        found = crowd.merged([one, {**one, "errors": {crowd.UNANSWERED: 2}}])
        self.assertEqual(found["latency"]["all"]["slots"], [(5, 6), (crowd.UNANSWERED_NS, 2)])
        self.assertEqual((found["operations"], found["unanswered"]), (6, 2))

    def test_a_late_client_is_named_at_the_quantile(self):
        run = {"overflows": 0, "reads": {"slots": [[100, 990], [1000, 10]]}, "late": {"slots": [[90, 990], [95, 10]]}}
        self.assertEqual(paced.late(run, "reads", 0.999), "")
        self.assertIn("at p50 the client itself was", paced.late(run, "reads", 0.5))
        self.assertIn("could not be sent", paced.late({**run, "overflows": 1}, "reads", 0.999))

    def test_what_is_due_around_a_standstill_of_the_client_does_not_count(self):
        ms = 1_000_000
        # A request each 10 ms. That of 500 ms is sent 20 ms late; that of 900 ms takes long for another reason.
        waits = [[10 * i * ms, 20 * ms if i == 50 else 1000, 30 * ms if i in (50, 90) else 2000, i % 2 == 1]
                 for i in range(100)]
        run = {"overflows": 0, "waits": waits}
        self.assertEqual(paced.standstills(waits), [[490 * ms, 530 * ms]])
        steady = paced.steady(run)
        self.assertEqual(steady["left"], 0.95)
        self.assertEqual(sum(count for _, count in steady["late"]["slots"]), 95)
        self.assertEqual(max(value for value, _ in steady["late"]["slots"]), 1000)
        self.assertEqual([value for value, _ in steady["reads"]["slots"] if value > 2000], [30 * ms])
        self.assertEqual(paced.late(steady, "reads", 0.99), "")
        self.assertIn("stood still around 100 %", paced.late(paced.steady(run, (495 * ms, 520 * ms)), "reads", 0.99))
        self.assertEqual(paced.steady(run, (501 * ms, 502 * ms))["left"], 0.95)

    def test_requests_that_could_not_be_sent_do_not_show_the_client(self):
        run = {"overflows": 3, "left": 1.0, "reads": {"slots": [[100, 99], [1000, 1]]}, "late": {"slots": [[20, 100]]}}
        self.assertEqual(open_rates.late(run, "reads"), "")
        self.assertIn("at p50", open_rates.late({**run, "late": {"slots": [[30, 100]]}}, "reads"))
        self.assertIn("stood still", open_rates.late({**run, "left": 0.4}, "reads"))

    def test_the_longest_wait_in_the_span_of_a_transfer(self):
        ms = 1_000_000
        waits = [[1 * ms, 0, 4 * ms, False], [6 * ms, 0, 2 * ms, True], [20 * ms, 0, 9 * ms, False]]
        self.assertEqual(planned.longest(waits, (3 * ms, 7 * ms)), {"read": 4.0, "write": 2.0})
        self.assertEqual(planned.longest(waits, (9 * ms, 15 * ms)), {})
        found, thrown_away = {}, {}
        planned.add(found, thrown_away, waits, [(3 * ms, 7 * ms)], "")
        planned.add(found, thrown_away, [*waits, [8 * ms, 1 * ms, 1 * ms, True]], [(3 * ms, 7 * ms)], "")
        self.assertEqual((found, thrown_away), ({"read": [4.0], "write": [2.0]}, {"read": 1, "write": 1}))

    def test_reads_that_waited(self):
        before = {"term": 1, "lease_hits": 10, "lease_waits": 0, "lease_fallbacks": 0}
        self.assertEqual(beside_writes.waited(before, {**before, "lease_hits": 100, "lease_waits": 10}), (1000, 100))
        with self.assertRaises(cluster.MeasureError):
            beside_writes.waited(before, {**before, "lease_fallbacks": 1})

    def test_bandwidth_is_held_against_the_slower_one(self):
        def series(rate):
            one = Series()
            one.rates, one.blocks = [(rate, 1.0)] * 4, [Histogram([(1000, 1)])] * 4
            return one
        report = Report(goals.load("measure"))
        large.tell(report, {"disk": series(90), "loopback": series(50), large.NAME: series(20)})
        self.assertEqual(report.results[large.NAME]["ratio"]["rate"]["value"], 0.4)
        third = f"{large.NAME} / the slower of a third of the disk, which has three logs, and loopback"
        self.assertEqual(report.results[third]["value"], 0.6667)


if __name__ == "__main__":
    unittest.main()
