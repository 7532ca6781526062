#!/usr/bin/env python3
"""What docs/metrics.md has a newcomer type for a monitored group, as it stands there, on free ports: three nodes, their
page, and a Prometheus that sees one leader."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from cluster import Skipped, check, free_port, main, wait_for

SECONDS = 60


def arguments(parser):
    parser.add_argument("--docs", required=True, help="the folder with metrics.md")


def script_of(docs):
    """The shell's blocks of the section, one after the other; and what it says of commands that end everything."""
    text = (pathlib.Path(docs) / "metrics.md").read_text(encoding="utf-8")
    section = re.search(r"^## A monitored group in ten minutes$(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    check(len(blocks) == 3, f"{len(blocks)} blocks in the section")
    check("kill $(jobs -p)" in section, "the page does not say how to end it")
    return "".join(blocks)


def with_free_ports(script):
    """7201 and the like, also as 720$n, and the port of Prometheus."""
    ports = {}

    def port(written):
        return str(ports.setdefault(written, free_port()))
    for n in range(1, 4):
        for kind in (1, 2, 3):
            script = script.replace(f"7{kind}0{n}", port((kind, n)))
    for kind in (2, 3):
        words = " ".join(port((kind, n)) for n in range(1, 4))
        script = script.replace(f"7{kind}0$n", f"$(set -- {words}; shift $((n - 1)); echo $1)")
    return script.replace("9090", port("prometheus")), ports


def query(port, text):
    address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": text})
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return None
    return float(found[0]["value"][1]) if found else None


def run(options):
    for program in ("prometheus", "promtool", "curl"):
        if shutil.which(program) is None:
            raise Skipped(f"{program} is not installed")
    script, ports = with_free_ports(script_of(options.docs))
    path = os.path.dirname(os.path.realpath(options.binary)) + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(pathlib.Path(options.docs) / "alerts.yml", folder)
        begun = time.monotonic()
        # As somebody who types: what was started in the background stays, until the shell ends it.
        shell = subprocess.Popen(["bash", "-e", "-c", script + "\necho typed; read -r _; kill $(jobs -p); wait"],
                                 cwd=folder, env={**os.environ, "PATH": path}, text=True, start_new_session=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said = []
            for line in shell.stdout:
                said.append(line)
                if line == "typed\n":
                    break
            check(said and said[-1] == "typed\n", "".join(said))
            check(any("SUCCESS" in line for line in said), "promtool: " + "".join(said))
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[3, 1]}/", timeout=5) as page:
                check(b"<!doctype html>" in page.read(), "no page")
            for text, wanted in (("sum(up)", 3), ("sum(leasehold_groups_led)", 1)):
                wait_for(f"{text} to be {wanted}", SECONDS, lambda t=text, w=wanted:
                         query(ports["prometheus"], t) == w, pause=0.5)
            print(f"a monitored group, {time.monotonic() - begun:.0f} s after the first command")
            shell.communicate("\n", timeout=SECONDS)
        finally:
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            shell.wait()


if __name__ == "__main__":
    main(__doc__, run, arguments)
