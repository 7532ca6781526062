#!/usr/bin/env python3
"""What `leasehold lock` makes of signals, children and terminals. Whatever is done to it, short of
stopping it by force: its command, with all that this has started, has ended before the lock has;
who only waits for a lock is not made to give up; and the status tells whether the lock was held."""

import fcntl
import os
import pty
import signal
import subprocess
import time

from cluster import Cluster, check, main, wait_for
from locks_support import Held, Locks, runs

USAGE, LOST = 2, 6
TTL, MARGIN = 3.0, 0.5
TIMING = ["--ttl", f"{TTL:g}s", "--margin", f"{MARGIN:g}s", "--max-round-trip", "300ms"]
# When the lock may be another's, after the last renewal.
END = TTL * 0.9 / 1.1
LOOP = "while :; do sleep 0.02; done"
DEAF = f"trap '' TERM; echo in; {LOOP}"


def ignoring(*signals):
    def prepare():
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
    return prepare


def inherited(locks):
    """What the parent left: signals that are ignored stay ignored, and its children are nobody's
    reason to give up."""
    check(subprocess.run(locks.words("a", "sh", "-c", "exit 7"), timeout=30, check=False,
                         preexec_fn=ignoring(signal.SIGCHLD)).returncode == 7,
          "a parent that waits for no children")
    first = locks.start("a", "cat")
    wait_for("the holder", 20, lambda: locks.holder("a"))
    patient = locks.start("a", "echo", "in", prepare=ignoring(signal.SIGHUP, signal.SIGINT))
    words = locks.words("a", "echo", "in")
    parent = Held(["sh", "-c", 'sleep 0.2 & exec "$@"', "sh", *words])
    time.sleep(1)
    for number in (signal.SIGHUP, signal.SIGINT):
        patient.process.send_signal(number)
    time.sleep(0.5)
    first.process.stdin.close()
    for held in (patient, parent):
        held.end(0)
        check(held.lines == ["in"], f"its command was not run: {held.lines}")


def told_while_it_waits(locks):
    """One signal is enough, whenever it comes."""
    first = locks.start("w", "cat")
    wait_for("the holder", 20, lambda: locks.holder("w"))
    for after in (0.3, 0.7, 1.1):
        patient = locks.start("w", "echo", "in")
        time.sleep(after)
        patient.process.send_signal(signal.SIGTERM)
        patient.end(128 + signal.SIGTERM)
        check("in" not in patient.lines, f"its command was run: {patient.lines}")
    first.process.stdin.close()
    first.end(0)


def same_text(locks):
    """Two that are called the same are two: a lost answer is recognised by the name."""
    held = [locks.start(name, "cat", flags=["--holder", "backup"]) for name in ("b", "c")]
    for name in ("b", "c"):
        wait_for("the holder", 20, lambda name=name: locks.holder(name) == "backup")
    names = [locks.queue(name)[0][1] for name in ("b", "c")]
    check(names[0] != names[1], f"two holders have one name: {names}")
    for one in held:
        one.process.stdin.close()
        one.end(0)


def with_all(locks):
    """All of the command's processes end with it, and with the one that holds the lock."""
    left = locks.run(0, "d", "sh", "-c", f"({LOOP}) > /dev/null 2>&1 & echo $!")
    check(not runs(int(left)), "what the command left behind runs on without the lock")

    held = locks.start("d", "sh", "-c", f"({LOOP}) & echo in $!; wait")
    below = int(held.wait_line("in").split()[1])
    child = held.child()
    held.process.kill()
    wait_for("the end of the orphans", 1, lambda: not runs(child) and not runs(below))


def late_end(locks):
    """The command outlives its lock unseen, and the status does not say that all was well."""
    held = locks.start("e", "sh", "-c", "echo in; read line")
    held.wait_line("in")
    held.process.send_signal(signal.SIGSTOP)
    time.sleep(TTL)
    held.process.stdin.close()
    wait_for("the end of the command", 5, lambda: not runs(held.child()))
    held.process.send_signal(signal.SIGCONT)
    held.end(LOST)


def full_pipe():
    """Both ends of a pipe that takes nothing more."""
    reader, writer = os.pipe()
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, bytes(4096))
    except BlockingIOError:
        fcntl.fcntl(writer, fcntl.F_SETFL, flags)
    return reader, writer


def stopped_in_time(locks):
    """Nobody renews. Neither a stop by the terminal nor a person who reads no messages keeps the
    command beyond the lock."""
    reader, writer = full_pipe()
    locked = {
        "told to stop": locks.start("f", "sh", "-c", DEAF),
        "not read": locks.start("g", "sh", "-c", DEAF, stderr=writer)}
    for held in locked.values():
        held.wait_line("in")
    for number in (signal.SIGTSTP, signal.SIGTTOU, signal.SIGTTIN):
        locked["told to stop"].process.send_signal(number)
    children = {what: held.child() for what, held in locked.items()}
    stopped = time.monotonic()
    for node in locks.cluster.nodes:
        node.pause()
    ended = {}

    def all_ended():
        for what, child in children.items():
            if what not in ended and not runs(child):
                ended[what] = time.monotonic() - stopped
        return len(ended) == len(children)
    try:
        wait_for(f"the end of all, in {ended}", END + 2, all_ended, 0.001)
    finally:
        for node in locks.cluster.nodes:
            node.resume()
    # A client that waits to say what happened waits for a reader.
    os.read(reader, 65536)
    os.close(writer)
    for held in locked.values():
        held.end(LOST)
    os.close(reader)
    for what, after in ended.items():
        check(after <= END + 0.1, f"{what}: killed {after:.3f} s after the last renewal")
    print("killed after " + ", ".join(f"{after:.3f} s" for after in ended.values()) +
          f" of {END:.3f}")
    locks.cluster.wait_leader(30)


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))


def on_terminal(words, shell):
    """Runs `shell` with `words` as its arguments on a terminal of its own."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "-m", "-c", shell, "bash", *words])
    return pid, terminal


def read_until(terminal, text):
    seen = b""
    while text not in seen:
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            check(False, f"the terminal was left without {text}: {seen}")
    return seen


def terminals(locks):
    """The command reads what is typed; one in the background waits for its turn and costs
    nothing."""
    words = locks.words("i", "sh", "-c", "echo in; read line; echo got $line")
    pid, terminal = on_terminal(words, '"$@"; echo status $?')
    read_until(terminal, b"in\r\n")
    os.write(terminal, b"typed\n")
    check(b"got typed" in read_until(terminal, b"status 0"), "the command did not read")
    os.waitpid(pid, 0)
    os.close(terminal)

    pid, terminal = on_terminal(words, '"$@" & echo lock $!; read; fg; echo status $?')
    lock = int(read_until(terminal, b"in\r\n").split(b"lock ")[1].split()[0])
    before = ticks(lock)
    time.sleep(1)
    check(ticks(lock) - before < 10, f"{ticks(lock) - before} ticks to wait for a terminal")
    os.write(terminal, b"\n")
    time.sleep(0.5)
    os.write(terminal, b"typed\n")
    check(b"got typed" in read_until(terminal, b"status 0"), "the command did not read")
    os.waitpid(pid, 0)
    os.close(terminal)

    # Others of its pipeline have the terminal, too.
    pid, terminal = on_terminal(locks.words("i", "echo", "in"),
                                '"$@" | (cat; read line < /dev/tty; echo got $line)')
    read_until(terminal, b"in\r\n")
    os.write(terminal, b"typed\n")
    read_until(terminal, b"got typed")
    os.waitpid(pid, 0)
    os.close(terminal)


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        locks = Locks(cluster, TIMING)
        locks.run(USAGE, "a", "true", flags=["--max-clock-drift", "9000000000000"])
        locks.run(USAGE, "a", "true", flags=["--margin", "0s"])
        inherited(locks)
        told_while_it_waits(locks)
        same_text(locks)
        with_all(locks)
        late_end(locks)
        terminals(locks)
        stopped_in_time(locks)


if __name__ == "__main__":
    main(__doc__, run)
