#!/usr/bin/env python3
"""Writes the tables of docs/performance.md from results/*.json. Each stands between two comments there:

  <!-- results performance: Goals --> ... <!-- end -->

  page.py            writes them
  page.py --check    only looks whether they are as the files say: a test does that
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import results  # noqa: E402  pylint: disable=wrong-import-position

PAGE = ROOT / "docs" / "performance.md"
PLACE = re.compile(r"(<!-- results (\w+): ([^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def cell(value):
    return results.text_of(value).replace("|", "\\|")


def table(name, title):
    path = ROOT / "results" / f"{name}.json"
    found = results.read(str(path))
    rows = next((each["rows"] for each in found["tables"] if each["title"] == title), None)
    if rows is None:
        sys.exit(f"{path}: has no table '{title}'")
    # A column in which no row has anything says nothing.
    columns = [column for column in rows[0] if any(row.get(column) is not None for row in rows)]
    lines = [f"From `{found['command']}`, {found['date']}. " + " ".join(f"{note[0].upper()}{note[1:]}."
                                                                      for note in found["notes"]), "",
             "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    before = PAGE.read_text(encoding="utf-8")
    count = len(PLACE.findall(before))
    if count == 0 or count != before.count("<!-- results"):
        sys.exit(f"{PAGE}: a place for results has no end, or there is none")
    after = PLACE.sub(lambda place: f"{place[1]}{table(place[2], place[3])}\n{place[4]}", before)
    if after == before:
        print(f"{count} tables are as the results say")
    elif check:
        sys.exit(f"{PAGE} is not what the results say: run bench/page.py")
    else:
        PAGE.write_text(after, encoding="utf-8")
        print(f"{PAGE}: {count} tables")


if __name__ == "__main__":
    main()
