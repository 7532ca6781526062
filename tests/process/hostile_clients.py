#!/usr/bin/env python3
"""Hostile frames from many connections and a crowd of idle ones: how a good client fares meanwhile,
and how much memory the node takes.

The good client is clients/steady_client.cc: a GET every half millisecond, whatever happens. What it
is compared with is itself without an attack. Elsewhere the attackers have machines of their own; here
they get only what nobody else wants of the processors (SCHED_IDLE), and what they make the node do
takes the rest of them.

The control tells how much of the difference is the machine's: the same attack hits another node, a
group of its own. The good client may wait for twice as long as without an attack, or for a quarter
longer than in the control.

With --tls the peers have certificates, the good client speaks TLS, and the attack goes to both ports: see
hostile_tls.py. Then a further attack opens TLS connections at a fixed rate (--handshakes)."""

import contextlib
import json
import os
import random
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile

from bad_clients import KEY_MAX, MALFORMED, REFUSED, connect_from_elsewhere, read_to_the_mark
from cluster import PATIENT, Cluster, check, main, wait_for
import hostile_tls
import resp

# A frame that breaks the connection has one of its own; the others come in pipelines.
BREAKING_SHARE = 0.1
PIPELINE = 50
RESIDENT_MAX = 400 << 20
INTERVAL_US = 500
RATIO_MAX = 2
# Of what it has while the same attack hits another node: where both share few processors, that alone may be more.
BESIDE_MAX = 1.25
# Measurements of a round without an attack, and as many while another node is attacked.
CALM = 3


def arguments(parser):
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5, help="of measurements with and without an attack")
    parser.add_argument("--idle", type=int, default=10_000, help="idle connections")
    parser.add_argument("--client", required=True, help="the steady_client program")
    parser.add_argument("--requests", type=int, default=4000, help="of one measurement")
    parser.add_argument("--floor", type=float, default=0.05,
                        help="milliseconds; a p99 below it is good whatever the ratio")
    parser.add_argument("--floor-median", type=float, default=0.05, help="the same for the median")
    parser.add_argument("--tls", action="store_true", help="attack both ports of a group with certificates")
    parser.add_argument("--connections", type=int, default=100_000, help="of an attack with --tls")
    parser.add_argument("--handshakes", type=int, default=1000, help="TLS connections a second, with --tls")
    parser.add_argument("--handshakes-client", help="the handshakes program, for --handshakes")
    parser.add_argument("--attack", type=int, help="(internal) the port to attack")
    parser.add_argument("--attack-peer", type=int, help="(internal) the peer port to attack")
    parser.add_argument("--authority", help="(internal)")
    parser.add_argument("--seed", type=int, default=1)


def hostile_pipeline(source):
    """Frames that are in step, and wrong in every other way."""
    small = [resp.encode(*words) for words, _ in REFUSED if sum(map(len, words)) < 1000]
    small += [b"*0\r\n", b"*-1\r\n", b"\r\n", b"*1\r\n$0\r\n\r\n",
              resp.encode("GET", "k" * (KEY_MAX + 1)), resp.encode("KEYS", "[" * 900),
              resp.encode("SCAN", "0", "MATCH", "*a" * 400, "COUNT", "1000"),
              resp.encode("MULTI"), resp.encode("EXEC"), resp.encode("WATCH", "a"),
              resp.encode("MGET", *["a"] * 1000), resp.encode(*["x"] * 500)]
    # What the last of them has begun, RESET ends.
    ending = [resp.encode("RESET"), resp.encode("ECHO", "end")]
    return [source.choice(small) for _ in range(PIPELINE)] + ending


def attack(port, frames, seed):
    """In a process of its own."""
    source = random.Random(seed)
    sent = 0
    while sent < frames:
        client = connect_from_elsewhere(source, port)
        # On average: PIPELINE frames in step for each (PIPELINE * share / (1 - share)) that break.
        if source.random() < BREAKING_SHARE * PIPELINE / (1 + BREAKING_SHARE * (PIPELINE - 1)):
            client.sendall(source.choice(MALFORMED)[0])
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass
            sent += 1
        else:
            client.sendall(b"".join(hostile_pipeline(source)))
            read_to_the_mark(client)
            sent += PIPELINE
        client.close()
    print(sent)


def attack_tls(options):
    """In a process of its own, until the frames and the connections are spent."""
    attacker = hostile_tls.Attacker(options.attack, options.attack_peer, options.authority, hostile_pipeline,
                                    options.seed)
    # The rest of the connections bring one frame each.
    share = max(0, options.frames - options.connections) / (options.connections * (PIPELINE + 1))
    sent = 0
    while sent < options.frames or attacker.connections < options.connections:
        sent += attacker.strike(share)
    print(sent, attacker.connections)


def measure(options, port):
    """How the good client fares now: p50, p99 and so on, in milliseconds."""
    text = subprocess.run([options.client, str(port), "a" * 20 + "1", str(INTERVAL_US),
                           str(options.requests), *([options.authority] if options.tls else [])],
                          capture_output=True, text=True, timeout=120, check=False)
    check(text.returncode == 0, f"the good client ended: {text.stderr}")
    return json.loads(text.stdout)


@contextlib.contextmanager
def attacker(options, node, rounds, seed):
    """A share of all frames, or without an end."""
    words = [sys.executable, "-B", __file__, "--binary", options.binary, "--client", options.client,
             "--attack", str(node.port), "--frames", str(options.frames // rounds if rounds else 1 << 62),
             "--seed", str(seed)]
    if options.tls:
        words += ["--tls", "--attack-peer", str(node.peer_port), "--authority", options.authority,
                  "--connections", str(options.connections // (rounds or 1))]
    with in_the_rest_of_the_processors(words) as process:
        yield process


@contextlib.contextmanager
def in_the_rest_of_the_processors(words):
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def median(measured, what):
    return statistics.median(one[what] for one in measured)


def judge(options, calm, control, hostile, attack_name="the node is attacked",
          control_name="another node is attacked"):
    """Medians over all measurements, so that one which the machine spoilt does not count."""
    for what, floor in (("p50", options.floor_median), ("p99", options.floor)):
        normal, other, own = (median(m, what) for m in (calm, control, hostile))
        print(f"{what} of a GET: {own:.3f} ms while {attack_name}, {normal:.3f} ms without "
              f"({own / normal:.2f} times), {other:.3f} ms while {control_name}")
        limit = max(RATIO_MAX * normal, BESIDE_MAX * other, floor) * options.slack
        check(own <= limit, f"the good client suffers: {what} {own:.3f} ms, not {limit:.3f} ms")


def crowd(options, port):
    count = options.idle
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    check(limit == resource.RLIM_INFINITY or limit > count + 100,
          f"only {limit} descriptors are allowed here")
    context = ssl.create_default_context(cafile=options.authority) if options.tls else None
    clients = []
    for i in range(count):
        client = socket.socket()
        client.bind((f"127.251.{i // 250 % 250}.{i % 250 + 1}", 0))
        client.settimeout(20)
        client.connect(("127.0.0.1", port))
        if context:
            client = context.wrap_socket(client, server_hostname="127.0.0.1")
        client.sendall(resp.encode("PING"))
        clients.append(client)
    for client in clients:
        check(client.recv(64) == b"+PONG\r\n", "an idle connection was not answered at first")
    return clients


def handshakes(options, leader, other):
    """TLS connections at a fixed rate, which are nothing bad."""
    calm, control, crowded, seen = [], [], [], []
    for _ in range(options.rounds):
        calm += [measure(options, leader.port) for _ in range(CALM)]
        for node, into in ((other, control), (leader, crowded)):
            # They last for a little longer than the measurements, each of which warms up first.
            seconds = 0.5 + CALM * (options.requests * INTERVAL_US / 1e6 + 0.3)
            with in_the_rest_of_the_processors(
                    [options.handshakes_client, str(node.port), options.authority, str(options.handshakes),
                     str(int(options.handshakes * seconds))]) as process:
                into += [measure(options, leader.port) for _ in range(CALM)]
                text, _ = process.communicate(timeout=120)
                check(process.returncode == 0, "a TLS connection was refused")
                if node is leader:
                    seen.append(json.loads(text))
    rate = min(one["per_second"] for one in seen)
    print(f"{rate:.0f} TLS connections a second at least; each took {median(seen, 'p50'):.2f} ms, "
          f"p99 {median(seen, 'p99'):.2f} ms")
    check(rate > 0.95 * options.handshakes, "the clients could not open as many: a smaller --handshakes")
    judge(options, calm, control, crowded, "they come to the node", "they come to another node")


def storm(options, leader, other):
    """The goals while the node is attacked. Returns what it took at most, in bytes."""
    calm, control, hostile, largest, connections = [], [], [], 0, 0
    for number in range(options.rounds):
        seed = options.seed + number
        calm += [measure(options, leader.port) for _ in range(CALM)]
        with attacker(options, other, 0, seed) as process:
            control += [measure(options, leader.port) for _ in range(CALM)]
            check(process.poll() is None, "the attacker of the other node failed")
        with attacker(options, leader, options.rounds, seed) as process:
            while process.poll() is None:
                hostile.append(measure(options, leader.port))
                largest = max(largest, leader.status()["rss_bytes"])
            check(process.returncode == 0, "the attacker failed")
            if options.tls:
                connections += int(process.stdout.read().split()[1])
    status = leader.status()
    print(f"{options.frames // options.rounds * options.rounds} hostile frames"
          + (f" over {connections} connections" if connections else "")
          + f", {status['clients']['protocol_errors']} of which ended their connection; {len(hostile)} "
          f"measurements meanwhile, {len(control)} during an attack on another node, {len(calm)} without")
    judge(options, calm, control, hostile)
    return largest


def run(options):
    if options.attack:
        return attack_tls(options) if options.tls else attack(options.attack, options.frames, options.seed)
    flags = ["--clients-max", str(options.idle + 200), *PATIENT]
    with tempfile.TemporaryDirectory(prefix="leasehold-hostile-") as folder, \
            Cluster(options.binary, flags=flags, keep=options.keep) as cluster, \
            Cluster(options.binary, size=1, flags=flags, keep=options.keep) as other_cluster:
        if options.tls:
            certificates = hostile_tls.Certificates(options.binary, folder)
            options.authority = certificates.authority
            for node in (*cluster.nodes, *other_cluster.nodes):
                node.flags += certificates.flags(node)
        leader, other = cluster.start(), other_cluster.start()
        term = leader.status()["term"]
        for node in (leader, other):
            with node.client() as client:
                for i in range(1000):
                    client.call("SET", f"{'a' * 20}{i}", "value")
        measure(options, leader.port)
        idle = crowd(options, leader.port)
        rested = leader.status()["rss_bytes"]
        print(f"{options.idle} idle connections: the node takes {rested >> 20} MiB")
        largest = storm(options, leader, other)
        print(f"at most {largest >> 20} MiB")
        check(largest < RESIDENT_MAX or options.no_memory_limit, "too much memory")
        if options.tls and options.handshakes_client:
            handshakes(options, leader, other)
        check(leader.status()["term"] == term, "the leader changed")
        for client in idle[:: max(len(idle) // 100, 1)]:
            client.sendall(resp.encode("PING"))
            check(client.recv(64) == b"+PONG\r\n", "an idle connection was forgotten")
        for client in idle:
            client.close()
        wait_for("the idle connections to be gone", 20,
                 lambda: int(leader.info()["connected_clients"]) < 10)


if __name__ == "__main__":
    main(__doc__, run, arguments)
