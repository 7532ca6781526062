#!/usr/bin/env python3
"""`leasehold lab` as a process: where it finds the page, what it writes, and what it refuses. The page is a stand-in
that holds the same place for a trace, so that the test needs no emscripten.

  command.py LEASEHOLD TREE
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

PLACE = '<script id="recording" type="application/x-ndjson" data-version="1">'


def check(holds, what):
    if not holds:
        sys.exit(what)


def ends(status, says, *command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    said = done.stdout if status == 0 else done.stderr
    check(done.returncode == status, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    check(re.search(says, said), f"{command} says {said!r}, and not {says!r}")
    return said


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def shows_traces(program, tree, folder):
    page = write(os.path.join(folder, "page.html"), f"<html>{PLACE}</script></html>")
    trace = os.path.join(folder, "run.jsonl")
    ends(0, "seeds 1", program, "sim", "--seed", "1", "--until", "2s", "--trace", trace)
    ends(0, r"run\.jsonl\.html shows \d+ records", program, "lab", "--trace", trace, "--page", page)
    written = read(trace + ".html")
    check(read(trace).strip() in written, "the page does not hold the trace")
    # A scenario is run.
    out = os.path.join(folder, "story.html")
    scenario = os.path.join(tree, "docs", "scenarios", "shared-groups.scenario")
    ends(0, "shows 233 records", program, "lab", "--trace", scenario, "--page", page, "-o", out)
    check('"group":2' in read(out), "the second group is missing")
    ends(2, "choose another --out", program, "lab", "--trace", trace, "--page", page, "--out", page)
    ends(2, "choose another --out", program, "lab", "--trace", trace, "--page", page, "--out", trace)
    ends(2, "cannot be written; is its folder there", program, "lab", "--trace", trace, "--page", page,
         "--out", os.path.join(folder, "none", "x.html"))
    return page, trace


# Two nodes whose clocks are an hour apart, and one that was not there.
CLUSTER = """{"kind":"cluster_trace","v":1,"program":"1","group":1,"span":1000000000}
{"kind":"missing","server":"c:1","text":"refused"}
{"kind":"part","server":"a:1","node":1,"process":1,"begin":5000000000,"end":6000000000,"ended":"whole"}
{"at":5001000000,"kind":"role","node":1,"term":3,"what":"leader","why":"recorded"}
{"at":5002000000,"kind":"sent","node":1,"peer":2,"term":3,"round":1,"what":"append","text":"x"}
{"at":5004000000,"kind":"delivered","node":1,"peer":2,"term":3,"round":1,"what":"append_reply"}
{"kind":"part","server":"b:1","node":2,"begin":3605000000000,"end":3606000000000,"ended":"lost","text":"gone"}
{"at":3605003000000,"kind":"delivered","node":2,"peer":1,"term":3,"round":1,"what":"append","text":"x"}
{"at":3605003000000,"kind":"promise","node":2,"peer":1,"term":3,"until":3605900000000,"why":"given"}
{"at":3605003100000,"kind":"sent","node":2,"peer":1,"term":3,"round":1,"what":"append_reply"}
"""


def shows_a_running_group(program, page, folder):
    """What `leasehold trace` has written: in the page its clocks are one."""
    trace = write(os.path.join(folder, "cluster.trace"), CLUSTER)
    ends(0, r"shows \d+ records", program, "lab", "--trace", trace, "--page", page)
    shown = read(trace + ".html")
    for text in ('"what":"cluster"', '"node":2,"what":"unseen"', "MISSING c:1: refused"):
        check(text in shown, f"the page lacks {text}")
    arrived = re.search(r'"at":(\d+),"kind":"delivered","node":2,"peer":1,"term":3,"round":1,"from":(\d+)', shown)
    check(arrived and 0 < int(arrived[2]) <= int(arrived[1]) < 10_000_000, "the message is not on its way")
    ends(2, r"cluster\.trace:3: a part has ended", program, "lab", "--page", page, "--trace",
         write(trace, CLUSTER.replace('"whole"', '"well"')))


def refuses_hostile_files(program, page, trace, folder):
    bad = os.path.join(folder, "bad.jsonl")
    text = read(trace)

    def refused(says, content):
        ends(2, says, program, "lab", "--trace", write(bad, content), "--page", page)
        check(not os.path.exists(bad + ".html"), "a page was written for a file that was refused")

    refused(r"bad\.jsonl:\d+: ", text[:len(text) // 2])
    refused("version 2; this program reads version 1", text.replace('"v":1', '"v":2', 1))
    refused("bad.jsonl is empty", "")
    refused("begins with one record of kind `run`", text.split("\n", 1)[1])
    refused("one JSON object", "\x00\x01\x02")
    refused("has more than 16 replicas", text + "".join(
        f'{{"at":99000000000,"kind":"crash","node":{node}}}\n' for node in range(1, 18)))
    line = '{"at":99000000000,"kind":"crash","node":1}\n'
    refused(r"250\d\d\d records, and a page shows at most 250000; record less", text + line * 250_000)
    refused(":1: the first line is the title", "#\n")
    # HTML in its strings stays text.
    write(bad, text + '{"at":99000000000,"kind":"mark","text":"</script><img src=x onerror=alert(1)>"}\n')
    ends(0, "shows", program, "lab", "--trace", bad, "--page", page)
    check(read(bad + ".html").count("</script>") == 1, "a text ends the element")


def finds_the_page(program, page, trace, folder):
    # A program that is installed, with its page and without. A link would be followed.
    binary = os.path.join(folder, "bin")
    os.mkdir(binary)
    copy = os.path.join(binary, "leasehold")
    try:
        os.link(program, copy)
    except OSError:
        shutil.copy2(program, copy)
    ends(2, r"not installed\. `make lab`.*--page", copy, "lab")
    ends(2, r"not installed", copy, "lab", "--trace", trace)
    share = os.path.join(folder, "share", "leasehold")
    os.makedirs(share)
    shutil.copy(page, os.path.join(share, "lease-lab.html"))
    ends(0, r"share/leasehold/lease-lab\.html: open it in a browser", copy, "lab")
    out = os.path.join(folder, "own.html")
    ends(0, "own.html shows the lab", copy, "lab", "--out", out)
    check(read(out) == read(page), "the copy is another page")
    ends(0, "shows", copy, "lab", "--trace", trace, "-o", out)


def main():
    program, tree = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        page, trace = shows_traces(program, tree, folder)
        refuses_hostile_files(program, page, trace, folder)
        other = write(os.path.join(folder, "other.html"), "<html></html>")
        ends(2, "other.html is no page of the lab", program, "lab", "--trace", trace, "--page", other)
        ends(2, "is not a file", program, "lab", "--trace", trace, "--page", os.path.join(folder, "none"))
        ends(2, "is not a file", program, "lab", "--trace", os.path.join(folder, "none"), "--page", page)
        ends(2, "--trace needs a file", program, "lab", "--trace")
        ends(2, "`--tracer` is no option", program, "lab", "--tracer", trace)
        ends(0, "of a running group by leasehold trace", program, "lab", "--help")
        shows_a_running_group(program, page, folder)
        finds_the_page(program, page, trace, folder)


if __name__ == "__main__":
    main()
