"""Where the nodes of a chaos run live, and what cuts them off from each other.

Namespaces: every node has a network namespace of its own, joined to the others by one router, which
is the namespace of the test itself. A link from one node to another is cut, in this one direction,
by a rule of the router, so acknowledgements of TCP are lost too. Needs root.

Loopback: all on 127.0.0.1, for machines that have no namespaces; only the proxy can cut here.

In both, the proxy (bench/frame_proxy.py) may stand between the nodes: their peers then have its
addresses. Where it does not, move() gives a place another address for peers.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import threading

from cluster import Failed, Skipped, free_port

CLONE_NEWNET = 0x40000000
# Looked at before the table of the router's own addresses, which has to move behind them.
BLOCK_PREFERENCE = 100
LOCAL_PREFERENCE = 1000


class Place:
    """Where one node is: `host` for clients; `peer` is what its peers dial; `listen` where it then
    waits for them, if that is elsewhere."""

    def __init__(self, host, peer, listen, namespace=None):
        self.host = host
        self.peer = peer
        self.listen = listen
        self.namespace = namespace


class Loopback:
    """No address of their own, and no cuts."""

    cuts = False

    def __init__(self, size, proxied):
        self.places = {}
        for node in range(1, size + 1):
            listen = f"127.0.0.1:{free_port()}"
            peer = f"127.0.0.1:{free_port()}" if proxied else listen
            self.places[node] = Place("127.0.0.1", peer, listen)

    def move(self, node):
        place = self.places[node]
        place.peer = place.listen = f"127.0.0.1:{free_port()}"

    def proxy_source(self, _):
        return "127.0.0.1"

    def close(self):
        pass


def _ip(lines):
    run = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                         capture_output=True, check=False)
    if run.returncode != 0:
        raise Failed(f"ip: {run.stderr.strip()} in {lines}")


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _unshare_network():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise Skipped(f"no network namespaces: {os.strerror(ctypes.get_errno())}")


def enter_router():
    """Moves this process into a network namespace of its own, which ends with it. Call it before
    any thread. Skipped: the machine does not allow it, and nothing has changed."""
    if os.geteuid() != 0:
        raise Skipped("network namespaces need root")
    if shutil.which("ip") is None:
        raise Skipped("no ip program")
    _unshare_network()
    try:
        _ip(["link set lo up", f"rule add preference {LOCAL_PREFERENCE} lookup local",
             "rule del preference 0"])
        _write("/proc/sys/net/ipv4/ip_forward", "1")
    except (Failed, OSError) as error:
        _ip(["link set lo up"])  # the loopback works here too
        raise Skipped(f"no router: {error}") from error


def _new_namespace():
    """A descriptor that keeps a new namespace alive."""
    found = []

    def inside():
        try:
            _unshare_network()
            found.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        except (OSError, Skipped) as error:
            found.append(error)
    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if not isinstance(found[0], int):
        raise Skipped(str(found[0]))
    return found[0]


class Namespaces:
    """Call enter_router() before. Node N is 10.77.N.2; the proxy takes what is meant for it at
    10.77.100.N, and what it passes on for it comes from 10.77.200.N."""

    cuts = True

    def __init__(self, size, proxied):
        self.places = {}
        self._proxied = proxied
        self._blocked = {}
        self._lock = threading.Lock()
        self._namespaces = []
        for node in range(1, size + 1):
            namespace = _new_namespace()
            self._namespaces.append(namespace)
            path = f"/proc/{os.getpid()}/fd/{namespace}"
            _ip([f"link add leash{node} type veth peer name eth0 netns {path}",
                 f"addr add 10.77.{node}.1/24 dev leash{node}", f"link set leash{node} up",
                 f"addr add 10.77.100.{node}/32 dev lo", f"addr add 10.77.200.{node}/32 dev lo"])
            # A path that is cut in only one direction is not a forgery.
            for device in ("all", f"leash{node}"):
                _write(f"/proc/sys/net/ipv4/conf/{device}/rp_filter", "0")
            for words in (["link", "set", "lo", "up"],
                          ["addr", "add", f"10.77.{node}.2/24", "dev", "eth0"],
                          ["link", "set", "eth0", "up"],
                          ["route", "add", "default", "via", f"10.77.{node}.1"]):
                run = subprocess.run(["nsenter", f"--net={path}", "ip", *words], text=True,
                                     capture_output=True, check=False)
                if run.returncode != 0:
                    raise Failed(f"ip {' '.join(words)}: {run.stderr.strip()}")
            listen = f"10.77.{node}.2:7100"
            peer = f"10.77.100.{node}:7100" if proxied else listen
            self.places[node] = Place(f"10.77.{node}.2", peer, listen, namespace)

    def move(self, node):
        place = self.places[node]
        host, port = place.listen.rsplit(":", 1)
        place.peer = place.listen = f"{host}:{int(port) + 1}"

    def proxy_source(self, node):
        """What the proxy's connections on behalf of `node` come from."""
        return f"10.77.200.{node}"

    def _rules(self, source, target):
        """What carries a packet from `source` to `target`, as pairs of addresses."""
        if not self._proxied:
            return [(f"10.77.{source}.2", f"10.77.{target}.2")]
        return [(f"10.77.{source}.2", f"10.77.100.{target}"),   # on what source has dialled
                (f"10.77.200.{source}", f"10.77.{target}.2"),
                (f"10.77.{source}.2", f"10.77.200.{target}"),   # the same for answers to target
                (f"10.77.100.{source}", f"10.77.{target}.2")]

    def block(self, pairs):
        """Each (source, target) carries nothing from now on; counted, so that cuts may overlap."""
        with self._lock:
            lines = []
            for pair in pairs:
                self._blocked[pair] = self._blocked.get(pair, 0) + 1
                if self._blocked[pair] == 1:
                    lines += self._change("add", pair)
            if lines:
                _ip(lines)

    def unblock(self, pairs):
        with self._lock:
            lines = []
            for pair in pairs:
                self._blocked[pair] -= 1
                if self._blocked[pair] == 0:
                    lines += self._change("del", pair)
            if lines:
                _ip(lines)

    def _change(self, verb, pair):
        return [f"rule {verb} preference {BLOCK_PREFERENCE} from {a} to {b} blackhole"
                for a, b in self._rules(*pair)]

    def close(self):
        """A namespace ends once no process is in it."""
        for node, namespace in enumerate(self._namespaces, 1):
            _ip([f"link del leash{node}", f"addr del 10.77.100.{node}/32 dev lo",
                 f"addr del 10.77.200.{node}/32 dev lo"])
            os.close(namespace)
        for pair in [pair for pair, count in self._blocked.items() if count > 0]:
            for line in self._change("del", pair):  # after a run that broke off
                with contextlib.suppress(Failed):
                    _ip([line])
