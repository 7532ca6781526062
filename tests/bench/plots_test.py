"""Tests of bench/plots.py, and of how bench/growth.py and it name what is drawn."""

import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import growth  # noqa: E402
import plots  # noqa: E402

NAME = "growth-values"
TABLE, X_NAME, _, _, COLUMNS = plots.PLOTS[NAME]
ROWS = [{X_NAME: 64, COLUMNS[0]: 16.5, COLUMNS[1]: 400}, {X_NAME: 1024, COLUMNS[0]: 17, COLUMNS[1]: None},
        {X_NAME: 1 << 20, COLUMNS[0]: 600, COLUMNS[1]: 5000}]
SVG = "{http://www.w3.org/2000/svg}"


class PlotsTest(unittest.TestCase):
    def setUp(self):
        self.root = xml.etree.ElementTree.fromstring(plots.drawing(NAME, ROWS))

    def texts(self):
        return ["".join(text.itertext()) for text in self.root.iter(SVG + "text")]

    def test_it_has_a_title_axes_and_a_legend(self):
        for text in (plots.TITLES[NAME], *plots.PLOTS[NAME][2:4], COLUMNS[0], COLUMNS[1], "64 B", "1 KiB", "1 MiB"):
            self.assertIn(text, self.texts())
        self.assertNotIn(COLUMNS[2], self.texts(), "a line without points has no place in the legend")

    def test_each_point_is_in_the_frame_and_larger_ones_are_higher(self):
        lines = [[tuple(map(float, point.split(","))) for point in line.get("points").split()]
                 for line in self.root.iter(SVG + "polyline")]
        self.assertEqual([len(line) for line in lines], [3, 2], "what was not measured is left out")
        for x, y in sum(lines, []):
            self.assertTrue(plots.LEFT <= x <= plots.WIDTH - plots.RIGHT, x)
            self.assertTrue(plots.TOP <= y <= plots.HEIGHT - plots.BOTTOM, y)
        (low_x, low_y), (_, mid_y), (high_x, high_y) = lines[0]
        self.assertLess(low_x, high_x)
        self.assertGreater(low_y, mid_y)
        self.assertGreater(mid_y, high_y)

    def test_one_file_is_for_light_and_dark_pages(self):
        style = "".join(self.root.find(SVG + "style").itertext())
        light, dark = style.split("@media (prefers-color-scheme:dark)")
        self.assertEqual(re.findall(r"\.(\w+)\{", light.split("}", 3)[3]), re.findall(r"\.(\w+)\{", dark))

    def test_marks_cover_what_is_drawn(self):
        self.assertEqual(plots.steps(16, 600), [10, 20, 50, 100, 200, 500, 1000])
        self.assertEqual(plots.steps(3, 3), [2, 5])
        self.assertEqual(plots.steps(5, 5), [2, 5, 10])
        self.assertEqual(plots.steps(1, 90_000), [1, 10, 100, 1000, 10_000, 100_000])

    def test_every_curve_has_a_plot(self):
        self.assertEqual(sorted(growth.TITLES.values()), sorted(plot[0] for plot in plots.PLOTS.values()))
        self.assertEqual(list(growth.CURVES), list(growth.POINTS))
        self.assertEqual(list(growth.CURVES), list(growth.QUICK))
        source = pathlib.Path(growth.__file__).read_text(encoding="utf-8")
        for _, x_name, _, _, columns in plots.PLOTS.values():
            self.assertIn(f'"{x_name}": ', source)
            for column in columns:
                self.assertIn(re.sub("^(leader|follower),", "{who},", column), source)


if __name__ == "__main__":
    unittest.main()
