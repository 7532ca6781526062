"""Wrong flags and settings files: `leasehold serve` ends at once and says what is wrong."""

import os
import subprocess

from cluster import check, free_port

USAGE, FAILURE = 2, 1
SECONDS = 10


def serve(cluster, flags, status, *texts):
    """Runs `serve` with `flags`; expects `status` and each of `texts` in what it says."""
    run = subprocess.run([cluster.binary, "serve", *flags], capture_output=True, text=True,
                         timeout=SECONDS, check=False)
    said = run.stdout + run.stderr
    check(run.returncode == status,
          f"serve {' '.join(flags)}: status {run.returncode}, not {status}: {said}")
    for text in texts:
        check(text in said, f"serve {' '.join(flags)}: says nothing of {text!r}: {said}")


def good_flags(tested, **changes):
    """Flags that would do, with changes; None leaves a flag out."""
    port = free_port()
    flags = {"id": "1", "data-dir": os.path.join(tested.folder, "never-made"),
             "peers": f"1=127.0.0.1:{port}", "listen": f"127.0.0.1:{free_port()}"}
    flags.update({name.replace("_", "-"): value for name, value in changes.items()})
    out = []
    for name, value in flags.items():
        if value is not None:
            out += [f"--{name}", value]
    return out


def attack_settings(cluster):
    wrong = [
        ({"id": None}, "--id is missing"),
        ({"id": "0"}, "--id", "'0'"),
        ({"id": "one"}, "--id", "'one'"),
        ({"id": "-1"}, "--id"),
        ({"id": "99999999999999999999"}, "--id"),
        ({"data_dir": None}, "--data-dir is missing"),
        ({"data_dir": ""}, "--data-dir"),
        ({"peers": None}, "--peers is missing"),
        ({"join": "127.0.0.1:7101"}, "--peers and --join are both given"),
        ({"peers": None, "join": "127.0.0.1:7101"}, "--join needs --peer-listen"),
        ({"peers": None, "join": "4=127.0.0.1:"}, "--join", "host:port"),
        ({"peers": "127.0.0.1:7101"}, "--peers", "id=host:port"),
        ({"peers": "1=127.0.0.1:7101,1=127.0.0.1:7102"}, "--peers", "twice"),
        ({"peers": "1=127.0.0.1:7101,2=127.0.0.1:7101"}, "--peers", "127.0.0.1:7101"),
        ({"peers": "2=127.0.0.1:7101"}, "does not name this node"),
        ({"peers": "1=127.0.0.1:70000"}, "--peers", "70000"),
        ({"listen": "nowhere"}, "--listen", "host:port"),
        ({"listen": "127.0.0.1:70000"}, "--listen"),
        ({"advertise": "127.0.0.1:0"}, "--advertise"),
        ({"cluster": ""}, "--cluster"),
        ({"cluster": "x" * 257}, "--cluster"),
        ({"lease": "10"}, "--lease", "duration"),
        ({"lease": "ten"}, "--lease", "duration"),
        ({"lease": "0s"}, "lease"),
        ({"lease": "61m"}, "lease"),
        ({"heartbeat": "900ms"}, "heartbeat"),
        ({"election_timeout": "-1s"}, "--election-timeout"),
        ({"max_clock_drift": "2"}, "drift"),
        ({"max_clock_drift": "much"}, "--max-clock-drift"),
        ({"margin": "1s"}, "margin"),
        ({"lease_reads": "maybe"}, "--lease-reads"),
        ({"command_timeout": "0s"}, "--command-timeout"),
        ({"io_threads": "0"}, "--io-threads"),
        ({"busy_poll": "1s"}, "--busy-poll", "10ms"),
        ({"clients_max": "0"}, "--clients-max"),
        ({"log_level": "loud"}, "--log-level"),
        ({"bogus": "1"}, "--bogus"),
        ({"config": "/does/not/exist.toml"}, "/does/not/exist.toml"),
    ]
    for changes, *texts in wrong:
        serve(cluster, good_flags(cluster, **changes), USAGE, *texts)
    count = len(wrong) + attack_files(cluster)
    # What only shows when the node starts.
    taken = f"127.0.0.1:{cluster.nodes[0].port}"
    serve(cluster, good_flags(cluster, listen=taken), FAILURE, taken, "--listen")
    taken = f"127.0.0.1:{cluster.nodes[0].peer_port}"
    serve(cluster, good_flags(cluster, data_dir=os.path.join(cluster.folder, "second"),
                              peers=f"1={taken}"), FAILURE, taken)
    serve(cluster, good_flags(cluster, data_dir="/dev/null/x"), FAILURE, "/dev/null/x")
    print(f"{count + 3} wrong settings were refused")


def attack_files(cluster):
    """Settings files."""
    path = os.path.join(cluster.folder, "wrong.toml")
    contents = [
        ("id = \n", "line 1"),
        ("id = 1\nunheard_of = 2\n", "unheard_of"),
        ("id = \"one\"\n", "'one'"),
        ("peers = [1, 2]\n", "peers"),
        ("\x00\xff\xfe", path),
    ]
    for content, text in contents:
        with open(path, "w", encoding="latin-1") as file:
            file.write(content)
        serve(cluster, good_flags(cluster, id=None, config=path), USAGE, text)
    return len(contents)
