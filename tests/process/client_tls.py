#!/usr/bin/env python3
"""TLS on the client port, over real sockets: unmodified clients, both kinds of client at one port,
certificates that are replaced and revoked while clients are served, and clients that never end
their handshake."""

import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

from certificates import Authority
from cluster import Cluster, Skipped, check, main, wait_for
import resp

REDIS_PY = """
import redis, sys
client = redis.Redis(host="localhost", port=int(sys.argv[1]), ssl=True, ssl_ca_certs=sys.argv[2])
assert client.set("py", "yes") and client.get("py") == b"yes"
with client.pipeline() as line:
    line.incr("py-n").incr("py-n")
    assert line.execute() == [1, 2]
"""
HANDSHAKE_SECONDS = 5
CROWD = 1024


def node_flags(authority, mode, *more):
    return ["--tls-cert", authority.path("node.pem"), "--tls-key", authority.path("node.key"), "--tls-ca",
            authority.certificate, "--peer-protection", "plain", "--client-tls", mode, *more]


def context(authority, name=None):
    made = ssl.create_default_context(cafile=authority.certificate)
    if name:
        made.load_cert_chain(authority.path(f"{name}.pem"), authority.path(f"{name}.key"))
    return made


class TlsClient:
    """A connection of its own TLS, with one command at a time."""

    def __init__(self, port, tls):
        raw = socket.create_connection(("127.0.0.1", port), timeout=10)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = tls.wrap_socket(raw, server_hostname="localhost")
        self._input = b""

    def call(self, *words):
        self.socket.sendall(resp.encode(*words))
        while b"\r\n" not in self._input:
            self._more()
        line, self._input = self._input.split(b"\r\n", 1)
        if line[:1] != b"$" or line == b"$-1":
            return line
        size = int(line[1:])
        while len(self._input) < size + 2:
            self._more()
        text, self._input = self._input[:size], self._input[size + 2:]
        return text

    def _more(self):
        got = self.socket.recv(65536)
        if not got:
            raise ConnectionError("the server closed the connection")
        self._input += got

    def serial(self):
        return self.socket.getpeercert()["serialNumber"]

    def close(self):
        self.socket.close()


def refused(port, tls):
    """Whether a client is not served. In TLS 1.3 it learns that with its first read."""
    try:
        TlsClient(port, tls).call("PING")
    except (ssl.SSLError, ConnectionError):
        return True
    return False


def count(node, name):
    return int(node.info()[name])


def run_words(*words, status=0, environment=None):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **(environment or {})})
    check((done.returncode == 0) == (status == 0), f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def both_kinds(node, authority):
    """At an optional port."""
    with node.client() as plain:
        check(plain.call("SET", "kind", "plain") == "OK", "a plain client is not served")
        check(b" tls=0 " in plain.call("CLIENT", "INFO"), "CLIENT INFO of a plain client")
    client = TlsClient(node.port, context(authority))
    check(client.call("GET", "kind") == b"plain", "a client with TLS reads something else")
    check(b" tls=1 " in client.call("CLIENT", "INFO"), "CLIENT INFO of a client with TLS")
    check(count(node, "tls_clients") == 1, "INFO counts clients with TLS wrongly")
    for size in (1, 16383, 16384, 16385, 100_000, 1_000_000):
        value = os.urandom(size)
        check(client.call("SET", "v", value) == b"+OK", f"a value of {size} bytes is not written")
        check(client.call("GET", "v") == value, f"a value of {size} bytes comes back as another one")
    client.close()
    # A plain client may connect long before its first request.
    with node.client() as quiet:
        time.sleep(HANDSHAKE_SECONDS + 1.5)
        check(quiet.call("PING") == "PONG", "a plain client that said nothing was closed")


def pipelines(node, authority):
    """Many requests and replies that the sockets cannot take at once."""
    client = TlsClient(node.port, context(authority))
    value = b"p" * 20_000
    check(client.call("SET", "p", value) == b"+OK", "SET")
    requests = 2000
    sender = threading.Thread(target=lambda: client.socket.sendall(resp.encode("GET", "p") * requests))
    sender.start()
    time.sleep(0.3)  # replies wait in the server meanwhile
    expected = b"$%d\r\n%b\r\n" % (len(value), value)
    for _ in range(requests):
        got = b""
        while len(got) < len(expected):
            got += client.socket.recv(len(expected) - len(got))
        check(got == expected, "a reply is not whole")
    sender.join()
    client.close()


def unmodified_clients(node, authority):
    certs = ["--tls", "--cacert", authority.certificate]
    cli = shutil.which("redis-cli")
    if cli:
        where = [cli, "-h", "localhost", "-p", str(node.port), *certs]
        check(run_words(*where, "SET", "cli", "yes").strip() == "OK", "redis-cli")
        check(run_words(*where, "--cert", authority.path("client.pem"), "--key", authority.path("client.key"), "GET",
                        "cli").strip() == "yes", "redis-cli with a certificate")
    benchmark = shutil.which("redis-benchmark")
    if benchmark:
        said = run_words(benchmark, "-p", str(node.port), *certs, "-t", "set,get", "-n", "5000", "-c", "20", "-P", "8",
                         "--csv")
        check(said.count('"') > 8 and "Error" not in said, f"redis-benchmark: {said}")
    python = "/usr/bin/python3"  # Debian's redis-py belongs to it
    if subprocess.run([python, "-c", "import redis"], capture_output=True, check=False).returncode == 0:
        run_words(python, "-c", REDIS_PY, str(node.port), authority.certificate)


def program(binary, node, authority):
    """The commands of the program, by flags and by the environment."""
    servers = ["--servers", f"127.0.0.1:{node.port}"]
    check(run_words(binary, "put", *servers, "--tls-ca", authority.certificate, "mine", "1").strip() == "OK", "put")
    environment = {"LEASEHOLD_TLS_CA": authority.certificate, "LEASEHOLD_TLS_CERT": authority.path("client.pem"),
                   "LEASEHOLD_TLS_KEY": authority.path("client.key")}
    for command in (["get", *servers, "mine"], ["status", *servers], ["lease", "list", *servers],
                    ["lock", *servers, "a-lock", "--", "true"], ["snapshot", *servers], ["member", "list", *servers]):
        run_words(binary, *command, environment=environment)
    run_words(binary, "get", *servers, "--tls-ca", authority.path("none.pem"), "mine", status=1)


def users(node, authority):
    """A certificate names a user of this cluster; one of another cluster is refused."""
    authority.certify("alice", uri="leasehold://default/user/alice", hosts=())
    authority.certify("bob", uri="leasehold://elsewhere/user/bob", hosts=())
    client = TlsClient(node.port, context(authority, "alice"))
    check(b" certificate=alice" in client.call("CLIENT", "INFO"), "the user in a certificate is not known")
    check(refused(node.port, context(authority, "bob")), "a user of another cluster is let in")


def strangers(node, authority, other):
    """At a port with TLS only."""
    with socket.create_connection(("127.0.0.1", node.port), timeout=10) as plain:
        plain.sendall(resp.encode("SET", "pwned", "yes"))
        said = b""
        while chunk := plain.recv(4096):
            said += chunk
        check(said.startswith(b"-ERR this port speaks TLS only"), f"a plain client hears {said!r}")
    check(refused(node.port, context(authority, "revoked")), "a revoked certificate is accepted")
    with_alien = context(authority)
    with_alien.load_cert_chain(other.path("client.pem"), other.path("client.key"))
    check(refused(node.port, with_alien), "a certificate of another authority is accepted")
    check(refused(node.port, context(other)), "the client believes a server of another authority")
    for junk in (b"\x16\x03\x01\xff\xff" + b"A" * 400, b"\x16" * 3000, b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"):
        with socket.create_connection(("127.0.0.1", node.port), timeout=10) as raw:
            raw.sendall(junk)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(4096):
                pass
    client = TlsClient(node.port, context(authority))
    check(client.call("GET", "pwned") == b"$-1", "a plain client was obeyed")
    # Behind the handshake: bytes that nobody has encrypted.
    os.write(client.socket.fileno(), b"\x17\x03\x03\x00\x40" + b"B" * 64)
    try:
        check(client.socket.recv(100) == b"", "a forged record is answered")
    except (ssl.SSLError, ConnectionError):
        pass
    info = TlsClient(node.port, context(authority)).call("INFO").decode()
    for name, least in (("plain", 1), ("certificate", 2), ("refused", 1), ("protocol", 3)):
        line = next(line for line in info.split("\r\n") if line.startswith(f"tls_handshakes_failed_{name}:"))
        check(int(line.split(":")[1]) >= least, f"INFO counts too few: {line}")


def silent(node, authority):
    """Clients that never end their handshake cost nobody anything, and are closed."""
    good = TlsClient(node.port, context(authority))
    begun = time.monotonic()
    crowd = []
    for i in range(CROWD + 200):
        one = socket.create_connection(("127.0.0.1", node.port), timeout=10)
        if i % 2:
            one.sendall(b"\x16\x03\x01\x02\x00\x01")
        crowd.append(one)
    slowest = 0
    while time.monotonic() - begun < HANDSHAKE_SECONDS + 2:
        asked = time.monotonic()
        check(good.call("PING") == b"+PONG", "PING")
        slowest = max(slowest, time.monotonic() - asked)
        time.sleep(0.01)
    fresh = TlsClient(node.port, context(authority))
    check(fresh.call("PING") == b"+PONG", "a new client is not served")
    for one in crowd:
        check(one.recv(100) in (b"", b"\x15\x03\x01\x00\x02\x02\x32"), "a silent client is still connected")
        one.close()
    info = fresh.call("INFO").decode()
    check("tls_handshakes_failed_crowded:0" not in info, "nobody made room")
    check("tls_handshakes_failed_late:0" not in info, "nobody was too late")
    check("connected_clients:2\r" in info, "silent clients are still counted")
    print(f"  a good client beside {len(crowd)} silent ones: the slowest answer took {slowest * 1000:.1f} ms")


class Load(threading.Thread):
    """Counts on one connection, or on a new one each time. Every request has to be answered."""

    def __init__(self, node, tls, key, fresh):
        super().__init__()
        self._node, self._tls, self._key, self._fresh = node, tls, key, fresh
        self.done, self.trouble, self.ending = 0, None, False

    def run(self):
        client = None
        try:
            while not self.ending:
                client = client or TlsClient(self._node.port, self._tls())
                reply = client.call("INCR", self._key)
                check(reply == b":%d" % (self.done + 1), f"{self._key}: {reply!r} after {self.done}")
                self.done += 1
                if self._fresh:
                    client.close()
                    client = None
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = error


def replaced(node, authority):
    """Certificates change under load: no request is lost or refused."""
    loads = [Load(node, lambda: context(authority), f"load-{i}", fresh=i % 2) for i in range(4)]
    for load in loads:
        load.start()
    serials = set()
    for round_number in range(6):
        authority.certify("next")
        for kind in ("pem", "key"):
            os.replace(authority.path(f"next.{kind}"), authority.path(f"node.{kind}"))
        if round_number % 2:
            node.signal(signal.SIGHUP)
        else:
            said = TlsClient(node.port, context(authority)).call("LEASEHOLD", "RELOAD")
            check(b"valid until" in said, f"LEASEHOLD RELOAD: {said!r}")
        before = len(serials)

        def is_new():
            serials.add(TlsClient(node.port, context(authority)).serial())
            return len(serials) > before
        wait_for("the new certificate", 10, is_new)
    wait_for("requests under the last certificate", 20, lambda: all(load.done > 50 or load.trouble for load in loads))
    for load in loads:
        load.ending = True
    for load in loads:
        load.join()
        check(load.trouble is None, f"a request was lost: {load.trouble!r}")
    check(len(serials) == 6, "certificates were not replaced")
    print(f"  {sum(load.done for load in loads)} requests while the certificate was replaced 6 times")


def wrong_files(node, authority):
    """What cannot be read leaves what was in force."""
    serial = TlsClient(node.port, context(authority)).serial()
    shutil.copy(authority.path("node.key"), authority.path("node.key.kept"))
    shutil.copy(authority.path("client.key"), authority.path("node.key"))
    said = TlsClient(node.port, context(authority)).call("LEASEHOLD", "RELOAD")
    check(said.startswith(b"-ERR everything stays as it was: ") and b"node.key" in said, f"RELOAD: {said!r}")
    node.signal(signal.SIGHUP)
    wait_for("a line in the log", 5, lambda: "stay as they were" in node.log_text())
    check(TlsClient(node.port, context(authority)).serial() == serial, "the certificate is another")
    os.replace(authority.path("node.key.kept"), authority.path("node.key"))


def revoked(node, authority):
    """A connection ends once its certificate is revoked; others stay."""
    stolen = TlsClient(node.port, context(authority, "stolen"))
    good = TlsClient(node.port, context(authority, "client"))
    check(stolen.call("PING") == good.call("PING") == b"+PONG", "PING")
    authority.revoke("stolen")
    node.signal(signal.SIGHUP)

    def has_ended():
        try:
            stolen.call("PING")
        except (ssl.SSLError, ConnectionError, OSError):
            return True
        return False
    wait_for("the end of a connection with a revoked certificate", 10, has_ended, pause=0.1)
    check(refused(node.port, context(authority, "stolen")), "a revoked certificate is accepted")
    check(good.call("PING") == b"+PONG", "another connection ended, too")


def run(options):
    if not shutil.which("openssl"):
        raise Skipped("the openssl program is not here")
    with Cluster(options.binary, 1) as both, Cluster(options.binary, 1) as only:
        authority, other = Authority(os.path.join(both.folder, "ca")), Authority(os.path.join(both.folder, "other"))
        for name in ("node", "client", "stolen", "revoked"):
            authority.certify(name)
        other.certify("client")
        crl = authority.revoke("revoked")
        both.nodes[0].flags = node_flags(authority, "optional")
        both.start()
        node = both.nodes[0]
        both_kinds(node, authority)
        pipelines(node, authority)
        unmodified_clients(node, authority)
        program(options.binary, node, authority)
        replaced(node, authority)
        wrong_files(node, authority)
        check(node.terminate() == 0, "the end of a node with TLS")

        strict = only.nodes[0]
        strict.flags = node_flags(authority, "on", "--tls-crl", crl)
        strict.start()
        wait_for("a leader", 20, lambda: "holds the lease" in strict.log_text())
        users(strict, authority)
        strangers(strict, authority, other)
        silent(strict, authority)
        revoked(strict, authority)
        check(strict.terminate() == 0, "the end of a node with TLS")
        strict.flags = node_flags(authority, "on", "--client-certs", "required")
        strict.start()
        wait_for("a new start", 20, lambda: strict.log_text().count("holds the lease") == 2)
        check(refused(strict.port, context(authority)), "a client without a certificate is served")
        check(TlsClient(strict.port, context(authority, "client")).call("PING") == b"+PONG", "PING")


if __name__ == "__main__":
    main(__doc__, run)
