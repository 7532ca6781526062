#!/usr/bin/env python3
"""Builds the fuzzers with clang, under the address and undefined-behaviour sanitizers, and runs them.

  run.py                        each fuzzer for a minute
  run.py NAME... --minutes 60   these ones, for so many minutes of one core each
  run.py NAME... --fast         without the sanitizers: two to ten times as many executions
  run.py NAME... --keep         and then writes what reaches every edge so far to corpora/NAME.tar.xz
  run.py --list                 their names, and what each takes

A fuzzer begins with its seeds (seeds/NAME, docs/scenarios), with what was kept (corpora/NAME.tar.xz), and with what
earlier runs on this machine found (--corpus DIR, which grows from run to run). Two run at a time, unless --jobs says
otherwise. Ctrl-C ends all of them; what they found stays.

At the end a table tells of each: minutes of a core, executions, how many a second, edges of the code that were reached,
and seconds since the newest of them. All times are those that a core worked for it, so that a busy machine changes
nothing. Runs of the same build with the same corpus are added up: an hour may be had in pieces.

With --fast only assertions, crashes, hangs and the bound of the memory are looked for, in a build and with sums of its
own. The corpus is one: what a fast run found is run under the sanitizers at the beginning of the next run with them.

Status 0: no crash, no hang (an input that takes more than 10 s), no allocation beyond 1 GiB. Else the input is in
CORPUS/NAME.found/, and a line tells how to repeat it. What a fuzzer finds becomes one of its seeds."""

import argparse
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
import results  # noqa: E402  pylint: disable=wrong-import-position
INPUT_SECONDS_MAX = 10
MEMORY_MEBIBYTES_MAX = 1024
# Longer inputs are slower and find nothing more.
INPUT_BYTES_MAX = {"client": 448, "handshakes": 1024, "log": 768, "scenarios": 768}
INPUT_BYTES_MAX_ELSEWHERE = 4096
# What is freed is kept from reuse for longer than an input lasts, but not for thousands of inputs; where it was
# allocated is told when a fault is repeated without these options.
ASAN_OPTIONS = "quarantine_size_mb=4:thread_local_quarantine_size_kb=256:malloc_context_size=1"
# Nobody else writes to the corpus. The search for rare features takes a third of the time of a quick fuzzer, and found
# fewer edges in the same time.
OPTIONS = ["-reload=0", "-entropic=0"]
# How libFuzzer ends when it is told to.
INTERRUPTED = 72
TICKS = os.sysconf("SC_CLK_TCK")
SEEDS = {name: os.path.join(HERE, "seeds", name) for name in os.listdir(os.path.join(HERE, "seeds"))}
SEEDS["scenarios"] = os.path.join(TREE, "docs", "scenarios")
KEPT = os.path.join(HERE, "corpora")
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


def build(folder, names, jobs, fast):
    ignored = os.path.join(HERE, "ignored.txt")
    # To look at the operands of each comparison is half the time of what has no sanitizer.
    flags = "-fno-sanitize-coverage=trace-cmp" if fast else ""
    sanitizers = "fuzzer-no-link" if fast else "fuzzer-no-link,address,undefined"
    # What grows where it is inlined stays a function. Otherwise each place that makes a string of a number has the
    # edges of the library's conversion, which ignored.txt leaves out, once more: half of all edges. Nor are the turns
    # of a loop edges of their own.
    flags += " -mllvm -inline-threshold=0 -fno-unroll-loops"
    configure = ["cmake", "-S", TREE, "-B", folder, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=clang++",
                 "-DLEASEHOLD_FUZZ=ON", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DLEASEHOLD_SANITIZE={sanitizers}",
                 f"-DCMAKE_CXX_FLAGS={flags} -fsanitize-coverage-ignorelist={ignored}",
                 "-DCMAKE_EXE_LINKER_FLAGS=-Wno-unused-command-line-argument"]
    for command in (configure, ["ninja", "-C", folder, f"-j{jobs}", *[f"fuzz_{name}" for name in names]]):
        print("building: " + " ".join(command), flush=True)
        done = subprocess.run(command, text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def seeds(name, corpus):
    """The folder of what a fuzzer begins with. The files of scenarios have up to 10 KiB, of which only the beginning
    would be taken: a title, a source and their commands are enough, and were worth 150 edges in half a minute."""
    if name != "scenarios":
        return SEEDS[name]
    folder = os.path.join(corpus, name + ".seeds")
    os.makedirs(folder, exist_ok=True)
    for file in os.listdir(SEEDS[name]):
        with open(os.path.join(SEEDS[name], file), encoding="utf-8") as whole:
            commands = [line for line in whole if line.startswith("> ")]
        with open(os.path.join(folder, file), "w", encoding="utf-8") as seed:
            seed.writelines(["# a\n", "Source: a\n", *commands])
    return folder


def archive(name):
    return os.path.join(KEPT, name + ".tar.xz")


def unpacked(name, corpus):
    """The folder of what was kept."""
    folder = os.path.join(corpus, name + ".kept")
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(archive(name)):
        with tarfile.open(archive(name)) as tar:
            for member in tar:
                with open(os.path.join(folder, os.path.basename(member.name)), "wb") as file:
                    file.write(tar.extractfile(member).read())
    return folder


def pack(name, folder):
    """The same inputs give the same archive."""
    os.makedirs(KEPT, exist_ok=True)
    inputs = []
    for file in os.listdir(folder):
        with open(os.path.join(folder, file), "rb") as content:
            inputs.append(content.read())
    # What resembles one another stands together, and takes half the space.
    with tarfile.open(archive(name), "w:xz", preset=9) as tar:
        for content in sorted(inputs):
            member = tarfile.TarInfo(f"{name}/{hashlib.sha256(content).hexdigest()[:16]}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    print(f"{archive(name)}: {len(inputs):,} inputs, {os.path.getsize(archive(name)):,} bytes", flush=True)


class Run:
    """One fuzzer under way."""

    def __init__(self, name, program, corpus, seconds, fast):
        self.name = name
        self._label = name + (", fast" if fast else "")
        self._seeds = seeds(name, corpus)
        self._corpus = os.path.join(corpus, name)
        self._kept = unpacked(name, corpus)
        self._found = os.path.join(corpus, name + ".found")
        self._sums = os.path.join(corpus, name + (".fast" if fast else "") + ".sums")
        for folder in (self._corpus, self._found):
            os.makedirs(folder, exist_ok=True)
        self._program = program
        self._seconds = seconds
        self._process = None
        self._started = False  # all that is known has been taken; what comes now is new
        self._executions = self._edges = 0
        # Seconds of a core that this run had, and at which of them its newest edge came.
        self._had = self._newest = 0.0
        self.ended = False
        self.fault = None
        with open(program, "rb") as file:
            self._build = hashlib.sha256(file.read()).hexdigest()
        # Of the runs before, with the same build.
        self._before = {"executions": 0, "seconds": 0.0, "edges": 0, "quiet": 0.0}
        if os.path.exists(self._sums):
            with open(self._sums, encoding="utf-8") as file:
                sums = json.load(file)
            if sums.pop("build") == self._build:
                self._before = sums
                self._newest = -sums["quiet"]

    def run(self):
        """Until its time is over or it has found a fault."""
        # Each process of libFuzzer ends at its first leak or crash. Only signs of new edges and sums are printed. It
        # is ended by look(), and by itself only if nobody looks any more.
        command = [self._program, f"-max_total_time={10 * self._seconds + 60}", f"-timeout={INPUT_SECONDS_MAX}",
                   *self._limits(), f"-artifact_prefix={self._found}/", "-print_final_stats=1", *OPTIONS,
                   self._corpus, self._seeds, self._kept]
        options = ":".join(filter(None, [ASAN_OPTIONS, os.environ.get("ASAN_OPTIONS")]))
        self._process = subprocess.Popen(command, text=True, errors="replace", stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, env={**os.environ, "ASAN_OPTIONS": options})
        last = []
        for line in self._process.stderr:
            self._read(line)
            last = [*last[-40:], line]
        self.look()
        if self._process.wait() not in (0, INTERRUPTED, -signal.SIGINT):
            self.fault = "".join(last)
        self.ended = True
        with open(self._sums, "w", encoding="utf-8") as file:
            json.dump({"build": self._build, **self._all()}, file)

    def _limits(self):
        return [f"-rss_limit_mb={MEMORY_MEBIBYTES_MAX}",
                f"-max_len={INPUT_BYTES_MAX.get(self.name, INPUT_BYTES_MAX_ELSEWHERE)}"]

    def keep(self):
        """Packs a few inputs that reach all edges. How often they reach each would take five times the space."""
        with tempfile.TemporaryDirectory() as folder:
            merge = [self._program, "-merge=1", "-use_counters=0", *self._limits(), folder, self._seeds, self._kept,
                     self._corpus]
            done = subprocess.run(merge, text=True, errors="replace", capture_output=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(merge)} failed:\n{done.stderr[-4000:]}")
            pack(self.name, folder)

    def look(self):
        """Takes the time; ends the process when it has had all of it."""
        if self._process is None or self._process.returncode is not None:
            return
        try:
            with open(f"/proc/{self._process.pid}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return
        self._had = (int(fields[11]) + int(fields[12])) / TICKS
        if self._had >= self._seconds:
            self.stop()

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def _read(self, line):
        state = re.match(r"#(\d+)\t(\w+)\s+cov: (\d+)", line)
        if state:
            self._executions = int(state.group(1))
            edges = int(state.group(3))
            if edges > max(self._edges, 0 if self._started else self._before["edges"]):
                self.look()
                self._newest = self._had
            self._edges = max(self._edges, edges)
            self._started = self._started or state.group(2) == "INITED"
        total = re.match(r"stat::number_of_executed_units:\s*(\d+)", line)
        if total:
            self._executions = int(total.group(1))

    def _all(self):
        """Of this run and of those before it."""
        return {"executions": self._before["executions"] + self._executions,
                "seconds": self._before["seconds"] + self._had,
                "edges": max(self._before["edges"], self._edges), "quiet": self._had - self._newest}

    def row(self):
        """Of the table."""
        sums = self._all()
        return [self._label, f"{sums['seconds'] / 60:.1f}", f"{sums['executions'] / 1e6:.1f} million",
                f"{sums['executions'] / max(sums['seconds'], 0.01):,.0f}", f"{sums['edges']:,}",
                f"{sums['quiet']:,.0f}", *(["a fault"] if self.fault else [])]

    def columns(self):
        """Of the results."""
        sums = self._all()
        return {"minutes": round(sums["seconds"] / 60, 1), "executions": f"{sums['executions'] / 1e6:.1f} million",
                "edges": sums["edges"], "newest, s": round(sums["quiet"])}

    def begun(self):
        return self._process is not None


HEAD = ["fuzzer", "minutes", "executions", "a second", "edges", "seconds since the newest"]


def line(cells):
    return "| " + " | ".join(cells) + " |"


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
            print(line(run.row()), flush=True)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    shown = time.monotonic()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
            for run in runs:
                run.look()
            if time.monotonic() - shown >= PROGRESS_SECONDS:
                shown = time.monotonic()
                for run in runs:
                    if run.begun() and not run.ended:
                        print(line(run.row()), flush=True)
    except KeyboardInterrupt:
        stopped.set()
        for run in runs:
            run.stop()
    for thread in threads:
        thread.join()
    return not stopped.is_set()


def write_results(path, runs, fast):
    """Replaces what `path` has of these fuzzers in this kind of build, and leaves the rest."""
    old = results.read(path) if os.path.exists(path) else {"notes": [], "tables": []}
    rows = {row["fuzzer"]: row for table in old["tables"] for row in table["rows"]}
    for run in runs:
        columns = {("fast: " if fast else "") + name: value for name, value in run.columns().items()}
        rows.setdefault(run.name, {"fuzzer": run.name}).update(columns)
    results.write(path, "how far each fuzzer has come, over several builds", time.strftime("%Y-%m-%d"),
                  "python3 tests/fuzz/run.py --minutes 60 --results results/fuzz.json", old["notes"],
                  [("Fuzzers", [rows[name] for name in sorted(rows)])])


def main():
    known = fuzzers()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--minutes", type=float, default=1.0, help="for each (default 1)")
    parser.add_argument("--jobs", type=int, default=2, help="fuzzers at a time, and jobs of the build (default 2)")
    parser.add_argument("--fast", action="store_true", help="without the address and undefined-behaviour sanitizers")
    parser.add_argument("--keep", action="store_true", help="keep what was found in the source tree")
    parser.add_argument("--build", help="the folder to build in (default build/fuzz, or build/fuzz-fast)")
    parser.add_argument("--corpus", help="what was found before, and will be (default build/fuzz/corpus)")
    parser.add_argument("--results", metavar="FILE", help="also write the table as JSON: results/fuzz.json")
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
    folder = options.build or os.path.join(TREE, "build", "fuzz-fast" if options.fast else "fuzz")
    corpus = options.corpus or os.path.join(TREE, "build", "fuzz", "corpus")
    build(folder, names, options.jobs, options.fast)
    runs = [Run(name, os.path.join(folder, "tests", "fuzz", "fuzz_" + name), corpus,
                max(1, round(options.minutes * 60)), options.fast) for name in names]
    print(line(HEAD), flush=True)
    whole = run_all(runs, options.jobs)
    print("\n".join(["", line(HEAD), "|" + "---|" * len(HEAD), *(line(run.row()) for run in runs)]))
    if options.results:
        write_results(options.results, runs, options.fast)
    for run in runs:
        if run.fault:
            print(f"\n{run.name} found a fault. Again: {run._program} {os.path.join(corpus, run.name)}.found/FILE\n"
                  f"{run.fault}", file=sys.stderr)
    if options.keep:
        for run in runs:
            run.keep()
    return 0 if whole and not any(run.fault for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
