#!/usr/bin/env python3
"""Histories of other systems whose verdict is known.

Without --porcupine: those of the folder histories/, whose names end in .good.jsonl or .bad.jsonl.
With it: all histories of porcupine's test_data (github.com/anishathalye/porcupine, MIT licence; its
etcd logs come from github.com/ahorn/linearizability-checker), converted on the way. DIR is that
folder. With --convert the converted files are written to a folder too.
"""

import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Porcupine's own tests name these as linearizable; all others are not. 95 is empty: etcd had failed
# to start.
GOOD_ETCD = {2, 5, 7, 18, 25, 31, 38, 45, 48, 49, 51, 53, 56, 67, 75, 76, 80, 87, 92, 98, 100, 101,
             102}
ETCD_LINE = re.compile(r"INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(\w+)\s+:(\w+)\s+(.*)")
KV_LINE = re.compile(r'\{:process (\d+), :type :(\w+), :f :(\w+), :key "(.*?)", :value (nil|"(.*)")\}')


def etcd_events(text):
    """(process, type, operation, value) of each line."""
    for line in text.splitlines():
        match = ETCD_LINE.match(line)
        if match:
            yield int(match[1]), match[2], match[3], match[4]


def convert_etcd(text):
    """One register. A cas that failed found another value; what timed out may have happened."""
    operations, pending = [], {}
    for time, (process, kind, op, value) in enumerate(etcd_events(text)):
        if kind == "invoke":
            operation = {"client": process, "op": {"read": "get", "write": "put"}.get(op, op), "key": 0}
            if op == "cas":
                expect, new = value.strip("[]").split()
                operation.update(expect=int(expect), value=int(new))
            elif op == "write":
                operation["value"] = int(value)
            operation.update(start=time, end=None)
            operations.append(operation)
            pending[process] = operation
            continue
        if value == ":timed-out":
            pending.pop(process)
            continue
        operation = pending.pop(process)
        operation["end"] = time
        if op == "read":
            operation["value"] = None if value == "nil" else int(value)
        elif op == "cas":
            operation["ok"] = kind == "ok"
    return operations


def convert_kv(text):
    """Keys with strings; what was never written reads as an empty one."""
    operations, pending = [], {}
    for time, line in enumerate(text.splitlines()):
        process, kind, op, key, quoted, value = KV_LINE.match(line).groups()
        if kind == "invoke":
            operation = {"client": int(process), "op": op, "key": key}
            if quoted != "nil":
                operation["value"] = value
            operation.update(start=time, end=None)
            operations.append(operation)
            pending[process] = operation
            continue
        operation = pending.pop(process)
        operation["end"] = time
        if op == "get":
            operation["value"] = value or None
    return operations


def porcupine(folder):
    """(name, whether it is linearizable, lines) of each history."""
    for number in range(103):
        name = f"etcd_{number:03}"
        with open(os.path.join(folder, "jepsen", name + ".log"), encoding="utf-8") as file:
            operations = convert_etcd(file.read())
        if operations:
            yield name, number in GOOD_ETCD, lines_of(operations)
    for clients in ("c01", "c10", "c50"):
        for verdict in ("ok", "bad"):
            path = os.path.join(folder, "kv", f"{clients}-{verdict}.txt")
            with open(path, encoding="utf-8") as file:
                yield f"kv_{clients}_{verdict}", verdict == "ok", lines_of(convert_kv(file.read()))


def lines_of(operations):
    return "".join(json.dumps(operation, separators=(",", ":")) + "\n" for operation in operations)


def committed(folder):
    for name in sorted(os.listdir(folder)):
        match = re.fullmatch(r"(.*)\.(good|bad)\.jsonl", name)
        if match:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                yield match[1], match[2] == "good", file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", required=True, help="the leasehold_check program")
    parser.add_argument("--porcupine", metavar="DIR", help="porcupine's folder test_data")
    parser.add_argument("--convert", metavar="DIR", help="where to write what was converted")
    options = parser.parse_args()
    if options.porcupine and not os.path.isdir(os.path.join(options.porcupine, "jepsen")):
        parser.error(f"{options.porcupine} has no folder jepsen: name porcupine's folder test_data")
    histories = list(porcupine(options.porcupine) if options.porcupine else
                     committed(os.path.join(HERE, "histories")))
    wrong = 0
    good = 0
    for name, linearizable, lines in histories:
        if options.convert:
            file_name = f"{name}.{'good' if linearizable else 'bad'}.jsonl"
            with open(os.path.join(options.convert, file_name), "w", encoding="utf-8") as file:
                file.write(lines)
        for arguments in ([], ["--search"]):
            run = subprocess.run([options.binary, "--quiet", "-", *arguments], input=lines, text=True,
                                 capture_output=True, timeout=300, check=False)
            if run.returncode != (0 if linearizable else 1):
                wrong += 1
                print(f"{name} {' '.join(arguments)}: {'' if linearizable else 'not '}linearizable, "
                      f"says who made it; the checker: {run.stdout}{run.stderr}")
        good += linearizable
    print(f"{len(histories)} histories, {good} linearizable, {wrong} wrong verdicts")
    return 1 if wrong or not histories else 0


if __name__ == "__main__":
    sys.exit(main())
