#!/usr/bin/env python3
"""Attacks on the peer ports of three kinds of group: plain on loopback, with a key, with certificates.

peer_attacks.json has the attacks. On top of them each kind of message between peers is sent with each wrong credential.
None may move a term, a leader, a member, a commit or a key, end a process, or take more than MEMORY_BYTES."""

import contextlib
import ctypes
import json
import os
import socket
import ssl
import subprocess
import tempfile

import cluster as cluster_module
import resp
from attacked import Attacked
from authority import Authority
from bad_peers import ends
from cluster import Cluster, Failed, check
from peer_forge import Forger, Schema

HERE = os.path.dirname(os.path.abspath(__file__))
# What all attacks together may make a node's memory grow by.
MEMORY_BYTES = 64 << 20
HUGE = 1 << 61
ANOTHER_USER = 65534
ALPN = "leasehold-peer/1"
# The only one of a group's key: with another one the key would not even be looked at.
KEY_CIPHER = "TLS_AES_128_GCM_SHA256"
with open(os.path.join(HERE, "peer_attacks.json"), encoding="utf-8") as attacks_file:
    ATTACKS = json.load(attacks_file)


class Plain:
    """A socket without any proof."""

    def __init__(self, name, user=None):
        self.name = name
        self.user = user

    def send(self, port, data):
        """In a process of its own, which may belong to another user."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if self.user is not None:
                    libc = ctypes.CDLL(None, use_errno=True)
                    if libc.setresuid(self.user, self.user, self.user) != 0:
                        os._exit(2)
                with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                    with contextlib.suppress(OSError):
                        connection.sendall(data)
                    ends(connection, 0.05)
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        check(status == 0, f"{self.name}: the attacker's process failed")


class WrongKey:
    """TLS with a key that is not the group's, under the name of the group's key or of its own."""

    def __init__(self, name, identity, key):
        self.name = name
        self.identity = identity
        self.key = key

    def send(self, port, data):
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3", "-psk", self.key,
                   "-psk_identity", self.identity, "-alpn", ALPN, "-quiet",
                   "-ciphersuites", KEY_CIPHER]
        subprocess.run(command, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10,
                       check=False)


class Certificate:
    """TLS with a certificate, or without one."""

    def __init__(self, name, certificate=None, key=None, alpn=ALPN):
        self.name = name
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        if alpn:
            self.context.set_alpn_protocols([alpn])
        if certificate:
            self.context.load_cert_chain(certificate, key)

    def send(self, port, data):
        with contextlib.suppress(OSError, ssl.SSLError):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
                with self.context.wrap_socket(raw) as connection:
                    connection.sendall(data)
                    ends(connection, 0.05)


class Raw(Plain):
    """Bytes as they are, whatever is asked to be sent: what was recorded, or cut off."""

    def __init__(self, name, data):
        super().__init__(name)
        self.data = data

    def send(self, port, data):
        super().send(port, self.data)


def cluster_id(name, peers):
    """As net/handshake.cc has it."""
    value = 0xcbf29ce484222325
    text = f"leasehold-cluster-1\n{len(name)}:{name}\n"
    for number, address in sorted((int(n), a) for n, a in (p.split("=") for p in peers.split(","))):
        text += f"{number}={len(address)}:{address}\n"
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value or 1


class Attacks(Attacked):
    def __init__(self, cluster, schema, every_value=False):
        self.every_value = every_value
        self.schema = schema
        leader = cluster.wait_leader()
        with leader.client() as client:
            check(client.call("SET", "k", "good") == "OK", "the group does not write")
        for node in cluster.nodes:
            cluster.wait_caught_up(node)
        super().__init__(cluster)

    def forger(self, target):
        status = target.status()
        return Forger(self.schema, status, cluster_id("default", self.cluster.peers)), status

    def value(self, value, status, sender, target):
        if isinstance(value, dict):
            return {name: self.value(one, status, sender, target) for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one, status, sender, target) for one in value]
        if not isinstance(value, str):
            return value
        name, _, more = value.partition("+")
        known = {"term": status["term"], "commit": status["commit"], "huge": HUGE, "sender": sender,
                 "target": target.id}
        return known[name] + int(more or 0) if name in known else value

    def one(self, attack, attacker, target):
        forger, status = self.forger(target)
        others = [node.id for node in self.cluster.others(target)]
        sender = attack.get("sender", others[0])
        sender = target.id if sender == "target" else sender
        data = forger.refusal(attack["refusal"]) if "refusal" in attack else forger.hello(
            sender, target.id, **self.value(attack.get("hello", {}), status, sender, target))
        for _ in range(attack.get("repeat", 1) if "kind" in attack else 0):
            values = {name: self.value(one, status, sender, target) for name, one in attack["values"].items()}
            data += forger.message(attack["kind"], values, attack.get("payload", "").encode())
        attacker.send(target.peer_port, data)
        self.count += 1
        self.look(f"{attack['name']} by {attacker.name} at {target}")

    @staticmethod
    def named(name):
        return next(attack for attack in ATTACKS if attack["name"] == name)

    def listed(self, attackers):
        for attack in ATTACKS:
            for attacker in attackers:
                target = self.cluster.nodes[self.count % len(self.cluster.nodes)]
                self.one(attack, attacker, target)

    def generated(self, attackers):
        """Each kind of message, by each attacker, with everything at its largest or at nothing."""
        for field, kind in self.schema.payloads():
            for attacker in attackers:
                for value in (HUGE, 0) if self.every_value else ((HUGE, 0)[self.count % 2],):
                    values = {name: self.filled(spec, value)
                              for name, spec in self.schema.messages[kind].items()}
                    attack = {"name": f"{field}_full_of_{'huge' if value else 'zero'}", "kind": field, "values": values}
                    self.one(attack, attacker, self.cluster.nodes[self.count % len(self.cluster.nodes)])

    def filled(self, spec, value):
        kind, _, repeated = spec
        one = value
        if kind in self.schema.messages:
            one = {name: self.filled(inner, value) for name, inner in self.schema.messages[kind].items()}
        elif kind == "bytes":
            one = "x" * 100 if value else ""
        elif kind == "bool":
            one = 1 if value else 0
        elif kind == "uint32":
            one = 3 if value else 0
        return [one] if repeated else one

    def end(self, kind):
        self.check_memory("all of them", MEMORY_BYTES)
        for node in self.cluster.nodes:
            with node.client() as client:
                check(client.call("SET", f"after-{node.id}", "x") == "OK", f"{node} does not write any more")
                check(client.call("GET", "k") == b"good", f"{node} has lost a key")
        print(f"{kind}: {self.count} attacks, nothing moved", flush=True)


def acknowledgements_for_a_stopped_follower(cluster, schema, attacker):
    """Both followers stand still; somebody says in the name of one that it has everything."""
    leader = cluster.wait_leader()
    followers = cluster.others(leader)
    for follower in followers:
        follower.pause()
    try:
        status = leader.status()
        forger = Forger(schema, status, cluster_id("default", cluster.peers))
        with leader.client(timeout=0.5) as client:
            client.send_raw(resp.encode("SET", "k", "never"))
            data = forger.hello(followers[0].id, leader.id)
            for index in range(status["commit"], status["commit"] + 20):
                data += forger.message("append_reply", {
                    "request_term": status["term"], "term": status["term"], "promised": 1, "round": 1,
                    "matched": 1, "index": index})
            attacker.send(leader.peer_port, data)
            try:
                reply = client.read_reply(0.5)
            except resp.TimedOut:  # as it has to be
                reply = None
        check(reply != "OK", f"{leader} acknowledged a write that it alone has")
    finally:
        for follower in followers:
            follower.resume()
    cluster.wait_leader()


@contextlib.contextmanager
def group(options, flags, each=lambda node: []):
    # A comparison of the states would commit something in the middle of an attack.
    flags = [*flags, "--compare-interval", "0s"]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        for node in cluster.nodes:
            node.flags += each(node)
        cluster.start()
        yield cluster


def attack(options, kind, cluster, attackers):
    schema = Schema(options.proto)
    attacks = Attacks(cluster, schema, options.full)
    attacks.listed(attackers)
    attacks.generated(attackers)
    attacks.end(kind)
    acknowledgements_for_a_stopped_follower(cluster, schema, attackers[0])
    cluster.wait_leader()
    print(f"{kind}: no write was acknowledged for a follower that stood still", flush=True)


def plain(options):
    if os.geteuid() != 0:
        print("plain: left out: only root can attack as another user")
        return
    with group(options, []) as cluster:
        attack(options, "plain on loopback", cluster, [Plain("another user", ANOTHER_USER)])


def control(options):
    """The attacks are real: one by the node's own user, whom plain loopback trusts, moves a term."""
    with group(options, []) as cluster:
        attacks = Attacks(cluster, Schema(options.proto))
        moved = False
        for target in cluster.nodes:
            try:
                attacks.one(attacks.named("an_append_of_the_next_term"), Plain("the same user"), target)
            except (Failed, resp.ConnectionLost):
                moved = True
        check(moved, "the forged messages do not reach anybody: the attacks show nothing")
    print("control: the same user moves a term", flush=True)


def key(options, folder):
    path = os.path.join(folder, "key")
    with open(path, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as file:
        file.write("5" * 64 + "\n")
    with group(options, ["--peer-key", path]) as cluster:
        recorded = record_a_dialler(cluster)
        attack(options, "key", cluster, [
            Plain("a plain socket"),
            WrongKey("another key", "leasehold/0123456789abcdef", "6" * 64),
            WrongKey("another key under the key's name", key_name_in(recorded), "6" * 64),
            Certificate("TLS without a key"),
            Raw("a recorded handshake", recorded),
            Raw("half of a recorded handshake", recorded[:len(recorded) // 2]),
        ])


def certificates(options, folder):
    """A group with certificates; attackers with every wrong one."""
    ca, other, elsewhere = (Authority(options.binary, os.path.join(folder, at), cluster) for at, cluster in (
        ("ca", "default"), ("other", "default"), ("elsewhere", "elsewhere")))
    for number in (1, 2, 3, 9):
        ca.node(number)
    revoked = ca.node(8)
    ca("revoke", revoked[0])

    def flags(node):
        certificate, private = ca.pair(f"node-{node.id}")
        return ["--tls-cert", certificate, "--tls-key", private, "--tls-ca", ca.path("ca.pem"),
                "--tls-crl", ca.path("crl.pem"), *options.client_flags]
    with group(options, [], flags) as cluster:
        recorded = record_a_dialler(cluster)
        attack(options, "certificates", cluster, [
            Plain("a plain socket"),
            Certificate("no certificate"),
            Certificate("a certificate of another authority", *other.node(1)),
            Certificate("a certificate of another cluster", *elsewhere.node(1)),
            Certificate("a user's certificate", *ca.client("mallory")),
            Certificate("a certificate of a node that is no member", *ca.pair("node-9")),
            Certificate("an expired certificate", *ca.expired(ca.pair("node-9"))),
            Certificate("a revoked certificate", *revoked),
            WrongKey("a key", "leasehold/0123456789abcdef", "6" * 64),
            Raw("a recorded handshake", recorded),
            Raw("half of a recorded handshake", recorded[:len(recorded) // 2]),
        ])


def record_a_dialler(cluster):
    """The first bytes that a node sends to the port of another one, which is not running."""
    leader = cluster.wait_leader()
    victim = cluster.others(leader)[0]
    victim.kill()
    with socket.create_server(("127.0.0.1", victim.peer_port)) as listener:
        listener.settimeout(10)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(1)
            recorded = connection.recv(1 << 16)
    victim.start()
    cluster.wait_leader()
    check(recorded[:1] == b"\x16", "the dialler does not begin with TLS")
    return recorded


def key_name_in(recorded):
    at = recorded.find(b"leasehold/")
    check(at >= 0, "the recorded hello names no key")
    return recorded[at:at + 26].decode()


def run(options):
    options.client_flags = ["--client-tls", "off"]  # the test's own clients speak plainly
    with tempfile.TemporaryDirectory(prefix="leasehold-attacks-") as folder:
        control(options)
        plain(options)
        key(options, folder)
        certificates(options, folder)


if __name__ == "__main__":
    def arguments(parser):
        parser.add_argument("--proto", default=os.path.join(HERE, "../../wire/raft.proto"),
                            help="the schema of the messages")
        parser.add_argument("--full", action="store_true", help="each message at its largest and at nothing")
    cluster_module.main(__doc__.splitlines()[0], run, arguments)
