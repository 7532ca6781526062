"""Three kinds of group with something to steal, and the attackers of their client ports with whatever each can show."""

import contextlib
import itertools
import json
import os
import re
import socket
import ssl
import threading

import resp
from attacked import Attacked, standing_of
from authority import Authority
from cluster import Cluster, check, wait_for

TREASURE = "the treasure of ann"
# One for which a pattern may take many steps.
LONG_KEY = "app:" + "a" * 10000
KEYS = {"app:k": TREASURE, "app:n": "7", "app:held": "ann", LONG_KEY: "long"}
SESSION_ERRORS = re.compile(r'"activity":\d+,?')
# Of --client-memory-max: floods need not be larger than the smallest that a node takes.
BUDGET = "64M"
ROOT = ("root", "the password of root")
# Those that can log in, and two that cannot. `ann` is the victim.
USERS = {
    "ann": "on ~app:* &* +@all -@cluster-admin -@admin -@dangerous -@lease-others",
    "mallory": "on ~mallory:* &__keyspace@0__:mallory:* +@all -@cluster-admin -@admin -@dangerous -@lease-others +keys",
    # Rights for keys that take as many steps as possible to be refused.
    "costly": "on ~*a*a*a*a*a*a*a*b +@all -@cluster-admin -@admin -@dangerous -@lease-others",
    "nobody": "on",
    "retired": "off ~* &* +@all",
    "prober": "on +leasehold|member +leasehold|backup",
}


def password_of(user):
    return ROOT[1] if user == ROOT[0] else f"the password of {user}"


def blind(certificate=None):
    """Believes every server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return context


class Attacker:
    """`kind`: powerless (nothing may be answered but refusals), nobody (a user without a right), mallory (a user with
    other keys), costly, prober, root (an operator), or local (of this machine, where the group is open to it)."""

    def __init__(self, name, kind="powerless", tls=None, login=None, host="127.0.0.1"):
        self.name = name
        self.kind = kind
        self.tls = tls
        self.login = login
        self.host = host
        # Each of its connections costs a check of a password.
        self.guesses = kind == "powerless" and login is not None

    def connect(self, node, timeout=10):
        """None: it is not even let in."""
        try:
            client = resp.Client(node.port, timeout, self.host, self.tls)
            if self.login:
                reply = client.call("AUTH", *self.login)
                check(self.kind != "powerless" or isinstance(reply, resp.RespError), f"{self.name} has logged in")
                check(self.kind == "powerless" or reply == "OK", f"{self.name} cannot log in: {reply}")
        except resp.ConnectionLost:
            check(self.kind == "powerless", f"{self.name} is not let in")
            return None
        return client


class Scene(Attacked):
    """A group with keys, a lease, a session and users of somebody else."""

    def __init__(self, kind, cluster, attackers, with_users):
        self.kind = kind
        self.with_users = with_users
        self.attackers = attackers
        self.cluster = cluster
        self.operators = {node.id: node.client(30) for node in cluster.nodes}
        self.session = None
        self.furnish()
        super().__init__(cluster, 0)

    def operator(self, node=None):
        return self.operators[(node or self.cluster.nodes[0]).id]

    def leader(self):
        return self.cluster.node(self.status(self.cluster.nodes[0])["leader"])

    def of(self, kinds):
        return [one for one in self.attackers if one.kind in kinds]

    def furnish(self):
        """Lays out what there is to steal, or what of it is gone."""
        node = self.cluster.nodes[0]
        victim = self.operator(node)
        with contextlib.ExitStack() as stack:
            if self.with_users:
                for user, rules in USERS.items():
                    words = ["reset", ">" + password_of(user), *rules.split()]
                    if victim.call("ACL", "GETUSER", user) is None:
                        check(victim.call("ACL", "SETUSER", user, *words) == "OK", f"ACL SETUSER {user}")
                victim = stack.enter_context(resp.Client(node.port, 30, tls=node.tls, user=("ann", password_of("ann"))))
            extra = [key for key in self.operator(node).call("KEYS", "*") if key.decode() not in KEYS]
            if extra:
                self.operator(node).call("DEL", *extra)
            check(victim.call("MSET", *itertools.chain(*KEYS.items())) == "OK", "MSET")
            if self.operator(node).call("LEASE.INFO", "NAME", "lock") is None:
                check(isinstance(victim.call("LEASE.GRANT", "3600000", "NAME", "lock"), list), "LEASE.GRANT")
            check(victim.call("SET", "app:held", "ann", "LEASE", "lock") == "OK", "SET LEASE")
            if self.session is None or victim.call("LEASEHOLD", "SESSION", "TOUCH", self.session) != "OK":
                self.session = victim.call("LEASEHOLD", "SESSION", "OPEN")
            check(isinstance(self.session, int), f"no session: {self.session}")
        for one in self.cluster.nodes:
            self.cluster.wait_caught_up(one)

    def fill(self, words, node):
        """With the numbers of this group in the places of their names."""
        known = {"{session}": lambda: self.session,
                 "{other}": lambda: next(one.id for one in self.cluster.nodes if one is not self.leader()),
                 "{victim}": lambda: self.operator(node).call("CLIENT", "ID"),  # a rightful connection
                 "{long}": lambda: "x" * 300}
        return [known[word]() if word in known else word for word in words]

    def status(self, node):
        check(node.running, f"{node} ended")
        reply = self.operator(node).call("LEASEHOLD", "STATUS")
        check(isinstance(reply, bytes), f"{node}: LEASEHOLD STATUS answered {reply!r}")
        return json.loads(reply)

    def standing(self):
        found = {}
        for node in self.cluster.nodes:
            check(node.running, f"{node} ended")
            status, acl, keys, lease, leases, sessions, me = self.operator(node).pipeline([
                ("LEASEHOLD", "STATUS"), ("ACL", "LIST"), ("KEYS", "*"), ("LEASE.INFO", "NAME", "lock"),
                ("LEASE.LIST",), ("LEASEHOLD", "SESSION", "LIST"), ("CLIENT", "ID")])
            check(isinstance(status, bytes), f"{node}: LEASEHOLD STATUS answered {status!r}")
            backups = os.path.join(node.data_dir, "backups")
            found[node.id] = {
                **standing_of(json.loads(status)),
                "users": acl, "keys": sorted(keys),
                "values": self.operator(node).call("MGET", *sorted(keys)) if keys else [],
                "lease": lease and lease[:6], "leases": [one[:5] for one in leases],
                "sessions": SESSION_ERRORS.sub("", sessions.decode()),
                "backups": sorted(os.listdir(backups)) if os.path.isdir(backups) else [],
                "connection": me}
        return found

    def again(self):
        """What a rightful user has changed is not what an attack has moved."""
        self.before = self.standing()


def set_users(cluster, operator):
    check(operator.call("ACL", "SETUSER", ROOT[0], "on", ">" + ROOT[1], "~*", "&*", "+@all") == "OK", "root")
    check(operator.call("AUTH", *ROOT) == "OK", "AUTH")
    check(operator.call("ACL", "SETUSER", "default", "off") == "OK", "default")
    for node in cluster.nodes:
        def is_closed(node=node):
            with node.client() as client:
                return getattr(client.call("PING"), "word", "") == "NOAUTH"
        wait_for(f"{node} to take no client without a user", 10, is_closed)
        node.user = ROOT


def own_address():
    """An address of this machine that is none of the loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # sends nothing
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


@contextlib.contextmanager
def plain(options):
    """Open to this machine, in protected mode: who comes from elsewhere is a stranger."""
    with Cluster(options.binary, flags=["--client-memory-max", BUDGET], keep=options.keep) as cluster:
        for node in cluster.nodes:
            node.flags += ["--listen", f"0.0.0.0:{node.port}"]
        cluster.start()
        attackers = [Attacker("a client of this machine", "local")]
        address = own_address()
        if address:
            attackers.append(Attacker("another machine", host=address))
        else:
            print("plain: nobody attacks from elsewhere: this machine has no other address")
        yield Scene("plain", cluster, attackers, False)


@contextlib.contextmanager
def key(options):
    """Peers with a key; clients without TLS, with users and passwords."""
    with Cluster(options.binary, flags=["--client-memory-max", BUDGET], keep=options.keep) as cluster:
        path = os.path.join(cluster.folder, "key")
        with open(path, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write("5" * 64 + "\n")
        for node in cluster.nodes:
            node.flags += ["--peer-key", path]
        leader = cluster.start()
        with leader.client() as operator:
            set_users(cluster, operator)
        yield Scene("key", cluster, [Attacker("no credential"), *logins()], True)


def logins(tls=None, prefix=""):
    return [
        Attacker(prefix + "a wrong password", login=("ann", "a guess"), tls=tls),
        Attacker(prefix + "a user that is off", login=("retired", password_of("retired")), tls=tls),
        *(Attacker(prefix + f"the user {name}", name, login=(name, password_of(name)), tls=tls)
          for name in ("nobody", "mallory", "costly", "prober", ROOT[0])),
    ]


@contextlib.contextmanager
def certificates(options):
    """TLS on both ports, certificates that name users, and passwords."""
    with Cluster(options.binary, flags=["--client-memory-max", BUDGET], keep=options.keep) as cluster:
        ca = Authority(options.binary, os.path.join(cluster.folder, "ca"))
        other = Authority(options.binary, os.path.join(cluster.folder, "other"))
        elsewhere = Authority(options.binary, os.path.join(cluster.folder, "elsewhere"), "elsewhere")
        revoked = ca.revoked("ann")
        for node in cluster.nodes:
            certificate, private = ca.node(node.id)
            node.flags += ["--tls-cert", certificate, "--tls-key", private, "--tls-ca", ca.path("ca.pem"),
                           "--tls-crl", ca.path("crl.pem")]
            node.tls = ssl.create_default_context(cafile=ca.path("ca.pem"))
        leader = cluster.start()
        with leader.client() as operator:
            set_users(cluster, operator)
        nobodys = ca.client("nobody")
        attackers = [
            Attacker("plain bytes"),
            Attacker("TLS without a certificate", tls=blind()),
            Attacker("a certificate of another authority", tls=blind(other.client("ann"))),
            Attacker("a certificate of another cluster", tls=blind(elsewhere.client("ann"))),
            Attacker("a revoked certificate", tls=blind(revoked)),
            Attacker("an expired certificate", tls=blind(ca.expired(ca.client("ann")))),
            Attacker("a node's certificate", tls=blind(ca.node(9))),
            Attacker("a certificate of a user that does not exist", tls=blind(ca.client("ghost"))),
            Attacker("a certificate of a user that is off", tls=blind(ca.client("retired"))),
            Attacker("a certificate of a user without rights", "nobody", tls=blind(nobodys)),
            Attacker("a certificate of a user with other keys", "mallory", tls=blind(ca.client("mallory"))),
            *logins(blind(), "TLS, "),
        ]
        scene = Scene("certificates", cluster, attackers, True)
        # Another user's password, guessed behind one's own certificate.
        scene.attackers.append(Impostor("a certificate of nobody and a guess for ann", blind(nobodys)))
        yield scene


class Impostor(Attacker):
    def __init__(self, name, tls):
        super().__init__(name, "nobody", tls)
        self.guesses = True

    def connect(self, node, timeout=10):
        client = super().connect(node, timeout)
        check(isinstance(client.call("AUTH", "ann", "a guess"), resp.RespError), f"{self.name} has logged in")
        return client


class Recorder:
    """Stands between a rightful client and a node, and keeps what the client sends. Context manager."""

    def __init__(self, node):
        self._node = node
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.sent = b""
        self._threads = []

    def __enter__(self):
        self._start(self._serve)
        return self

    def __exit__(self, *_):
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, target, *words):
        self._threads.append(threading.Thread(target=target, args=words, daemon=True))
        self._threads[-1].start()

    def _serve(self):
        client, _ = self._listener.accept()
        node = socket.create_connection(("127.0.0.1", self._node.port), timeout=10)
        client.settimeout(10)
        self._start(self._pass, node, client, False)
        self._pass(client, node, True)

    def _pass(self, source, target, keep):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if keep:
                    self.sent += data
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


GROUPS = {"plain": plain, "key": key, "certificates": certificates}
