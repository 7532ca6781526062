#!/usr/bin/env python3
"""Builds the fuzzers with clang, under the address and undefined-behaviour sanitizers, and runs them.

  run.py                        each fuzzer for a minute
  run.py NAME... --minutes 60   these ones, for so many minutes of one core each
  run.py --list                 their names, and what each takes

A fuzzer begins with its seeds (seeds/NAME, docs/scenarios) and with what earlier runs found (--corpus DIR, kept from
run to run). What is printed of each: executions, edges of the code that were reached, and how long before the end the
last new one was. Two run at a time, unless --jobs says otherwise. Ctrl-C ends all of them, and prints what was seen so
far.

Status 0: no crash, no hang (an input that takes more than 10 s), no allocation beyond 1 GiB. Else the input is in
CORPUS/NAME.found/, and a line tells how to repeat it. What a fuzzer finds becomes one of its seeds."""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
INPUT_SECONDS_MAX = 10
MEMORY_MEBIBYTES_MAX = 1024
# Longer inputs are slower and find nothing more.
INPUT_BYTES_MAX = 4096
SEEDS = {name: os.path.join(HERE, "seeds", name) for name in os.listdir(os.path.join(HERE, "seeds"))}
# The longest have 10 KiB, of which less than the first half is taken.
SEEDS["scenarios"] = os.path.join(TREE, "docs", "scenarios")
PROGRESS_SECONDS = 60


def fuzzers():
    """{name: what it takes}: the first sentence at the head of its source."""
    found = {}
    for name in sorted(SEEDS):
        head = []
        with open(os.path.join(HERE, name + ".cc"), encoding="utf-8") as source:
            for line in source:
                if not line.startswith("//"):
                    break
                head.append(line[2:].strip())
        found[name] = " ".join(head).split(". ")[0].rstrip(".")
    return found


def build(folder, names, jobs):
    configure = ["cmake", "-S", TREE, "-B", folder, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=clang++",
                 "-DLEASEHOLD_FUZZ=ON", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                 "-DLEASEHOLD_SANITIZE=fuzzer-no-link,address,undefined"]
    for command in (configure, ["ninja", "-C", folder, f"-j{jobs}", *[f"fuzz_{name}" for name in names]]):
        print("building: " + " ".join(command), flush=True)
        done = subprocess.run(command, text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


class Run:
    """One fuzzer under way."""

    def __init__(self, name, program, corpus, seconds):
        self.name = name
        self._corpus = os.path.join(corpus, name)
        self._found = os.path.join(corpus, name + ".found")
        for folder in (self._corpus, self._found):
            os.makedirs(folder, exist_ok=True)
        self._program = program
        self._seconds = seconds
        self._process = None
        self.edges = self.executions = 0
        self.begun = self.newest = self.ended = None
        self.fault = None

    def run(self):
        """Until its time is over or it has found a fault."""
        # Each process of libFuzzer ends at its first leak or crash. Only signs of new edges and sums are printed.
        command = [self._program, f"-max_total_time={self._seconds}", f"-timeout={INPUT_SECONDS_MAX}",
                   f"-rss_limit_mb={MEMORY_MEBIBYTES_MAX}", f"-max_len={INPUT_BYTES_MAX}",
                   f"-artifact_prefix={self._found}/", "-print_final_stats=1",
                   self._corpus, SEEDS[self.name]]
        self.begun = self.newest = time.monotonic()
        self._process = subprocess.Popen(command, text=True, errors="replace", stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE)
        last = []
        for line in self._process.stderr:
            self._read(line)
            last = [*last[-40:], line]
        self.ended = time.monotonic()
        if self._process.wait() not in (0, -signal.SIGINT):
            self.fault = "".join(last)

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def _read(self, line):
        state = re.match(r"#(\d+)\t\w+\s+cov: (\d+)", line)
        if state:
            self.executions = int(state.group(1))
            if int(state.group(2)) > self.edges:
                self.edges = int(state.group(2))
                self.newest = time.monotonic()
        total = re.match(r"stat::number_of_executed_units:\s*(\d+)", line)
        if total:
            self.executions = int(total.group(1))

    def line(self):
        if self.begun is None:
            return f"{self.name:10} not begun"
        now = self.ended or time.monotonic()
        state = "a fault" if self.fault else "ended" if self.ended else "runs"
        return (f"{self.name:10} {state:8} {(now - self.begun) / 60:6.1f} min  {self.executions / 1e6:8.1f} million "
                f"executions  {self.edges:6} edges, the newest {(now - self.newest) / 60:.1f} min ago")


def run_all(runs, jobs):
    waiting = list(runs)
    lock = threading.Lock()
    stopped = threading.Event()

    def work():
        while not stopped.is_set():
            with lock:
                if not waiting:
                    return
                run = waiting.pop(0)
            run.run()
            print(run.line(), flush=True)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    shown = time.monotonic()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
            if time.monotonic() - shown >= PROGRESS_SECONDS:
                shown = time.monotonic()
                for run in runs:
                    if run.begun is not None and run.ended is None:
                        print(run.line(), flush=True)
    except KeyboardInterrupt:
        stopped.set()
        for run in runs:
            run.stop()
    for thread in threads:
        thread.join()
    return not stopped.is_set()


def main():
    known = fuzzers()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--minutes", type=float, default=1.0, help="for each (default 1)")
    parser.add_argument("--jobs", type=int, default=2, help="fuzzers at a time, and jobs of the build (default 2)")
    parser.add_argument("--build", default=os.path.join(TREE, "build", "fuzz"), help="the folder to build in")
    parser.add_argument("--corpus", help="what was found before, and will be (default: BUILD/corpus)")
    parser.add_argument("--list", action="store_true", help="only tell what there is")
    options = parser.parse_args()
    if options.list:
        for name, what in known.items():
            print(f"{name:10} {what}")
        return 0
    for name in options.names:
        if name not in known:
            parser.error(f"no fuzzer '{name}'; there are {', '.join(known)}")
    if options.minutes <= 0 or options.jobs < 1:
        parser.error("--minutes and --jobs are above 0")
    names = options.names or list(known)
    corpus = options.corpus or os.path.join(options.build, "corpus")
    build(options.build, names, options.jobs)
    runs = [Run(name, os.path.join(options.build, "tests", "fuzz", "fuzz_" + name), corpus,
                max(1, round(options.minutes * 60))) for name in names]
    whole = run_all(runs, options.jobs)
    print()
    for run in runs:
        print(run.line())
    for run in runs:
        if run.fault:
            print(f"\n{run.name} found a fault. Again: {run._program} {os.path.join(corpus, run.name)}.found/FILE\n"
                  f"{run.fault}", file=sys.stderr)
    return 0 if whole and not any(run.fault for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
