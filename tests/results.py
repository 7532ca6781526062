#!/usr/bin/env python3
"""Prints the newest results of the long tests, which are kept in results/ as JSON.

  results.py                all of them
  results.py mutants fuzz   results/mutants.json and results/fuzz.json
  results.py --list         which there are
  results.py --check        only read all of them: a test does that

A file has `what`, `date`, `command` (which makes it again), `notes` and `tables`. A table has a `title` and `rows`; a
row is an object whose members are the columns. The scripts that measure write it with write() below.
"""

import json
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "results")
MEMBERS = {"what": str, "date": str, "command": str, "notes": list, "tables": list}


def write(path, what, date, command, notes, tables):
    """`tables`: [(title, [{column: value}])]. Replaces the file as a whole; one row is one line."""
    lines = ["{"]
    for name, value in (("what", what), ("date", date), ("command", command)):
        lines.append(f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)},")
    lines.append(' "notes": [')
    lines += [",\n".join("  " + json.dumps(note, ensure_ascii=False) for note in notes), " ],", ' "tables": [']
    parts = []
    for title, rows in tables:
        body = ",\n".join("   " + json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(f'  {{"title": {json.dumps(title, ensure_ascii=False)}, "rows": [\n{body}\n  ]}}')
    lines += [",\n".join(parts), " ]", "}"]
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write("\n".join(line for line in lines if line) + "\n")
    os.replace(path + ".part", path)


def read(path):
    """The file's content. Exits with the reason if it is not as it should be."""
    with open(path, encoding="utf-8") as file:
        try:
            result = json.load(file)
        except ValueError as error:
            sys.exit(f"{path}: {error}")
    for name, kind in MEMBERS.items():
        if not isinstance(result.get(name), kind):
            sys.exit(f"{path}: `{name}` is missing, or is no {kind.__name__}")
    for table in result["tables"]:
        if not isinstance(table.get("title"), str) or not table.get("rows"):
            sys.exit(f"{path}: a table needs a title and rows")
        if not all(isinstance(row, dict) for row in table["rows"]):
            sys.exit(f"{path}: {table['title']}: a row is an object")
    return result


def text_of(value):
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def table_of(rows):
    """The rows as an aligned table; numbers stand to the right."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[text_of(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(line[at]) for line in [columns, *cells]) for at in range(len(columns))]
    right = [all(row.get(name) is None or isinstance(row.get(name), (int, float)) for row in rows) for name in columns]

    def line(texts):
        return "  ".join(text.rjust(width) if numbers else text.ljust(width)
                         for text, width, numbers in zip(texts, widths, right)).rstrip()
    return "\n".join([line(columns), line(["-" * width for width in widths]), *map(line, cells)])


def show(name, result):
    print(f"== {name}: {result['what']} ({result['date']})\nagain: {result['command']}")
    for note in result["notes"]:
        print(f"- {note}")
    for table in result["tables"]:
        print(f"\n{table['title']}\n\n{table_of(table['rows'])}")
    print()


def main(arguments):
    known = sorted(name[:-len(".json")] for name in os.listdir(FOLDER) if name.endswith(".json"))
    if not known:
        sys.exit(f"{FOLDER} has no results")
    if arguments == ["--list"]:
        print("\n".join(known))
        return 0
    for name in arguments:
        if name != "--check" and name not in known:
            sys.exit(f"there are no results of `{name}`; there are: {', '.join(known)}")
    wanted = known if arguments in ([], ["--check"]) else arguments
    for name in wanted:
        result = read(os.path.join(FOLDER, name + ".json"))
        if arguments == ["--check"]:
            print(f"{name}: {sum(len(table['rows']) for table in result['tables'])} rows, of {result['date']}")
        else:
            show(name, result)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
