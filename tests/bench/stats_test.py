"""Tests of bench/stats.py."""

import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from stats import Histogram, compared, compared_shares, difference, share  # noqa: E402


def block(draw, middle, size=200):
    return Histogram([(draw.gauss(middle, middle / 20), 1) for _ in range(size)])


class HistogramTest(unittest.TestCase):
    def test_quantiles_are_recorded_values(self):
        histogram = Histogram([[10, 5], [20, 4], [30, 1]])
        self.assertEqual(histogram.count, 10)
        self.assertEqual(histogram.quantiles([0.0, 0.5, 0.51, 0.9, 0.91, 1.0]),
                         [10, 10, 20, 20, 30, 30])

    def test_merged_is_everything_in_one(self):
        merged = Histogram.merged([Histogram([[1, 2], [3, 1]]), Histogram([[1, 1], [2, 5]])])
        self.assertEqual(merged.slots(), [(1, 3), (2, 5), (3, 1)])


class ComparedTest(unittest.TestCase):
    def test_interval_holds_the_true_ratio_and_is_narrow(self):
        draw = random.Random(3)
        floors = [block(draw, 100.0) for _ in range(20)]
        blocks = [block(draw, 150.0) for _ in range(20)]
        ratio, low, high = compared(blocks, floors, resamples=200)
        self.assertLessEqual(low, ratio)
        self.assertLessEqual(ratio, high)
        self.assertLess(low, 1.5)
        self.assertGreater(high, 1.5)
        self.assertLess(high - low, 0.05)

    def test_moods_of_the_machine_cancel_out_within_pairs(self):
        draw = random.Random(4)
        moods = [1.0 if pair % 2 else 5.0 for pair in range(20)]
        floors = [block(draw, 100.0 * mood) for mood in moods]
        blocks = [block(draw, 150.0 * mood) for mood in moods]
        _, low, high = compared(blocks, floors, q=0.99, resamples=200)
        self.assertLess(high - low, 0.3)

    def test_one_odd_pair_widens_the_interval(self):
        draw = random.Random(5)
        floors = [block(draw, 100.0) for _ in range(10)]
        blocks = [block(draw, 150.0) for _ in range(7)] + [block(draw, 400.0) for _ in range(3)]
        _, low, high = compared(blocks, floors, q=0.8, resamples=200)
        self.assertGreater(high - low, 1.0)

    def test_interval_holds_the_true_difference(self):
        draw = random.Random(6)
        floors = [block(draw, 100.0) for _ in range(20)]
        blocks = [block(draw, 130.0) for _ in range(20)]
        found, low, high = compared(blocks, floors, how=difference, resamples=200)
        self.assertLessEqual(low, found)
        self.assertLessEqual(found, high)
        self.assertLess(low, 30.0)
        self.assertGreater(high, 30.0)

    def test_a_share_is_of_the_sums_and_has_an_interval(self):
        draw = random.Random(8)
        blocks = [(draw.gauss(500.0, 50.0), 10) for _ in range(20)] + [(1000.0, 100)]
        value, low, high = share(blocks, resamples=200)
        self.assertAlmostEqual(value, sum(amount for amount, _ in blocks) / 300)
        self.assertLess(low, value)
        self.assertGreater(high, value)

    def test_moods_cancel_out_of_compared_shares(self):
        moods = [1.0 if pair % 2 else 5.0 for pair in range(20)]
        value, low, high = compared_shares([(150 * mood, 1) for mood in moods], [(100 * mood, 1) for mood in moods],
                                           resamples=200)
        self.assertAlmostEqual(value, 1.5)
        self.assertAlmostEqual(low, 1.5)
        self.assertAlmostEqual(high, 1.5)
        with self.assertRaises(ValueError):
            compared_shares([(1, 1)], [])

    def test_unpaired_blocks_are_refused(self):
        with self.assertRaises(ValueError):
            compared([Histogram([[1, 1]])], [])


if __name__ == "__main__":
    unittest.main()
