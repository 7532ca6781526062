#!/usr/bin/env python3
"""Certificates and keys are replaced in a group of three under load, and a group without protection is moved to a key
and to TLS, node by node: no request is lost, none is refused, nobody else is elected. docs/operations.md has the
steps."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import ssl
import subprocess

from client_tls import run_words
from cluster import PATIENT, Cluster, Failed, Skipped, check, main, wait_for
from history import History, Ledger
from peer_attacks import ALPN, KEY_CIPHER
import resp
from strict_load import StrictLoad

# Between a look at the states of the nodes and the next.
LOOK = 0.05
USER = "ann"


class Group:
    """Three nodes, each with a folder for its own files, and what is done to them while they are under load."""

    def __init__(self, options, cluster, users=("",)):
        self.options = options
        self.cluster = cluster
        self.nodes = cluster.nodes
        self.ledger = Ledger("kept")
        self.history = History()
        self.users = users
        self.load = None
        self.term = None
        self.reloads = itertools.count()
        for node in self.nodes:
            os.makedirs(self.path(node))

    def path(self, node, *names):
        return os.path.join(self.cluster.folder, f"files-{node.id}", *names)

    def put(self, node, name, text):
        """Replaces a file of a node in one step, as an operator should."""
        fresh = self.path(node, name + ".new")
        with open(fresh, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)
        os.replace(fresh, self.path(node, name))

    @contextlib.contextmanager
    def under_load(self, contexts=None):
        self.cluster.start()
        self.load = StrictLoad(self.nodes, self.ledger, self.history, self.users, contexts)
        with self.load:
            self.load.goes_on()
            self.load.take_figures()
            self.term = self.terms()
            yield self
        self.judge()

    def terms(self):
        states = [node.status() for node in self.nodes]
        check(len({(state["term"], state["leader"]) for state in states}) == 1, "the nodes follow different leaders")
        return states[0]["term"], states[0]["leader"]

    def reload(self, node):
        """By a signal or by the command, in turn. The log has the outcome of both."""
        before = node.log_text().count("were read again")
        if next(self.reloads) % 2:
            node.signal(signal.SIGHUP)
        else:
            with node.client() as client:
                said = client.call("LEASEHOLD", "RELOAD")
            check(isinstance(said, bytes) and b"were read again" in said, f"{node}: LEASEHOLD RELOAD: {said!r}")
        wait_for(f"{node} to read its files again", 10, lambda: node.log_text().count("were read again") > before)

    def each(self, what, change, restart=False):
        """Does one step at each node, one after the other: requests go on at all nodes after each."""
        for node in self.nodes:
            change(node)
            self.restart(node) if restart else self.reload(node)
            self.load.goes_on(2)
        print(f"  {what}", flush=True)

    def restart(self, node):
        """As operations.md has it for a rolling restart."""
        check(node.terminate() == 0, f"{node} does not end in order")
        node.start()
        self.cluster.wait_leader()
        wait_for("all nodes to be connected with each other", 10, lambda: self.proofs() is not None, LOOK)
        self.cluster.wait_caught_up(node)
        self.load.reconnect()

    def proofs(self):
        """What each node has seen of each other one, to and from it; None while a connection is missing."""
        found = {}
        for node in self.nodes:
            state = node.try_status()
            if state is None:
                return None
            for member in state["members"]:
                if member["id"] == node.id:
                    continue
                found[node.id, member["id"]] = {member["proof_to"], member["proof_from"]}
                if "" in found[node.id, member["id"]]:
                    return None
        return found

    def wait_proofs(self, expected, seconds=10):
        """Until each node has seen `expected(other)` of each other one, and nothing else: the sign to go on."""
        def probe():
            found = self.proofs()
            return found is not None and all(seen == {expected(other)} for (_, other), seen in found.items())
        try:
            wait_for("connections of the new kind", seconds, probe, LOOK)
        except Failed as error:
            raise Failed(f"{error}: {self.proofs()}") from error

    def connections(self, kind):
        return sum(int(node.info()[f"peer_connections_{kind}"]) for node in self.nodes)

    def part(self, name, same_leader=True):
        """Ends a part of the test: its figures."""
        self.load.goes_on()
        figures = self.load.take_figures()
        before, self.term = self.term, self.terms()
        # A build that is slow on purpose may be too slow for its heartbeats.
        check(not same_leader or self.options.slack > 1 or self.term == before,
              f"{name}: another leader: {before} became {self.term}")
        print(f"{name}: {figures}; the term {before[0]} became {self.term[0]}"
              if not same_leader else f"{name}: {figures}; term and leader stay", flush=True)

    def judge(self):
        check(not self.ledger.unknown and not self.ledger.not_executed, f"the ledger: {self.ledger.summary()}")
        for node in self.nodes:
            self.cluster.wait_caught_up(node)
            read, _ = self.ledger.read_back(node)
            check(read == len(self.ledger.acked), "not all is read back")
        good, said = self.history.judge(self.options.checker)
        check(good, f"the history is not linearizable: {said}")
        print(f"  {len(self.ledger.acked)} acknowledged writes are at all nodes; the history of {len(self.history)} "
              "operations is linearizable", flush=True)


class Authority:
    """Made by `leasehold cert`, as an operator does."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = folder
        self("init", "--cluster", "default")
        self.user = self.pair("client", "--user", USER)

    def __call__(self, *words):
        return run_words(self.binary, "cert", *words, "--dir", self.folder)

    def pair(self, *words):
        self(*words, "--force")
        stem = f"{words[0]}-{words[2]}"
        return os.path.join(self.folder, f"{stem}.pem"), os.path.join(self.folder, f"{stem}-key.pem")

    def text(self, name):
        with open(os.path.join(self.folder, name), encoding="ascii") as file:
            return file.read()

    def node(self, node):
        """A new certificate for it: texts of certificate and key, and the serial number."""
        certificate, key = self.pair("node", "--id", str(node.id), "--host", "127.0.0.1,localhost")
        shown = self("show", certificate)
        serial = next(line.split()[1] for line in shown.splitlines() if line.startswith("serial"))
        return self.text(os.path.basename(certificate)), self.text(os.path.basename(key)), serial


def client_context(authorities, user=None):
    made = ssl.create_default_context(cadata="".join(one.text("ca.pem") for one in authorities))
    if user is not None:
        made.load_cert_chain(*user)
    return made


class PeerDoor:
    """What a stranger finds at a peer port with a certificate or a key."""

    @staticmethod
    def opens_to_certificate(node, certificate, key):
        """Whether a node lets in who shows this. In TLS 1.3 that shows in the first bytes after the handshake: a
        ticket, or an alert."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        tls.set_alpn_protocols([ALPN])
        tls.load_cert_chain(certificate, key)
        try:
            with socket.create_connection(("127.0.0.1", node.peer_port), timeout=5) as raw:
                with tls.wrap_socket(raw) as peer:
                    peer.settimeout(0.5)
                    return peer.recv(1) != b""
        except socket.timeout:
            return True
        except OSError:
            return False

    @staticmethod
    def opens_to_key(node, name, key):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{node.peer_port}", "-tls1_3", "-psk", key,
                               "-psk_identity", f"leasehold/{name}", "-alpn", ALPN,
                               "-ciphersuites", KEY_CIPHER], input=b"", capture_output=True,
                              timeout=10, check=False)
        return b"\nReused, TLSv1.3" in done.stdout

    @staticmethod
    def opens_to_plain(node):
        """A plain caller that is refused hears so, and the connection ends."""
        with socket.create_connection(("127.0.0.1", node.peer_port), timeout=5) as peer:
            peer.sendall(b"x" * 64)
            said = b""
            with contextlib.suppress(OSError):
                while chunk := peer.recv(4096):
                    said += chunk
        return b"takes no plain connections" not in said


# ---- Certificates ----

TLS_FILES = ("--tls-cert", "cert.pem"), ("--tls-key", "key.pem"), ("--tls-ca", "ca.pem"), ("--tls-crl", "crl.pem")


def give_certificate(group, authority, serials, node):
    certificate, key, serials[node.id] = authority.node(node)
    group.put(node, "cert.pem", certificate)
    group.put(node, "key.pem", key)


def give_trust(group, authorities, node):
    group.put(node, "ca.pem", "".join(one.text("ca.pem") for one in authorities))
    group.put(node, "crl.pem", "".join(one.text("crl.pem") for one in authorities))


def certificates(options):
    with Cluster(options.binary, flags=PATIENT, keep=options.keep) as cluster:
        group = Group(options, cluster, users=("", USER))
        first = Authority(options.binary, os.path.join(cluster.folder, "first"))
        serials = {}
        for node in group.nodes:
            give_certificate(group, first, serials, node)
            give_trust(group, [first], node)
            node.flags += itertools.chain(*((flag, group.path(node, name)) for flag, name in TLS_FILES))
            node.tls = client_context([first])

        def client_tls(authorities, signer):
            group.load.contexts[""] = client_context(authorities)
            group.load.contexts[USER] = client_context(authorities, signer.user)
            for node in group.nodes:
                node.tls = client_context(authorities)
        with group.under_load({"": client_context([first]), USER: client_context([first], first.user)}):
            with group.nodes[0].client() as client:
                check(client.call("ACL", "SETUSER", USER, "on", "~*", "&*", "+@all") == "OK", "ACL SETUSER")
            group.wait_proofs(lambda other: f"tls {serials[other]}")
            for _ in range(options.rounds):
                group.each("a new certificate of the same authority",
                           lambda node: give_certificate(group, first, serials, node))
                group.wait_proofs(lambda other: f"tls {serials[other]}")
            group.part("new certificates")
            second = new_authority(group, first, serials, client_tls)
            group.part("a new authority")
            revoked_behind_a_new_one(group, second, serials)
            revoked_in_use(group, second, serials)
            group.part("certificates are revoked")


def keep_pair(group, node):
    """A copy of the node's certificate and key, which somebody has stolen."""
    kept = []
    for name in ("cert.pem", "key.pem"):
        kept.append(group.path(node, "old-" + name))
        shutil.copy(group.path(node, name), kept[-1])
    return kept


def new_authority(group, first, serials, client_tls):
    second = Authority(group.options.binary, os.path.join(group.cluster.folder, "second"))
    old = {node.id: keep_pair(group, node) for node in group.nodes}
    before = group.load.figures.connections
    group.each("both authorities are trusted", lambda node: give_trust(group, [first, second], node))
    client_tls([first, second], first)
    group.each("certificates of the new authority", lambda node: give_certificate(group, second, serials, node))
    group.wait_proofs(lambda other: f"tls {serials[other]}")
    client_tls([first, second], second)
    group.load.reconnect(USER)
    for node in group.nodes:
        check(PeerDoor.opens_to_certificate(group.cluster.others(node)[0], *old[node.id]),
              "the old authority's certificate opens nothing although it is trusted")
    group.each("the old authority is dropped", lambda node: give_trust(group, [second], node))
    client_tls([second], second)
    check(group.load.figures.connections > before, "no new client came")
    group.wait_proofs(lambda other: f"tls {serials[other]}")
    for node in group.nodes:
        for other in group.cluster.others(node):
            check(not PeerDoor.opens_to_certificate(other, *old[node.id]),
                  "the old authority's certificate opens a node")
        try:
            with resp.Client(node.port, tls=client_context([second], first.user)) as client:
                check(client.call("PING") is None, "the old authority's user is served")
        except resp.ConnectionLost:
            pass
    return second


def revoked_behind_a_new_one(group, authority, serials):
    """The way for a node that stays."""
    node = group.nodes[0]
    stolen = keep_pair(group, node)
    give_certificate(group, authority, serials, node)
    group.reload(node)
    group.wait_proofs(lambda other: f"tls {serials[other]}")
    check(PeerDoor.opens_to_certificate(group.nodes[1], *stolen), "a certificate that is good opens nothing")
    authority("revoke", stolen[0])
    group.each("a certificate that was replaced is revoked", lambda each: give_trust(group, [authority], each))
    for other in group.cluster.others(node):
        check(not PeerDoor.opens_to_certificate(other, *stolen), "a revoked certificate opens a node")
    group.wait_proofs(lambda other: f"tls {serials[other]}")


def revoked_in_use(group, authority, serials):
    """A follower's certificate is revoked while it is in use; no client asks that node, and the others go on."""
    leader = group.cluster.wait_leader()
    lost = group.cluster.others(leader)[0]
    rest = [node for node in group.nodes if node is not lost]
    group.load.closed.add(lost)
    group.load.goes_on(2)
    stolen = [group.path(lost, name) for name in ("cert.pem", "key.pem")]
    check(PeerDoor.opens_to_certificate(leader, *stolen), "a certificate that is good opens nothing")
    authority("revoke", os.path.join(authority.folder, f"node-{lost.id}.pem"))
    for node in rest:
        give_trust(group, [authority], node)
        group.reload(node)

    def proofs_of_lost(node):
        return [(member["proof_to"], member["proof_from"]) for member in node.status()["members"]
                if member["id"] == lost.id]
    for node in rest:
        wait_for(f"the connections of {lost} to end at {node}", 10, lambda: proofs_of_lost(node) == [("", "")])
        check(not PeerDoor.opens_to_certificate(node, *stolen), "a revoked certificate opens a node")
        check("revoked" in node.log_text(), f"{node} does not say why")
    group.load.goes_on()
    give_certificate(group, authority, serials, lost)
    give_trust(group, [authority], lost)
    group.reload(lost)
    group.wait_proofs(lambda other: f"tls {serials[other]}")
    group.cluster.wait_caught_up(lost)
    group.load.closed.clear()
    group.load.reconnect()


# ---- A key ----

def key_texts(options, folder, count):
    texts = []
    for number in range(count):
        path = os.path.join(folder, f"group-{number}.key")
        run_words(options.binary, "cert", "key", path)
        with open(path, encoding="ascii") as file:
            texts.append([line for line in file.read().splitlines() if line and not line.startswith("#")][0])
    return texts


def key_in_use(group):
    """The name of the key by which all are connected."""
    seen = set().union(*group.proofs().values())
    check(len(seen) == 1, f"connections differ: {seen}")
    kind, name = seen.pop().split()
    check(kind == "key", f"connections are of the kind {kind}")
    return name


def key(options):
    with Cluster(options.binary, flags=PATIENT, keep=options.keep) as cluster:
        group = Group(options, cluster)
        for node in group.nodes:
            node.flags += ["--peer-key", group.path(node, "group.key")]
        keys = key_texts(options, cluster.folder, (1 if options.without_first_step else options.rounds) + 1)
        for node in group.nodes:
            group.put(node, "group.key", keys[0] + "\n")
        with group.under_load():
            wait_for("all connections", 10, group.proofs, LOOK)
            for old, new in zip(keys, keys[1:]):
                replace_key(group, old, new, options.without_first_step)
            group.part("a new key")


def replace_key(group, old, new, without_first_step):
    def give(*lines):
        return lambda node: group.put(node, "group.key", "".join(line + "\n" for line in lines))
    name = key_in_use(group)
    if not without_first_step:
        group.each("the new key is taken, too", give(old, new))
        check(key_in_use(group) == name, "the new key is used too early")
        group.each("the new key is used", give(new, old))
        wait_for("the new key on all connections", 10,
                 lambda: (seen := group.proofs()) and f"key {name}" not in set().union(*seen.values()), LOOK)
        check(all(PeerDoor.opens_to_key(node, name, old) for node in group.nodes), "the old key opens nothing yet")
    group.each("the old key is dropped", give(new))
    fresh = key_in_use(group)
    for node in group.nodes:
        check(not PeerDoor.opens_to_key(node, name, old), "the old key opens a node")
        check(PeerDoor.opens_to_key(node, fresh, new), "the new key opens nothing")


# ---- From one protection to another ----

class Mover:
    """A group whose settings are in a file at each node: a reload takes the new ones. Without reloads each node is
    started again with its flags."""

    def __init__(self, options, cluster, restart):
        self.group = Group(options, cluster)
        self.restart = restart
        self.settings = {node.id: {} for node in cluster.nodes}
        self.flags = {node.id: list(node.flags) for node in cluster.nodes}
        for node in cluster.nodes:
            self.use(node)

    def use(self, node):
        settings = self.settings[node.id]
        if self.restart:
            node.flags = self.flags[node.id] + list(
                itertools.chain(*((f"--{name}", value) for name, value in settings.items())))
        else:
            self.group.put(node, "node.toml", "".join(f'{name} = "{value}"\n' for name, value in settings.items()))
            node.flags = self.flags[node.id] + ["--config", self.group.path(node, "node.toml")]

    def refuse(self, node, settings, why):
        """A reload of what cannot be leaves everything as it is."""
        before = self.group.proofs()
        self.group.put(node, "node.toml", settings)
        with node.client() as client:
            said = client.call("LEASEHOLD", "RELOAD")
        check(isinstance(said, resp.RespError) and "everything stays as it was" in said.text and why in said.text,
              f"{node}: LEASEHOLD RELOAD: {said!r}")
        self.use(node)
        check(self.group.proofs() == before, "connections are others")

    def step(self, what, **changes):
        """None takes a setting away."""
        def change(node):
            settings = self.settings[node.id]
            for name, value in changes.items():
                name = name.replace("_", "-")
                settings.pop(name, None)
                if value is not None:
                    settings[name] = value(node) if callable(value) else value
            self.use(node)
        self.group.each(what, change, self.restart)


def move(options, restart):
    with Cluster(options.binary, flags=PATIENT, keep=options.keep) as cluster:
        mover = Mover(options, cluster, restart)
        group = mover.group
        authority = Authority(options.binary, os.path.join(cluster.folder, "authority"))
        shared = key_texts(options, cluster.folder, 1)[0]
        serials = {}
        for node in group.nodes:
            group.put(node, "group.key", shared + "\n")
            give_certificate(group, authority, serials, node)
            give_trust(group, [authority], node)

        def file(name):
            return lambda node: group.path(node, name)
        with group.under_load():
            group.load.nodes_end = restart
            group.wait_proofs(lambda _: "plain")
            mover.step("plain; a key is taken, too", peer_key=file("group.key"), peer_protection="plain",
                       peer_accept="key")
            mover.step("key; plain is taken, too", peer_protection="key", peer_accept="plain")
            wait_for("no plain connection", 10, lambda: group.connections("plain") == 0, LOOK)
            check(PeerDoor.opens_to_plain(group.nodes[0]), "a plain caller is refused too early")
            mover.step("key", peer_protection=None, peer_accept=None)
            name = key_in_use(group)
            for node in group.nodes:
                check(not PeerDoor.opens_to_plain(node), "a plain caller is let in")
            if not restart:
                mover.refuse(group.nodes[0], 'peer-protection = "tls"', "--tls-ca are missing")
                mover.refuse(group.nodes[0], 'peer-keys = "x"', "unknown key 'peer-keys'")
                mover.refuse(group.nodes[0], 'peer-key = "none"', "cannot read the key file none")
            group.part("from plain to a key" + (", by restarts" if restart else ""), same_leader=not restart)
            if restart and not options.full:
                return
            mover.step("key; certificates are taken, too", peer_protection="key", peer_accept="tls",
                       tls_cert=file("cert.pem"), tls_key=file("key.pem"), tls_ca=file("ca.pem"),
                       tls_crl=file("crl.pem"), client_tls="off")
            mover.step("certificates; the key is taken, too", peer_protection="tls", peer_accept="key")
            group.wait_proofs(lambda other: f"tls {serials[other]}")
            check(PeerDoor.opens_to_key(group.nodes[0], name, shared), "the key is refused too early")
            mover.step("certificates", peer_protection=None, peer_accept=None, peer_key=None)
            for node in group.nodes:
                check(not PeerDoor.opens_to_key(node, name, shared), "the key opens a node")
            group.part("from a key to certificates" + (", by restarts" if restart else ""), same_leader=not restart)
            clients_move(mover, authority)
            group.part("clients from plain to TLS" + (", by restarts" if restart else ""), same_leader=not restart)


def clients_move(mover, authority):
    group = mover.group
    mover.step("clients may use TLS", client_tls="optional")
    group.load.contexts[""] = client_context([authority])
    group.load.reconnect()
    for node in group.nodes:
        node.tls = client_context([authority])

    def all_by_tls(node):
        info = node.info()
        return info["tls_clients"] == info["connected_clients"]
    for node in group.nodes:
        wait_for(f"all clients of {node} to use TLS", 10, lambda: all_by_tls(node), LOOK)
    mover.step("clients have to use TLS", client_tls=None)
    for node in group.nodes:
        with resp.Client(node.port) as plain:
            said = plain.call("PING")
        check(isinstance(said, resp.RespError) and "TLS only" in said.text, f"a plain client hears {said!r}")


PARTS = {"certificates": certificates, "key": key, "reload": lambda options: move(options, False),
         "restart": lambda options: move(options, True)}


def run(options):
    if not shutil.which("openssl"):
        raise Skipped("the openssl program is not here")
    if options.without_first_step:
        try:
            key(options)
        except Failed as seen:
            print(f"the control: without the first step the test sees: {seen}")
            return
        raise Failed("a key was replaced in one step, and the test saw no harm")
    for name in options.parts.split(","):
        check(name in PARTS, f"there is no part {name}: {', '.join(PARTS)}")
        PARTS[name](options)


if __name__ == "__main__":
    def arguments(parser):
        parser.add_argument("--checker", required=True, help="the program leasehold_check")
        parser.add_argument("--parts", default=",".join(PARTS), help="some of them, with commas")
        parser.add_argument("--rounds", type=int, default=10, help="certificates and keys one after the other")
        parser.add_argument("--full", action="store_true", help="by restarts to certificates, too")
        parser.add_argument("--without-first-step", action="store_true",
                            help="the control: a key is replaced at once, which has to be seen")
    main(__doc__.splitlines()[0], run, arguments)
