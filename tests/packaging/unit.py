#!/usr/bin/env python3
"""Looks at the systemd unit of the Debian package with systemd's own tools: every line is understood, and what the
service could do to its machine is little. And it agrees with the settings and the scripts of the package.

  unit.py TREE [--program LEASEHOLD]
  unit.py TREE --self-test              plant one fault of each kind, expect each found

Status 77: systemd-analyze is not here.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED_STATUS = 77
# Of 10. docs/install.md has the figure; the rest is the network, and what it can see of the machine.
EXPOSURE_MAX = 1.7
PROGRAM = "/usr/bin/leasehold"
# (what stands there, what is planted, a part of the finding)
FAULTS = (
    ("ProtectHome=yes", "ProtectHoem=yes", "Unknown key"),
    ("PrivateTmp=yes", "PrivateTmp=maybe", "Failed to parse"),
    ("[Service]", "[Sevrice]", "Unknown section"),
    ("ProtectSystem=strict\n", "", "exposure"),
    ("CapabilityBoundingSet=\n", "", "exposure"),
    ("User=leasehold", "User=leaseholder", "postinst"),
    ("StateDirectory=leasehold\n", "StateDirectory=leashold\n", "data-dir"),
    ("--config /etc/leasehold/leasehold.toml", "--config /etc/leasehold/settings.toml", "conffiles"),
    ("RestartPreventExitStatus=2 5", "RestartPreventExitStatus=2", "removed"),
    (" serve --config", " serve --conf", "no flag --conf"),
    ("TimeoutStopSec=30", "TimeoutStopSec=3", "transfer"),
)


def analyse(unit):
    """What systemd-analyze does not like of the unit, whose program need not be installed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "leasehold.service"
        copy.write_text(unit.replace(PROGRAM, shutil.which("true")), encoding="utf-8")
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        # It ignores what it does not know, and ends with 0.
        yield from (line.removeprefix(folder) for line in done.stdout.splitlines() if str(copy) in line)
        if done.returncode != 0:
            yield f"systemd-analyze verify ended with status {done.returncode}: {done.stdout}"
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", copy], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        exposure = re.search(r"exposure level for leasehold.service: ([\d.]+)", done.stdout)
        if not exposure:
            yield f"systemd-analyze security says nothing of an exposure: {done.stdout[-500:]}"
        elif float(exposure[1]) > EXPOSURE_MAX:
            yield f"the exposure is {exposure[1]} of 10, and was {EXPOSURE_MAX}"


def flags_of_serve(program):
    text = subprocess.run([program, "serve", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(re.findall(r"^\s+(--[\w-]+)", text, re.MULTILINE))


def agree(unit, folder, known):
    """With the rest of the package. `known`: the flags of serve."""
    lines = dict(line.split("=", 1) for line in unit.splitlines() if re.match(r"\w+=", line))
    command = lines.get("ExecStart", "").split()
    if command[:2] != [PROGRAM, "serve"]:
        yield f"ExecStart does not run {PROGRAM} serve"
    for word in command:
        if word.startswith("--") and word not in known:
            yield f"leasehold serve has no flag {word}"
    if command[-1:] != (folder / "conffiles").read_text(encoding="utf-8").split():
        yield "the settings of ExecStart are not those of conffiles"
    script = (folder / "postinst").read_text(encoding="utf-8")
    if not re.search(rf"adduser --quiet --system .* {lines.get('User')}\n", script):
        yield f"postinst makes no user {lines.get('User')}"
    settings = (folder / "leasehold.toml").read_text(encoding="utf-8")
    if f'data-dir = "/var/lib/{lines.get("StateDirectory")}"' not in settings:
        yield "data-dir of the settings is not the StateDirectory, and only that can be written"
    if "5" not in lines.get("RestartPreventExitStatus", "").split():
        yield "a node that was removed (exit status 5) would be started again"
    if int(lines.get("TimeoutStopSec", 90)) < 15:
        yield "TimeoutStopSec has to be longer than a transfer of the leadership (--drain-timeout)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--program")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if not shutil.which("systemd-analyze"):
        print("skipped: systemd-analyze (Debian's package systemd) is not here")
        sys.exit(SKIPPED_STATUS)
    folder = options.tree / "packaging" / "debian"
    unit = (folder / "leasehold.service").read_text(encoding="utf-8")
    known = flags_of_serve(options.program) if options.program else {"--config"}
    found = [*analyse(unit), *agree(unit, folder, known)]
    if options.self_test:
        for old, new, part in FAULTS:
            broken = unit.replace(old, new)
            said = [*analyse(broken), *agree(broken, folder, known)]
            if broken == unit or not any(part in finding for finding in said):
                found.append(f"`{new or old}`: expected `{part}`, found {said}")
        print(f"{len(FAULTS)} faults planted")
    for finding in found:
        print(finding)
    print(f"{len(found)} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
