#!/usr/bin/env python3
"""`leasehold doctor`: faults of every kind are planted one at a time, and each has to be found, with a cure that says
what to do. Beside a healthy group it finds no error, leaves nothing in the data directory, and disturbs nobody.

What the kernel shows is planted as files (--root); slow, lying and full disks and clocks that drift and sleep are
those of the shims; the rest is real: ports, locks, directories, certificates, limits, pauses, other nodes."""

import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import time

import machine_clock
import resp
from cluster import Cluster, built, check, free_port, main, wait_for
from doctor_faults import DISK_FAULTS, ERROR, FAULTS, HEALTHY, WARNING, certificates_of, use
from wrong_answers import SETTINGS, STATUS, WrongServer, bulk

# Everything takes longer on a busy machine: then no healthy number is an error.
PATIENT = ["lease=10s", "heartbeat=500ms", "max-round-trip=2s", "election-timeout=10m"]
PATIENT_FLAGS = [word for pair in PATIENT for word in ("--" + pair).split("=")]
# What a busy machine alone can make an error where a lease is short, and a warning where it is long.
BUSY = ("pauses", "disk-sync", "timing")
# As many as have a processor now and then.
AT_ONCE = 4
SECONDS = 60

# The kernel's own.
LINKS = ["proc/locks", "proc/self/limits"]


def arguments(parser):
    parser.add_argument("--shim", type=built, help="disk_shim.so; without it no faults of disks")
    parser.add_argument("--clock-shim", type=built, help="clock_shim.so; without it no faults of clocks")


class Patient:
    """A node to be: what is given to doctor, and what is wrong with it."""

    def __init__(self, test, name):
        self.test = test
        self.folder = os.path.join(test.folder, name)
        os.mkdir(self.folder)
        # Below a folder `log`: there the shim's faults are.
        self.data_dir = os.path.join(self.folder, "log", "data")
        self.log_path = os.path.join(self.folder, "shim")
        self.environment = {}
        self.flags = {"--id": "1", "--data-dir": self.data_dir, "--listen": f"127.0.0.1:{free_port()}",
                      "--peers": f"1=127.0.0.1:{free_port()}"}
        self.more = []
        self.before = []  # the words of a program that starts this one
        self.keep = None  # open until the end
        self.files = dict(HEALTHY)
        os.makedirs(self.data_dir, mode=0o700)

    def words(self):
        root = os.path.join(self.folder, "root")
        for path, text in self.files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        for path in LINKS:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            if not os.path.lexists(os.path.join(root, path)):
                os.symlink("/" + path, os.path.join(root, path))
        flags = [word for pair in self.flags.items() for word in pair]
        return [*self.before, self.test.binary, "doctor", *flags, "--root", root, "--seconds", "1", *self.more,
                "--json"]

    def begin(self):
        return subprocess.Popen(self.words(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, **self.environment})

    def see(self, meanwhile=lambda process: None):
        """Its findings, and the exit status."""
        process = self.begin()
        try:
            meanwhile(process)
            out, trouble = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
        check(process.returncode in (0, 1), f"{self.folder}: status {process.returncode}: {trouble}")
        answer = json.loads(out)
        for finding in answer["findings"]:
            bad = finding["level"] in (ERROR, WARNING)
            check(bad == bool(finding["to_do"]), f"a fault has a cure, and nothing else has: {finding}")
        errors = sum(finding["level"] == ERROR for finding in answer["findings"])
        check(errors == answer["errors"] and process.returncode == (1 if errors else 0),
              f"{errors} errors are not counted: {answer['errors']}, status {process.returncode}")
        return answer["findings"]


def expect(findings, level, name, found, cure):
    fits = [one for one in findings if one["check"] == name and one["level"] == level and found in one["found"]
            and cure in one["to_do"]]
    check(fits, f"no {level} of {name} says {found!r} and {cure!r}: "
                f"{[one for one in findings if one['level'] in (ERROR, WARNING)]}")


# --- faults that happen while it looks ------------------------------------------------------------


def drifting_clock(patient):
    """This machine's clock, so those of all others."""
    patient.more = ["--servers", patient.test.servers, "--seconds", "2"]
    clock = machine_clock.Clock(patient.test.options.clock_shim, patient)

    def drift(_):
        clock.drift(500_000, 500_000)

    expect(patient.see(drift), ERROR, "clock-drift", "leases are not safe", "lease-reads=off")
    clock.close()


def sleeping_machine(patient):
    clock = machine_clock.Clock(patient.test.options.clock_shim, patient)

    def sleep(process):
        scratch = os.path.join(patient.data_dir, ".leasehold-doctor")
        wait_for("the measurement", 20, lambda: process.poll() is not None or os.path.exists(scratch))
        clock.jump(30)

    patient.more = ["--seconds", "3"]
    expect(patient.see(sleep), ERROR, "suspend", "just now", "systemctl mask")
    clock.close()


def pausing_process(patient):
    def pause(process):
        scratch = os.path.join(patient.data_dir, ".leasehold-doctor")
        wait_for("the measurement", 20, lambda: process.poll() is not None or os.path.exists(scratch))
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        process.send_signal(signal.SIGCONT)

    patient.more = ["--seconds", "3"]
    expect(patient.see(pause), ERROR, "pauses", "loses its lease", "raise --lease")


def wrong_inequality(patient):
    """As serve refuses it."""
    patient.flags["--lease"] = "200ms"
    run = subprocess.run(patient.words(), capture_output=True, text=True, check=False, timeout=SECONDS)
    check(run.returncode == 2 and "unavailable lease" in run.stderr and "raise the lease" in run.stderr,
          f"status {run.returncode}: {run.stderr}")


def interrupted(patient):
    """It ends at once, with what it has seen, and removes its file."""
    def interrupt(process):
        scratch = os.path.join(patient.data_dir, ".leasehold-doctor")
        wait_for("the measurement", 20, lambda: os.path.exists(scratch))
        process.send_signal(signal.SIGINT)

    patient.more = ["--seconds", "300"]
    patient.see(interrupt)
    check(os.listdir(patient.data_dir) == [], "the scratch file stayed")


def nonsense(patient):
    """A server that answers nonsense is a finding, whatever it says."""
    clock = b"*6\r\n$9\r\nholder_ns\r\n:%d\r\n$10\r\npromise_ns\r\n:%d\r\n$7\r\nmachine\r\n$1\r\nm\r\n"
    servers = []
    for replies in ({"LEASEHOLD STATUS": b"$2\r\n[]\r\n"},
                    {"LEASEHOLD STATUS": b"-ERR no\r\n"},
                    {"LEASEHOLD STATUS": bulk({"id": -1, "version": [], "state": 7, "groups": {"node": "x"}})},
                    {"LEASEHOLD SETTINGS": bulk({**SETTINGS, "lease": "-1s"})},
                    {"LEASEHOLD CLOCK": clock % (-1, 2**63 - 1)},
                    {"LEASEHOLD CLOCK": clock % (5, 5)},
                    {"LEASEHOLD CLOCK": b"*2\r\n$1\r\na\r\n:7\r\n"},
                    {"LEASEHOLD CLOCK": b""}):
        server = WrongServer()
        server.replies = {"LEASEHOLD STATUS": bulk(STATUS), "LEASEHOLD SETTINGS": bulk(SETTINGS), **replies}
        servers.append(server)
    patient.more = ["--servers", ",".join(f"127.0.0.1:{server.port}" for server in servers)]
    findings = patient.see()
    expect(findings, ERROR, "servers", "this is no answer to LEASEHOLD STATUS", "")
    expect(findings, "skipped", "clock-drift", "no clock shows what LEASEHOLD CLOCK answered", "")
    # A clock that stands still.
    expect(findings, ERROR, "clock-drift", "1000000 ppm slower", "lease-reads=off")


@contextlib.contextmanager
def serving(patient):
    """A node with the flags of `patient`, which doctor then has, too."""
    words = [word for flag in patient.flags.items() for word in flag]
    with open(patient.log_path, "wb") as log:
        node = subprocess.Popen([patient.test.binary, "serve", *words], stdout=log, stderr=log)
    try:
        wait_for("the node", 20, lambda: "holds the lease" in read(patient.log_path))
        patient.more = ["--servers", patient.flags["--listen"]]
        yield node
    finally:
        node.terminate()
        node.wait(20)


def expect_healthy(findings, node):
    expect(findings, "ok", "data-dir", "holds the log of this node", "")
    expect(findings, "ok", "data-dir", f"process {node.pid} serves from it", "")
    expect(findings, "ok", "clock-drift", "runs", "")
    bad = [one for one in findings if one["level"] == ERROR and one["check"] not in BUSY]
    check(not bad, f"it serves, and has errors: {bad}")


def protected(patient):
    """A node with certificates, whose clients use TLS."""
    authority, pair = certificates_of(patient)
    use(patient, pair, authority.path("ca.pem"))
    with serving(patient) as node:
        findings = patient.see()
        expect_healthy(findings, node)
        expect(findings, "ok", "certificates", "is this node's", "")


def many_groups(patient):
    patient.flags["--groups"] = "3"
    with serving(patient) as node:
        expect_healthy(patient.see(), node)


def users(patient):
    """Without the rights to ask a node that is the finding; a user who has them sees no error."""
    with serving(patient) as node:
        with resp.Client(int(patient.flags["--listen"].rsplit(":", 1)[1]), 5) as client:
            client.call("ACL", "SETUSER", "ops", "on", ">secret", "+leasehold", "+hello", "+auth")
            client.call("ACL", "SETUSER", "default", "off")
        expect(patient.see(), ERROR, "servers", "NOAUTH", "--user")
        patient.more += ["--user", "ops"]
        patient.environment["LEASEHOLD_PASSWORD"] = "secret"
        expect_healthy(patient.see(), node)


def advice(patient):
    """Its numbers are those that serve and a group take."""
    words = patient.words()
    words[words.index("doctor")] = "advise"
    words += ["--servers", patient.test.servers]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS)
    check(done.returncode == 0, f"advise: status {done.returncode}: {done.stderr}")
    numbers = {one["name"]: one["value"] for one in json.loads(done.stdout)}
    check(set(numbers) == {"lease", "heartbeat", "max-clock-drift", "max-round-trip", "margin", "election-timeout"},
          f"advise: {numbers}")
    pairs = [f"{name}={value}" for name, value in numbers.items()]
    checked = subprocess.run([patient.test.binary, "settings", "check", *pairs], capture_output=True, text=True,
                             check=False)
    check(checked.returncode == 0, f"advise: {checked.stderr}")
    words.remove("--json")
    text = subprocess.run(words, capture_output=True, text=True, check=True, timeout=SECONDS).stdout
    check("leasehold settings set lease=" in text and "--election-timeout" in text, f"advise: {text}")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


LIVE = [nonsense, protected, many_groups, users, advice, pausing_process, wrong_inequality, interrupted]
CLOCK_LIVE = [drifting_clock, sleeping_machine]


class Test:
    def __init__(self, options, cluster):
        self.options = options
        self.binary = options.binary
        self.folder = cluster.folder
        self.servers = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
        self.stopped = None  # the data directory of a node that has ended

    def plant(self, planted):
        patient = Patient(self, planted.__name__)
        wanted = planted(patient)
        expect(patient.see(), *wanted)


def healthy(test, cluster):
    """A node that is to be, alone; and each of a group that serves, with its own flags."""
    patient = Patient(test, "healthy")
    # A sync of memory is one that lies.
    kind = subprocess.run(["stat", "-f", "-c", "%T", test.folder], capture_output=True, text=True, check=True).stdout
    measured = [] if kind.strip() not in ("tmpfs", "ramfs") else ["--no-sync-test"]
    patient.more = [*PATIENT_FLAGS, *measured]
    findings = patient.see()
    check(not [one for one in findings if one["level"] == ERROR], f"a healthy setup has errors: {findings}")
    machines = (*BUSY, "clock-sync", "suspend")
    warned = [one for one in findings if one["level"] == WARNING and one["check"] not in machines]
    check(not warned, f"a healthy setup has warnings: {warned}")
    check(os.listdir(patient.data_dir) == [], "it left a file")
    strict = [*patient.words()[:-1], "--strict"]  # without --json
    ran = subprocess.run(strict, capture_output=True, text=True, check=False, timeout=SECONDS)
    warned = " 0 warnings;" not in ran.stdout
    check(ran.returncode == int(warned), f"--strict: status {ran.returncode}: {ran.stdout}")
    for node in cluster.nodes:
        before = sorted(os.listdir(node.data_dir))
        patient = Patient(test, f"serving{node.id}")
        words = node.command()[2:]
        patient.flags = dict(zip(words[::2], words[1::2]))
        patient.more = [*PATIENT_FLAGS, *measured, "--servers", test.servers]
        findings = patient.see()
        check(not [one for one in findings if one["level"] == ERROR], f"{node} serves, and has errors: {findings}")
        expect(findings, "ok", "data-dir", f"process {node.process.pid} serves from it", "")
        expect(findings, "ok", "clock-drift", "", "")
        check(sorted(os.listdir(node.data_dir)) == before, f"{node}: another file is in its directory")


def run(options):
    faults = FAULTS + (DISK_FAULTS if options.shim else [])
    lives = LIVE + (CLOCK_LIVE if options.clock_shim else [])
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        test = Test(options, cluster)
        subprocess.run([options.binary, "settings", "set", *PATIENT, "--servers", test.servers], check=True,
                       stdout=subprocess.DEVNULL)
        # A directory to copy: of a group of one.
        alone = cluster.make_node(1, "alone", peers=f"1=127.0.0.1:{free_port()}")
        cluster.extra.append(alone)
        alone.start()
        cluster.wait_leader(among=[alone])
        alone.terminate()
        test.stopped = alone.data_dir
        healthy(test, cluster)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            tasks = [pool.submit(test.plant, planted) for planted in faults]
            tasks += [pool.submit(live, Patient(test, live.__name__)) for live in lives]
            for task in tasks:
                task.result()
        check(cluster.wait_leader() is not None, "the group has a leader")
    print(f"{len(faults)} planted faults were found, each with its cure; {len(lives)} scenes")


if __name__ == "__main__":
    main(__doc__, run, arguments)
