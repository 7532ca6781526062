#!/usr/bin/env python3
"""Keeps what `leasehold bench compare --json FILE` found, for docs/comparison.md.

  leasehold bench compare --json compare.json
  bench/compared.py compare.json && bench/page.py
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import results  # noqa: E402  pylint: disable=wrong-import-position

FORMAT = 1


def rounded(value):
    return round(value, 1) if value < 1000 else round(value)


def figures(found, names):
    """One row for each load and system."""
    rows = []
    for one in found["findings"]["figures"]:
        if names[one["case"]]["curve"]:
            continue
        row = {"load": names[one["case"]]["name"], "at": names[one["target"]]["name"]}
        if one["standing"] == 0:
            row["p50 us"] = "thrown away"
        else:
            row |= {"p50 us": rounded(one["p50_ns"] / 1000), "p99 us": rounded(one["p99_ns"] / 1000),
                    "a second": round(one["rate"]["value"]), "CPU us": rounded(one["server_cpu_us"]["value"])}
        rows.append(row)
    return rows


def ratios(found, names):
    """Leasehold's over the other's, one row for each load and other system."""
    rows = {}
    for one in found["findings"]["ratios"]:
        row = rows.setdefault((one["case"], one["target"]), {
            "load": names[one["case"]]["name"], "Leasehold /": names[one["target"]]["name"]})
        at = one["ratio"]
        row[one["measure"]] = ("thrown away" if one["thrown_away"] else
                               f"{at['value']:.2f} [{at['low']:.2f}, {at['high']:.2f}]")
    columns = [name for name in ("p50", "p99", "rate", "CPU") if any(name in row for row in rows.values())]
    return [{"load": row["load"], "Leasehold /": row["Leasehold /"]} | {name: row.get(name) for name in columns}
            for row in rows.values()]


def notes(found):
    machine, options = found["machine"], found["options"]
    cores = f"{machine['cores']} cores ({machine['processor']}), {machine['kernel']}"
    told = [f"{cores}; all servers, their client and one disk here; values of {options['value_bytes']} bytes; "
            f"processor time stolen: {100 * machine['stolen_share']:.1f} %",
            "versions: " + ", ".join(found["versions"]),
            f"{options['sweeps']} sweeps of blocks of {options['block_s']:g} s; 95 % intervals"]
    return told + found["left_out"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path, help="what the comparison has written")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "results" / "compare.json")
    options = parser.parse_args()
    try:
        found = json.loads(options.file.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            sys.exit(f"{options.file}: a comparison of format {found['format']}, and this reads {FORMAT}")
        if found["smoke"]:
            sys.exit(f"{options.file}: a run with --smoke shows that it works, and holds no figures")
        plan = found["plan"]
        names = {one["id"]: one for one in plan["targets"] + plan["cases"]}
        command = "leasehold bench compare --json compare.json && bench/compared.py compare.json"
        results.write(str(options.results), "Leasehold beside etcd and Redis", found["started"][:10], command,
                      notes(found), [("Ratios", ratios(found, names)), ("Figures", figures(found, names))])
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{options.file} is not what `leasehold bench compare --json` writes: {error!r}")


if __name__ == "__main__":
    main()
