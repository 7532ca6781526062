"""Attacks on a client port that are more than a few requests. Each gets a Flood and calls `hold` while all that it has
is under way, and returns with nothing of it open."""

import contextlib
import os
import socket
import ssl
import subprocess
import time

import resp
from client_scene import Recorder, blind
from cluster import check, wait_for

LONG_KEY = b"a" * 60000


class Flood:
    def __init__(self, scene, node, attacker, spec, hold):
        self.scene = scene
        self.node = node
        self.attacker = attacker
        self.spec = spec
        self.hold = hold

    @contextlib.contextmanager
    def clients(self):
        """As many as the attack names, of those that are let in."""
        with contextlib.ExitStack() as stack:
            made = [self.attacker.connect(self.node) for _ in range(self.spec["connections"])]
            yield [stack.enter_context(client) for client in made if client]

    def send_all(self, data):
        """The same bytes on every connection. A node may close it in the midst."""
        with self.clients() as clients:
            for client in clients:
                with contextlib.suppress(resp.ConnectionLost, resp.TimedOut):
                    client.send_raw(data)
            self.hold()


def unfinished_values(flood):
    """Values of which the end never comes."""
    size = flood.spec["bytes"]
    flood.send_all(b"*3\r\n$3\r\nSET\r\n$9\r\nmallory:k\r\n$%d\r\n" % size + b"x" * (size - 100))


def queues(flood):
    """Transactions that are never executed."""
    flood.send_all(resp.encode("MULTI") + resp.encode("SET", "mallory:k", b"x" * flood.spec["bytes"]))


def queues_of_small_commands(flood):
    flood.send_all(resp.encode("MULTI") + resp.encode("PING") * flood.spec["commands"])


def watched_keys(flood):
    keys = [b"mallory:%06d" % i + b"k" * 1000 for i in range(flood.spec["commands"])]
    flood.send_all(resp.encode("WATCH", *keys))


def many_words(flood):
    """A request of empty words that lacks the last one."""
    flood.send_all(b"*65536\r\n" + b"$0\r\n\r\n" * 65535)


def many_headers(flood):
    """Requests of one announced word too many, or of none that comes."""
    for data in (b"*65536\r\n", b"*1\r\n$16777216\r\n", b"*2147483647\r\n", b"*65536\r\n$16777216\r\n"):
        flood.send_all(data)


def strangers_words(flood):
    """As much as a stranger may send in one request, without its end."""
    flood.send_all(b"*10\r\n" + (b"$16384\r\n" + b"x" * 16384 + b"\r\n") * 9)


def lines_without_end(flood):
    flood.send_all(b"SET mallory:k " + b"x" * 65000)


def subscriptions(flood):
    flood.send_all(resp.encode("SUBSCRIBE", *(b"__keyspace@0__:mallory:%04d" % i + b"x" * 950 for i in range(1000))))


def unread_replies(flood):
    flood.send_all(resp.encode("PING", b"x" * 10000) * flood.spec["commands"])


def guesses(flood):
    """Passwords are guessed on many connections, and a user logs in meanwhile."""
    with flood.clients() as clients:
        for client in clients:
            client.send_raw(b"".join(resp.encode("AUTH", "ann", f"guess {i}") for i in range(flood.spec["commands"])))
        flood.hold()
        wait_for("a user to log in beside", flood.spec["seconds"], lambda: logs_in(flood), 0.05)


def logs_in(flood):
    user = next(one for one in flood.scene.attackers if one.kind == "mallory")
    with contextlib.closing(resp.Client(flood.node.port, 10, tls=user.tls)) as client:
        return client.call("AUTH", *user.login) == "OK" if user.login else client.call("PING") == "PONG"


def long_keys(flood):
    """Keys for which the patterns of the user take as many steps as they may."""
    with flood.clients() as clients:
        for client in clients:
            client.send_raw(resp.encode("GET", LONG_KEY) * flood.spec["commands"])
        flood.hold()
        for client in clients:
            for _ in range(flood.spec["commands"]):
                reply = client.read_reply(flood.spec["seconds"])
                check(isinstance(reply, resp.RespError), f"a key that no pattern permits is read: {str(reply)[:100]}")


def costly_searches(flood):
    with flood.clients() as clients:
        for client in clients:
            client.send_raw(resp.encode("KEYS", "*a*a*a*a*a*a*a*b") * flood.spec["commands"])
        flood.hold()


def handshakes_without_end(flood):
    """Connections that begin a handshake of TLS and stop."""
    with contextlib.ExitStack() as stack:
        for i in range(flood.spec["connections"]):
            one = stack.enter_context(socket.create_connection((flood.attacker.host, flood.node.port), timeout=10))
            with contextlib.suppress(OSError):
                one.sendall(b"\x16\x03\x01\x02\x00\x01"[:1 + i % 6])
        flood.hold()


def records_of_tls(flood):
    """What is no handshake of TLS, though it begins so; at a plain port it is no request either."""
    hello = ssl.MemoryBIO()
    tls = blind().wrap_bio(ssl.MemoryBIO(), hello)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = hello.read()
    plain = flood.scene.kind != "certificates"
    for data in (hello, hello[:len(hello) // 2], hello + hello, hello[:5] + b"\xff" * 600,
                 b"\x16\x03\x01\xff\xff" + b"A" * 70000, b"\x16" * 3000,
                 b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x15\x03\x03\x00\x02\x02\x28" * 100,
                 b"\x17\x03\x03\x00\x40" + b"B" * 64, b"\x14\x03\x03\x00\x01\x01" * 100):
        deaf(flood.node, flood.attacker.host, data)
        if plain:
            check(is_closed(flood.node, flood.attacker.host, data), f"{data[:8]!r} of TLS: the connection stays open")
    flood.hold()


def is_closed(node, host, data):
    """Sends bytes and waits. Whether the node closes the connection."""
    with contextlib.suppress(ConnectionError):
        with socket.create_connection((host, node.port), timeout=10) as raw:
            raw.sendall(data)
            try:
                while raw.recv(1 << 16):
                    pass
            except socket.timeout:
                return False
    return True


def deaf(node, host, data):
    """Sends bytes as they are, and no more. Returns what comes until the connection ends or is silent."""
    said = b""
    with contextlib.suppress(OSError):
        with socket.create_connection((host, node.port), timeout=10) as raw:
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            raw.settimeout(1)
            while got := raw.recv(1 << 16):
                said += got
    return said


def certificate_as_text(flood):
    """A certificate without its handshake is a text like any other."""
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-keyout", os.devnull, "-subj", "/CN=ann", "-addext",
                           "subjectAltName=URI:leasehold://default/user/ann", "-outform", "DER"],
                          capture_output=True, check=True)
    for words in (("AUTH", "ann", done.stdout), ("AUTH", done.stdout), ("HELLO", "3", "AUTH", "ann", done.stdout)):
        client = flood.attacker.connect(flood.node)
        if client is None:
            continue
        with client, contextlib.suppress(resp.ConnectionLost):
            reply = client.call(*words)
            check(isinstance(reply, resp.RespError), f"a certificate is taken for a password: {reply!r}")
    for data in (done.stdout, done.stdout + resp.encode("SET", "app:k", "evil")):
        deaf(flood.node, flood.attacker.host, data)
    flood.hold()


def replayed(flood):
    """The bytes of a user's session with TLS, again, whole and from each of its records on."""
    operator = flood.scene.cluster.nodes[0].user
    with Recorder(flood.node) as recorder:
        with resp.Client(recorder.port, 10, tls=blind(), user=operator) as client:
            check(client.call("SET", "beside", "x") == "OK", "SET of a user")
    sent, records = recorder.sent, [0]
    while records[-1] + 5 <= len(sent):
        at = records[-1]
        records.append(at + 5 + int.from_bytes(sent[at + 3:at + 5], "big"))
    check(len(records) > 4, f"the session has {len(records)} records only")
    flood.scene.operator().call("SET", "beside", "y")
    flood.scene.again()
    for start in records[:-1]:
        for end in {records[-1], records[records.index(start) + 1]}:
            deaf(flood.node, flood.attacker.host, sent[start:end])
    flood.hold()


def probing(flood):
    """MEMBER ADD tells the same whatever answers at an address."""
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as closed:
        ports = [silent.getsockname()[1], closed.getsockname()[1]]
        closed.close()
        leader = flood.scene.leader()
        ports.append(flood.scene.cluster.others(leader)[0].port)
        answers = set()
        with flood.attacker.connect(leader, 30) as client:
            for port in ports:
                reply = client.call("LEASEHOLD", "MEMBER", "ADD", f"9=127.0.0.1:{port}")
                check(isinstance(reply, resp.RespError), f"MEMBER ADD of nothing: {reply!r}")
                answers.add(reply.text.replace(str(port), "PORT"))
        check(len(answers) == 1, f"MEMBER ADD tells what it found: {answers}")
    flood.hold()


ODD_RULES = (
    ["~" + "x" * 70000], ["~k%d" % i for i in range(10000)], ["+" + "x" * 16000000], [">" + "p" * 10000],
    [">%d" % i for i in range(20)], ["~" + "*a" * 40000], ["#" + "z" * 64], ["#scrypt$" + "9" * 5000], ["(+@all"],
    ["%RWX~k"], ["\0", "~\0"], ["~a b"], ["+get|" * 1000], ["+@" + "a" * 5000],
)


def rules_without_end(flood):
    """Texts of ACL that are huge, odd or costly."""
    with flood.attacker.connect(flood.node, 30) as client:
        for rules in ODD_RULES:
            reply = client.call("ACL", "SETUSER", "evil", *rules)
            check(isinstance(reply, resp.RespError) and len(reply.text) < 2000,
                  f"ACL SETUSER evil {str(rules)[:50]} was answered {str(reply)[:200]}")
        for name in ("x" * 200, "a b", "", "\0"):
            reply = client.call("ACL", "SETUSER", name, "on")
            check(isinstance(reply, resp.RespError), f"ACL SETUSER {name[:20]!r} was answered {reply!r}")
    flood.hold()


def slow_bytes(flood):
    """A byte at a time."""
    data = resp.encode("SET", "app:k", "evil")
    with flood.clients() as clients:
        for byte in range(len(data) - 1):
            for client in clients:
                with contextlib.suppress(resp.ConnectionLost):
                    client.send_raw(data[byte:byte + 1])
            time.sleep(0.005)
        flood.hold()
