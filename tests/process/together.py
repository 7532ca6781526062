#!/usr/bin/env python3
"""Runs other tests of this folder at once: those that mostly wait, and disturb each other little.

  together.py --tests A,B,... OPTIONS    A.py, B.py and so on, each with these options

Shows what each printed, one after the other. Status 1: one failed.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--tests", required=True, type=lambda names: names.split(","))
    options, others = parser.parse_known_args()
    # A time limit of CTest ends this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    begin = time.monotonic()
    running = [(name, subprocess.Popen([sys.executable, "-B", os.path.join(HERE, name + ".py"), *others], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)) for name in options.tests]
    failed = []
    try:
        for name, process in running:
            output = process.communicate()[0]
            seconds = time.monotonic() - begin
            print(f"== {name}: status {process.returncode} within {seconds:.1f} s\n{output}", flush=True)
            if process.returncode != 0:
                failed.append(name)
    finally:
        for _, process in running:
            process.terminate()  # those that still run end their nodes
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
