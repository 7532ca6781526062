#!/usr/bin/env python3
"""The manual page and the completions name every command and every flag that --help names.

  manual.py BINARY
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

FAULTS = []


def check(good, text):
    if not good:
        FAULTS.append(text)


def run(*command, status=0, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **(environment or {})})
    check(done.returncode == status,
          f"{' '.join(command)}: status {done.returncode}, not {status}: {done.stderr}")
    return done.stdout


def commands_of(help_text):
    listed = help_text.split("Subcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\w+)", listed, re.MULTILINE)


def flags_of(help_text):
    """The flags that stand at the beginning of a line; an example may begin with none."""
    return [flag for flag in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", help_text, re.MULTILINE)
            if flag != "--help"]


def bash_offers(script, *words):
    """What the completion offers behind `leasehold words...`, the last of which is being typed."""
    line = " ".join(f"'{word}'" for word in ("leasehold",) + words)
    program = (f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _leasehold; "
               'printf "%s\\n" "${COMPREPLY[@]}"')
    return run("bash", "-c", program).split()


def main(binary):
    help_text = run(binary, "--help")
    commands = commands_of(help_text)
    check(len(commands) > 5, f"found only {commands} in --help")
    page = run(binary, "man").replace("\\-", "-")
    scripts = {shell: run(binary, "completion", shell) for shell in ("bash", "zsh", "fish")}
    with tempfile.TemporaryDirectory() as folder:
        bash = os.path.join(folder, "leasehold")
        with open(bash, "w", encoding="utf-8") as file:
            file.write(scripts["bash"])
        check(set(commands) <= set(bash_offers(bash, "")), "bash does not offer every command")
        check(bash_offers(bash, "sta") == ["status"], "bash does not complete sta")
        check(bash_offers(bash, "status", "--color", "al") == ["always"],
              "bash does not complete --color al")
        for command in commands:
            check(f".SS \"leasehold {command}\"" in page, f"the manual lacks {command}")
            for shell, script in scripts.items():
                check(re.search(rf"\b{command}\b", script), f"{shell}: lacks {command}")
            offered = bash_offers(bash, command, "--")
            for flag in flags_of(run(binary, command, "--help")):
                check(f"\\fB{flag}\\fR" in page, f"the manual lacks {command} {flag}")
                check(flag in offered, f"bash: {command} lacks {flag}")
                check(re.search(rf"{flag}\[", scripts["zsh"]), f"zsh: {command} lacks {flag}")
                check(re.search(rf"from {command}' -l {flag[2:]}\b", scripts["fish"]),
                      f"fish: {command} lacks {flag}")
        # The shells that are here read their scripts without a complaint.
        for shell, script in scripts.items():
            if shutil.which(shell):
                path = os.path.join(folder, "script." + shell)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(script)
                run(shell, "-n", path)
    statuses = re.findall(r"^  (\d)  ", help_text, re.MULTILINE)
    check(statuses == list("0123456"), f"--help lists the exit statuses {statuses}")
    for status in statuses:
        check(re.search(rf"^  {status}  ", page, re.MULTILINE), f"the manual lacks status {status}")

    # The statuses that need no cluster, and colours.
    run(binary, "completion", "nope", status=2)
    run(binary, "status", "--servers", "127.0.0.1:1", "--color", "pink", status=2)
    run(binary, "get", "--servers", "127.0.0.1:1", "--timeout", "50ms", "k", status=4)
    away = ("status", "--servers", "127.0.0.1:1")
    check("\x1b" not in run(binary, *away, status=1), "colours in a pipe")
    painted = run(binary, *away, "--color", "always", status=1, environment={"NO_COLOR": "1"})
    check("\x1b[31m" in painted, "--color always does not colour")
    check("\x1b" not in run(binary, *away, "--color", "never", status=1), "--color never colours")
    for fault in FAULTS:
        print(fault)
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
