"""The log of `leasehold bench --hdr`, read by a decoder of its own, has exactly what was measured.

  hdr_log_test.py HDR_SAMPLE
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import hdr_log

# Written by hdr-histogram-js 3.0.1 (1 to 3600000000000, three digits) of the values 1, 1000, 2000,
# 2048, 5,000,000 twice and 123,456,789: it shows that the decoder reads what others write.
FOREIGN = "HISTFAAAADZ4nJNpmSzMwMAgyMDAwMjAwMDMAAGMDAzMbgY7FjDA+Uyn+ZnO8jPFMrVuZmRZ7cUEAKM7B34="
FOREIGN_VALUES = {1: 1, 1000: 1, 2000: 1, 2049: 1, 5001215: 2, 123469823: 1}


class HdrLogTest(unittest.TestCase):
    def test_the_decoder_reads_what_others_write(self):
        self.assertEqual(hdr_log.histogram(FOREIGN, ours=False), FOREIGN_VALUES)

    def test_slots(self):
        self.assertEqual([hdr_log.largest_of_slot(index, 3) for index in (0, 2047, 2048, 3071, 3072)],
                         [0, 2047, 2049, 4095, 4099])

    def test_the_log_has_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            log, measured = pathlib.Path(folder, "log"), pathlib.Path(folder, "json")
            subprocess.run([SAMPLE, log, measured], check=True)
            intervals = hdr_log.intervals(log)
            expected = [json.loads(line) for line in measured.read_text().splitlines()]
        self.assertEqual(len(intervals), len(expected))  # an empty one has no line
        for number, (interval, wanted) in enumerate(zip(intervals, expected)):
            tag, start, length, largest, counts = interval
            self.assertEqual((tag, start, length), ("read" if number % 2 == 0 else "update", number, 1.0))
            self.assertEqual(sorted(counts.items()), [tuple(slot) for slot in wanted["slots"]])
            self.assertAlmostEqual(largest, wanted["max"] / 1e6, delta=0.001)


if __name__ == "__main__":
    SAMPLE = sys.argv.pop()
    unittest.main()
