#!/usr/bin/env python3
"""Writes the tables of docs/performance.md and docs/comparison.md from results/*.json. Each stands between two comments
there:

  <!-- results performance: Goals --> ... <!-- end -->

It also draws the plots in docs/plots from results/growth.json (plots.py).

  page.py            writes them
  page.py --check    only looks whether they are as the files say: a test does that
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import plots  # noqa: E402  pylint: disable=wrong-import-position
import results  # noqa: E402  pylint: disable=wrong-import-position

PAGES = [ROOT / "docs" / "performance.md", ROOT / "docs" / "comparison.md"]
PLOTS = ROOT / "docs" / "plots"
GROWTH = ROOT / "results" / "growth.json"
PLACE = re.compile(r"(<!-- results (\w+): ([^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def cell(value):
    return results.text_of(value).replace("|", "\\|")


def place(name, title):
    return curves() if (name, title) == ("growth", "Curves") else table(name, title)


def table(name, title):
    path = ROOT / "results" / f"{name}.json"
    found = results.read(str(path))
    rows = next((each["rows"] for each in found["tables"] if each["title"] == title), None)
    if rows is None:
        sys.exit(f"{path}: has no table '{title}'")
    # A column in which no row has anything says nothing.
    columns = [column for column in rows[0] if any(row.get(column) is not None for row in rows)]
    lines = [head(found), "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def growth():
    """What results/growth.json has; None: it was not measured yet."""
    return results.read(str(GROWTH)) if GROWTH.exists() else None


def head(found):
    return (f"From `{found['command']}`, {found['date']}. "
            + " ".join(f"{note[0].upper()}{note[1:]}." for note in found["notes"]))


def curves():
    """The plots, for the page."""
    found = growth()
    if found is None:
        return "Not measured yet: `bench/growth.py --results results/growth.json`, then `bench/page.py`."
    return "\n\n".join([head(found), *(f"![{plots.TITLES[name]}](plots/{name}.svg)" for name in plots.drawings(found))])


def draw(check):
    """Writes the files of the plots. Exits if --check finds one that is not as the results say."""
    found = growth()
    drawings = plots.drawings(found) if found else {}
    for name, svg in drawings.items():
        path = PLOTS / f"{name}.svg"
        if path.exists() and path.read_text(encoding="utf-8") == svg:
            continue
        if check:
            sys.exit(f"{path} is not what the results say: run bench/page.py")
        path.write_text(svg, encoding="utf-8")
        print(path)
    print(f"{len(drawings)} plots are as the results say")


def fill(page, check):
    """Writes the tables of a page. Exits if --check finds one that is not as the results say."""
    before = page.read_text(encoding="utf-8")
    count = len(PLACE.findall(before))
    if count == 0 or count != before.count("<!-- results"):
        sys.exit(f"{page}: a place for results has no end, or there is none")
    after = PLACE.sub(lambda at: f"{at[1]}{place(at[2], at[3])}\n{at[4]}", before)
    if after == before:
        print(f"{page}: {count} tables are as the results say")
    elif check:
        sys.exit(f"{page} is not what the results say: run bench/page.py")
    else:
        page.write_text(after, encoding="utf-8")
        print(f"{page}: {count} tables")


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    for page in PAGES:
        fill(page, check)
    draw(check)


if __name__ == "__main__":
    main()
