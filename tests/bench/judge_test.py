"""Tests of bench/judge.py and of the histories of bench_client. Arguments: the programs leasehold_check and
bench_client."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import cluster  # noqa: E402
import goals  # noqa: E402
import judge  # noqa: E402
from report import Report  # noqa: E402

CHECKER, CLIENT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])


def line(op, value, start, end):
    members = {"client": 0, "op": op, "key": "key:0000000000", "value": value, "start": start, "end": end}
    return json.dumps(members) + "\n"


FIRST = [line("put", "a", 1, 2), line("get", "a", 3, 4)]
SECOND = [line("put", "b", 5, 6), line("get", "b", 7, 8)]
OLD = [line("get", "a", 9, 10)]


class JudgeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def verdict(self, *histories):
        files = []
        for number, lines in enumerate(histories):
            files.append(self.folder / f"{number}.jsonl")
            files[-1].write_text("".join(lines))
        return judge.judged(CHECKER, judge.joined(files, self.folder / "history.jsonl"))

    def test_histories_of_several_processes_are_one(self):
        self.assertEqual(self.verdict(SECOND, FIRST), (True, "linearizable: 4 operations on 1 key"))

    def test_an_old_value_is_found_out_and_named(self):
        verdict, text = self.verdict(FIRST, OLD, SECOND)
        self.assertIs(verdict, False)
        self.assertIn("not linearizable: key key:0000000000", text)

    def test_a_value_that_nobody_wrote_is_found_out(self):
        self.assertIs(self.verdict(FIRST, [line("get", "c", 9, 10)])[0], False)

    def test_what_the_checker_cannot_read_is_no_verdict(self):
        verdict, text = self.verdict(["nonsense\n"])
        self.assertIsNone(verdict)
        self.assertIn("line 1", text)
        self.assertIsNone(judge.judged(self.folder / "no checker", self.folder / "history.jsonl")[0])

    def test_a_client_without_a_history_is_an_error(self):
        with self.assertRaises(cluster.MeasureError):
            judge.joined([self.folder / "missing"], self.folder / "history.jsonl")

    def test_the_parts_add_up_and_a_part_that_is_measured_again_counts_once(self):
        goal = next(one for one in goals.load("measure") if one.result == judge.VIOLATIONS)
        report = Report([goal])
        for name, operations, violations in (("reads", 10, 0), ("writes", 5, 0), ("reads", 20, 0)):
            judge.note(report, name, operations, violations)
        self.assertEqual(report.results[judge.OPERATIONS]["value"], 25)
        self.assertEqual(report.verdicts()[0].state, "met")
        judge.note(report, "writes", 5, 1)
        self.assertEqual(report.verdicts()[0].state, "missed")


class ClientTest(unittest.TestCase):
    """What bench_client refuses, before it asks any server."""

    def refusal(self, *words):
        done = subprocess.run([CLIENT, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_a_value_has_to_have_room_for_its_number(self):
        self.assertIn("--value-bytes", self.refusal("--value-bytes", "15", "load", "--address", "127.0.0.1:1",
                                                    "--history", "unused"))

    def test_a_file_that_cannot_be_written_is_named(self):
        self.assertIn("/no such folder/h", self.refusal("load", "--address", "127.0.0.1:1", "--history",
                                                        "/no such folder/h"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
