#!/usr/bin/env python3
"""`leasehold bench compare --smoke` with the peers that are installed: its table, its JSON and its page tell the same,
the page loads nothing, and neither a process nor a file is left behind; nor by Ctrl-C. What is not installed is left
out, and the package that has it is named."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree

from cluster import check, main

STANDS, THROWN_AWAY, USAGE, NOT_EXECUTED = 0, 1, 2, 4
PACKAGES = {"etcd": "etcd-server", "redis-server": "redis-server"}
# Where a page may have an address that a browser would load.
LOADING = ("src", "href", "data", "action", "srcset", "poster")


def left_behind(folder):
    """Processes whose command line names the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue  # it has ended
            if str(folder) in words and "\0bench\0" not in words:
                found.append(words.replace("\0", " "))
    return found


def clean(folder):
    deadline = time.monotonic() + 20
    while left_behind(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    check(not left_behind(folder), f"processes are left: {left_behind(folder)}")
    check(not list(folder.iterdir()), f"files are left: {list(folder.iterdir())}")


def smoke(options, folder, out):
    begun = time.monotonic()
    run = subprocess.run([options.binary, "bench", "compare", "--smoke", "--dir", str(folder), "--json",
                          str(out / "c.json"), "--html", str(out / "c.html")], capture_output=True, text=True,
                         timeout=150, check=False)
    print(f"a smoke run took {time.monotonic() - begun:.0f} s")
    text = run.stdout + run.stderr
    check(run.returncode in (STANDS, THROWN_AWAY), f"status {run.returncode}: {text}")
    check("about " in run.stderr and "% done" in run.stderr, f"no estimate or progress: {run.stderr}")
    for program, package in PACKAGES.items():
        if shutil.which(program) is None:
            print(f"{program} is not installed (Debian: {package}): only that it is left out is tested")
            check(f"not installed (Debian: {package})" in text, f"{program} is left out without a word: {text}")
    found = json.loads((out / "c.json").read_text())
    stands = all(not ratio["thrown_away"] for ratio in found["findings"]["ratios"])
    check(stands or run.returncode == THROWN_AWAY, f"status {run.returncode} with a comparison thrown away: {text}")
    for block in found["blocks"]:
        counted = sum(count for _, count in block["latency_ns"])
        check(counted == block["operations"], f"the histogram has {counted} of {block['operations']}")
        check(block["thrown_away"] or block["server_cpu_ns"] > 0, f"no processor time: {block['case']}")
    reads = [block for block in found["blocks"] if block["target"] == "leasehold-lease" and not block["thrown_away"]]
    check(reads, "no lease read was measured")
    page(out / "c.html", found)
    clean(folder)


def page(path, found):
    root = xml.etree.ElementTree.parse(path).getroot()
    names = [element.tag.rsplit("}", 1)[-1] for element in root.iter()]
    check(not {"script", "link", "img", "iframe", "image", "use", "object"} & set(names), f"it loads: {set(names)}")
    for element in root.iter():
        check(not set(LOADING) & set(element.attrib), f"{element.tag} loads: {element.attrib}")
    style = "".join(element.text for element in root.iter() if element.tag.endswith("style"))
    check("url(" not in style and "@import" not in style and "prefers-color-scheme" in style, "the style")
    pictures = [element for element in root.iter() if element.tag.endswith("}svg")]
    check(pictures and all(picture.get("aria-label") for picture in pictures), "a picture without words")
    rows = [element for element in root.iter() if element.tag.endswith("}tbody")][0]
    check(len(list(rows)) == max(len(found["findings"]["ratios"]), 1), "the table has other rows than the JSON")


def alone(options, folder, out):
    """Without any peer: PATH has none."""
    run = subprocess.run([options.binary, "bench", "compare", "--smoke", "--quiet", "--dir", str(folder), "--html",
                          str(out / "alone.html")], capture_output=True, text=True, timeout=100, check=False,
                         env={**os.environ, "PATH": str(out)})
    text = run.stdout + run.stderr
    check(run.returncode in (STANDS, THROWN_AWAY), f"alone: status {run.returncode}: {text}")
    for package in PACKAGES.values():
        check(f"not installed (Debian: {package})" in text, f"{package} is not named: {text}")
    check("no peer is installed" in text, text)
    clean(folder)


def interrupted(options, folder):
    run = subprocess.Popen([options.binary, "bench", "compare", "--dir", str(folder)], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in run.stderr:
        if "writing the keys" in line:
            break
    check(left_behind(folder), "no server runs while it measures")
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    check(run.returncode == NOT_EXECUTED, f"interrupted: status {run.returncode}: {out}{err}")
    check("ended before" in err, f"it does not say why it ended: {err}")
    clean(folder)


def refusals(options, folder):
    for words, said in ((("--servers", "127.0.0.1:1"), "--servers is not for compare"),
                        (("--sweeps", "1"), "--sweeps takes 2 to"), (("--growth", "height"), "--growth takes"),
                        (("--block", "1ms"), "--block takes"), (("--rate", "5"), "--rate is not for compare")):
        run = subprocess.run([options.binary, "bench", "compare", *words], capture_output=True, text=True, timeout=30,
                             check=False)
        check(run.returncode == USAGE and said in run.stderr, f"{words}: {run.returncode} {run.stderr}")
    run = subprocess.run([options.binary, "bench", "--html", "x", "--servers", "127.0.0.1:1"], capture_output=True,
                         text=True, timeout=30, check=False)
    check(run.returncode == USAGE and "for `leasehold bench compare`" in run.stderr, run.stderr)
    for words in (("--dir", str(folder / "none")), ("--html", str(folder / "none" / "x"))):
        run = subprocess.run([options.binary, "bench", "compare", *words], capture_output=True, text=True, timeout=30,
                             check=False)
        check(run.returncode == NOT_EXECUTED and words[0] in run.stderr, f"{words}: {run.returncode} {run.stderr}")


def run(options):
    with tempfile.TemporaryDirectory(prefix="compare-test-") as parent:
        folder, out = pathlib.Path(parent) / "data", pathlib.Path(parent) / "out"
        folder.mkdir()
        out.mkdir()
        refusals(options, folder)
        smoke(options, folder, out)
        alone(options, folder, out)
        interrupted(options, folder)


if __name__ == "__main__":
    main(__doc__, run)
