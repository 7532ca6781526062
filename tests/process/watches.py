#!/usr/bin/env python3
"""Watches at real nodes: clients that write, leases that expire, and watchers at every node, whose
connections break and whose nodes are killed, paused, ended and started again, the leader too. Who was
never told to read again saw every event once and in order, all saw the same, and a copy made of the
events is what the store has at the end; a watcher that reads again on `resync` is right afterwards. One
that does not read gets `resync`, and costs no memory. `leasehold watch` is one of the watchers at each node."""

import json
import random
import resource
import signal
import socket
import subprocess
import threading
import time

import resp
from cluster import Background, Cluster, Failed, check, main, wait_for

PREFIX = b"w/"
END = b"w/end"
# What a node may take more for ten clients that do not read, in bytes: a MiB of messages each, the
# history, and what the store itself takes for what is written meanwhile.
SLOW_MEMORY = 40 << 20


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=15, help="of faults")
    parser.add_argument("--seed", type=int, default=None, help="of the faults and the writers")


class Log:
    """The events of one watcher: a list of (revision, events), a new one after each resync."""

    def __init__(self, name):
        self.name = name
        self.revisions = []
        self.copy = {}
        self.resyncs = 0
        self.next = None
        self.ended = False

    def tell(self, revision, events):
        last = self.revisions[-1][0] if self.revisions else 0
        check(revision > last, f"{self.name}: revision {revision} behind {last}")
        check(events, f"{self.name}: revision {revision} without events")
        self.revisions.append((revision, events))
        self._apply(events)

    def _apply(self, events):
        for key, what, value in events:
            check(key.startswith(PREFIX), f"{self.name}: told of {key!r}")
            if what == "set":
                self.copy[key] = value
            else:
                check(key in self.copy, f"{self.name}: {what} {key!r}, which was not there")
                del self.copy[key]
            self.ended = self.ended or key == END

    def tell_more(self, event):
        """Another one of the newest revision."""
        self.revisions[-1][1].append(event)
        self._apply([event])

    def begin_anew(self, rows):
        self.resyncs += 1
        self.revisions = []
        self.copy = {}
        for key, value in rows.items():
            self.begin_with(key, value)

    def begin_with(self, key, value):
        self.copy[key] = value
        self.ended = self.ended or key == END


class Watcher:
    """A client in RESP2, at one node until its connection breaks."""

    def __init__(self, log, node, others, rng):
        """`others`: the servers where it continues."""
        self.log, self._node, self._others, self._rng = log, node, others, rng
        self.client = None

    def step(self):
        try:
            self._connect()
            while True:
                self._take(self.client.read_reply(timeout=1))
        except resp.TimedOut:
            pass
        except (resp.ConnectionLost, OSError):
            self.client = None
            self._node = self._rng.choice(self._others)
            time.sleep(self._rng.uniform(0.01, 0.5))

    def drop(self):
        """Its connection breaks in the middle of its messages."""
        client = self.client
        if client is not None:
            try:
                client._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _connect(self):
        if self.client is not None:
            return
        client = resp.Client(self._node.port, 2)
        words = ["LEASEHOLD", "WATCH", "PREFIX", PREFIX, "VALUES"]
        if self.log.next is not None:
            words += ["FROM", str(self.log.next)]
        begun = client.call(*words)
        if isinstance(begun, resp.RespError):
            check(begun.not_executed, f"{self.log.name}: {begun!r}")
            client.close()
            raise resp.ConnectionLost(begun.text)
        self._take(begun)
        self.client = client

    def _take(self, message):
        word, number = message[0], message[1]
        if word == b"watching":
            check(self.log.next in (None, number), f"{self.log.name}: {message} is elsewhere")
            self.log.next = number
        elif word == b"resync":
            self._read_again(number)
        elif word == b"progress":
            check(number + 1 >= self.log.next, f"{self.log.name}: {message} goes back")
            self.log.next = number + 1
        else:
            check(word == b"events", f"{self.log.name}: {message}")
            check(number >= self.log.next, f"{self.log.name}: {message} came before")
            self.log.next = number + 1
            self.log.tell(number, [(key, what.decode(), value)
                                   for key, what, _, _, _, value in message[2]])

    def _read_again(self, number):
        """All keys, by another connection; events up to then are in them."""
        revision, rows = read_all(self._node)
        check(revision + 1 >= number, f"{self.log.name}: a read behind the resync is older")
        self.log.begin_anew(rows)
        self.log.next = revision + 1
        # The events between are sent again, and are known already.
        raise resp.ConnectionLost("begins anew")


def read_all(node):
    """The rows of one instant: few enough for one part."""
    with node.client() as client:
        answer = client.call("LEASEHOLD", "RANGE", PREFIX, "COUNT", "1000", "VALUES")
    if isinstance(answer, resp.RespError):
        raise resp.ConnectionLost(answer.text)
    revision, more, rows = answer
    check(more is None, "too many keys for this test")
    return revision, {row[0]: row[5] for row in rows}


class Shell:
    """`leasehold watch`, with its own node first."""

    def __init__(self, cluster, log, first):
        ports = [node.port for node in cluster.nodes[first:] + cluster.nodes[:first]]
        self.log = log
        self.begun = threading.Event()
        self._fault = None
        self._process = subprocess.Popen(
            [cluster.binary, "watch", "--json", "--values", "--prefix", PREFIX.decode(), "--existing",
             "--servers", ",".join(f"127.0.0.1:{port}" for port in ports)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        try:
            for text in self._process.stdout:
                self._take(json.loads(text))
        except Exception as fault:  # pylint: disable=broad-except
            self._fault = fault

    def _take(self, line):
        key = line.get("key", "").encode()
        value = line["value"].encode() if "value" in line else None
        if line["event"] == "resync":
            self.log.begin_anew({})
            self.begun.set()
        elif line["event"] == "is":
            self.log.begin_with(key, value)
        else:
            # A line is an event: those of one revision are one message.
            event = (key, line["event"], value)
            if self.log.revisions and line["revision"] == self.log.revisions[-1][0]:
                self.log.tell_more(event)
            else:
                self.log.tell(line["revision"], [event])

    def end(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(10)
        complaints = self._process.stderr.read()
        self._reader.join(10)
        check(self._fault is None, f"{self.log.name}: {self._fault!r}")
        check(status == 0, f"{self.log.name} ended with {status}: {complaints}")

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()


class Writer:
    """Writes of every kind. Remembers which values of its own were acknowledged."""

    def __init__(self, cluster, number, seed):
        self._cluster, self._rng = cluster, random.Random(seed)
        self._mine = b"w/%d/" % number
        self._client = None
        self._count = 0
        self.acknowledged = set()

    def step(self):
        try:
            if self._client is None:
                self._client = self._rng.choice(self._cluster.nodes).client(3)
            self._write()
        except (resp.ConnectionLost, resp.TimedOut, OSError):
            self._client = None
            time.sleep(0.02)

    def _key(self, keys=8):
        return self._mine + b"%d" % self._rng.randrange(keys)

    def _set(self, key, *words):
        self._count += 1
        value = self._mine + b"v%d" % self._count
        if self._client.call("SET", key, value, *words) == "OK":
            self.acknowledged.add(value)

    def _write(self):
        kind = self._rng.randrange(10)
        if kind < 4:
            self._set(self._key())
        elif kind == 4:
            self._client.call("DEL", self._key(), self._key())
        elif kind == 5:
            self._client.call("INCR", b"w/number")
        elif kind == 6:
            self._client.call("MSET", self._key(), b"m", b"elsewhere", b"m", b"w/shared", b"m")
        elif kind == 7:
            self._client.pipeline([("MULTI",), ("SET", self._key(), b"t"), ("DEL", self._key()),
                                   ("APPEND", b"w/shared", b"+"), ("EXEC",)])
        else:
            lease = self._client.call("LEASE.GRANT", str(self._rng.randrange(200, 1500)))
            if isinstance(lease, list):
                # Most of so many keys are not written again before the lease ends.
                self._set(self._key(100), "LEASE", str(lease[0]))
                if kind == 9:
                    self._client.call("LEASE.REVOKE", str(lease[0]))


def strike(cluster, rng, watchers):
    """One fault, and its end."""
    node = rng.choice(cluster.nodes)
    if rng.randrange(2):
        leading = [each for each in cluster.nodes if (each.try_status() or {}).get("role") == "leader"]
        node = leading[0] if leading else node
    kind = rng.randrange(5)
    if kind == 0:
        for watcher in rng.sample(watchers, len(watchers) // 2):
            watcher.drop()
    elif kind == 1:
        node.pause()
        time.sleep(rng.uniform(0.2, 2.5))
        node.resume()
    elif kind == 2:
        node.terminate()
        node.start()
    else:
        node.kill()
        time.sleep(rng.uniform(0, 1))
        node.start()
    time.sleep(rng.uniform(0.2, 1.5))


def judge(logs, rows, acknowledged):
    """All logs without a resync are equal; all copies equal the store."""
    whole = [log for log in logs if not log.resyncs]
    check(whole, "every watcher got `resync`")
    for log in logs:
        check(log.copy == rows, f"{log.name}: its copy differs from the store: " + str(
            [(key, log.copy.get(key), rows.get(key)) for key in set(log.copy) | set(rows)
             if log.copy.get(key) != rows.get(key)][:3]))
    truth = dict(whole[0].revisions)
    for log in logs:
        last = log.revisions[0][0] if log.revisions else None
        expected = [each for each in whole[0].revisions if last is not None and each[0] >= last]
        check(log.revisions == expected, f"{log.name} and {whole[0].name} were told other things: "
              f"{len(log.revisions)} and {len(expected)} revisions, first difference "
              f"{next(((a, b) for a, b in zip(log.revisions, expected) if a != b), None)}")
    seen = {}
    for revision, events in truth.items():
        check(len({key for key, _, _ in events}) == len(events), f"a key twice in {revision}")
        for _, what, value in events:
            if what == "set":
                seen[value] = seen.get(value, 0) + 1
    lost = [value for value in acknowledged if seen.get(value, 0) != 1]
    check(not lost, f"{len(lost)} acknowledged writes were not told once, as {lost[:3]}")
    kinds = {what for events in truth.values() for _, what, _ in events}
    check(kinds == {"set", "deleted", "expired", "revoked"}, f"only {kinds} happened")
    return len(truth), len(whole)


def under_faults(options, seed):
    rng = random.Random(seed)
    with Cluster(options.binary, keep=options.keep) as cluster:
        # One node remembers so little that a watcher from another node has to read again.
        cluster.nodes[2].flags += ["--watch-history-events", "100"]
        cluster.start()
        logs, watchers = [], []
        for node in cluster.nodes:
            for count in range(3):
                log = Log(f"watcher {count} of {node}")
                logs.append(log)
                others = cluster.nodes if count == 2 else cluster.nodes[:2]
                watchers.append(Watcher(log, node, others, random.Random(rng.random())))
        shells = [Shell(cluster, Log(f"the shell at node {i + 1}"), i) for i in range(3)]
        writers = [Writer(cluster, number, rng.random()) for number in range(3)]
        steps = []
        try:
            for watcher in watchers:
                steps.append(Background(watcher.step))
            for step in steps:
                step.__enter__()
            wait_for("the watchers to begin", 20, lambda: all(log.next for log in logs))
            for shell in shells:
                check(shell.begun.wait(20), "leasehold watch does not begin")
            writing = [Background(writer.step) for writer in writers]
            for step in writing:
                step.__enter__()
            until = time.monotonic() + options.seconds
            while time.monotonic() < until:
                strike(cluster, rng, watchers)
                for step in steps + writing:
                    step.check()
            for step in writing:
                step.__exit__(None)
            cluster.wait_leader(30)
            # Leases that are not renewed end: only then nothing changes any more.
            wait_for("the leases to end", 30 * options.slack, lambda: no_leases(cluster))
            wait_for("the last write", 20, lambda: wrote_the_end(cluster))
            wait_for("every watcher to see the end", 30 * options.slack, lambda: all(
                log.ended for log in logs + [shell.log for shell in shells]))
            for step in steps:
                step.check()
        finally:
            for step in steps:
                step.__exit__(True)
            for shell in shells:
                if any(not log.ended for log in logs):
                    shell.kill()
        for shell in shells:
            shell.end()
        for node in cluster.nodes:
            cluster.wait_caught_up(node)
        stores = [read_all(node) for node in cluster.nodes]
        check(stores[0] == stores[1] == stores[2], "the nodes differ")
        acknowledged = set().union(*(writer.acknowledged for writer in writers))
        # The shells began with what was there, which was nothing.
        for shell in shells:
            shell.log.resyncs -= 1
        revisions, whole = judge(logs + [shell.log for shell in shells], stores[0][1], acknowledged)
        resyncs = sum(log.resyncs > 0 for log in logs + [shell.log for shell in shells])
        print(f"{revisions} revisions, {len(acknowledged)} acknowledged values; {whole} watchers were "
              f"told all, {resyncs} read again")


def no_leases(cluster):
    try:
        with cluster.nodes[0].client() as client:
            return client.call("LEASE.LIST") == []
    except (resp.ConnectionLost, resp.TimedOut):
        return False


def wrote_the_end(cluster):
    try:
        with cluster.nodes[0].client() as client:
            return client.call("SET", END, "x") == "OK"
    except (resp.ConnectionLost, resp.TimedOut):
        return False


def slow_consumers(options):
    """Ten that do not read."""
    with Cluster(options.binary, size=1, flags=["--watch-history", "1M"], keep=options.keep) as cluster:
        node = cluster.start()
        slow = [narrow_client(node) for _ in range(10)]
        for client in slow:
            check(client.call("LEASEHOLD", "WATCH", "PREFIX", PREFIX, "VALUES")[0] == b"watching",
                  "a watch begins")
        value = b"x" * 10_000
        with node.client() as client:
            # What the store takes for itself, whoever watches.
            for i in range(80):
                client.pipeline([("SET", b"elsewhere", value)] * 100, timeout=30)
        before = node.status()["rss_bytes"]
        with node.client() as client:
            for i in range(40):
                client.pipeline([("SET", b"w/%d" % (i % 8), value)] * 100, timeout=30)
            last = client.call("LEASEHOLD", "RANGE", PREFIX)[0]
            grew = node.status()["rss_bytes"] - before
            check(options.no_memory_limit or grew < SLOW_MEMORY,
                  f"the node grew by {grew >> 20} MiB for clients that do not read")
            client.call("SET", END, "x")
        for client in slow:
            at, words = 0, []
            while at <= last:
                message = client.read_reply(timeout=20)
                words.append(message[0])
                check(message[0] in (b"events", b"resync"), f"{message[:2]}")
                if message[0] == b"resync":
                    check(message[1] > at, "a resync that goes back")
                    at = message[1] - 1
                else:
                    check(message[1] == at + 1 or at == 0, f"revision {message[1]} behind {at}")
                    at = message[1]
            check(words.count(b"resync") == 1, f"{words.count(b'resync')} resyncs")
            client.close()
        info = node.info()
        check(int(info["watch_resyncs"]) == 10, f"{info['watch_resyncs']} are counted")
        check(int(info["history_bytes"]) <= 1 << 20, "the history is larger than it may be")
        wait_for("the watchers to be forgotten", 10, lambda: node.info()["watchers"] == "0")
        print(f"10 clients that did not read cost {grew >> 20} MiB, and were told to read again")


def narrow_client(node):
    """One whose system keeps little for it."""
    client = resp.Client(node.port)
    client.close()
    client._socket = socket.socket()
    client._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client._socket.connect(("127.0.0.1", node.port))
    client._socket.settimeout(5)
    return client


def a_member_that_was_away(options):
    """It comes back by a snapshot: its watchers have to read again, and no others."""
    flags = ["--log-tail", "64K", "--log-cut", "64K"]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        leader = cluster.start()
        away = cluster.others(leader)[0]
        with leader.client() as client, away.client() as watching:
            begun = watching.call("LEASEHOLD", "WATCH", "PREFIX", PREFIX)
            check(begun[0] == b"watching", f"{begun}")
            away.pause()
            # More than what is under way to it already.
            for i in range(100):
                client.pipeline([("SET", b"w/%d" % (i % 8), b"y" * 4000)] * 100, timeout=30)
            client.call("LEASEHOLD", "SNAPSHOT")
            check(leader.status()["first"] > begun[1] + 5000, "the log was not cut")
            away.resume()
            cluster.wait_caught_up(away)
            installed = away.status()["node"]["snapshots_installed"]
            check(installed > 0, "no snapshot was installed")
            # Up to the snapshot it may fall behind the history too: what was under way is more.
            first = int(away.info()["history_first_revision"])
            told, next_revision = [], begun[1]
            while not told or told[-1] != [b"resync", first]:
                told.append(watching.read_reply(timeout=20))
                word, revision = told[-1][:2]
                check(word in (b"events", b"resync"), f"{told}")
                check(revision == next_revision or word == b"resync" and revision > next_revision,
                      f"{told[-1]} where {next_revision} is next")
                next_revision = revision + (word == b"events")
            newest = int(away.info()["history_newest_revision"])
            client.call("SET", b"w/0", b"z")
            while next_revision <= newest + 1:
                message = watching.read_reply(timeout=20)
                check(message[:2] == [b"events", next_revision], f"{message[:2]} behind {told[-1]}")
                next_revision += 1
            # From before: this node does not know, another one does.
            words = ["LEASEHOLD", "WATCH", "KEY", "w/0", "FROM",
                     str(int(away.info()["history_first_revision"]) - 1)]
            with away.client() as other:
                check(other.call(*words)[0] == b"resync", f"{away} hides that it lacks revisions")
            with leader.client() as other:
                check(other.call(*words)[0] == b"watching", f"{leader} says it lacks revisions")
        print("a member that came back by a snapshot told its watcher to read again")


def idle_watchers(options, count=2000):
    """The cost of many watchers of keys that are never written."""
    with Cluster(options.binary, size=1, keep=options.keep) as cluster:
        node = cluster.start()
        before = node.status()["rss_bytes"]
        clients = [node.client() for _ in range(count)]
        for i, client in enumerate(clients):
            check(client.call("LEASEHOLD", "WATCH", "KEY", f"w/{i}")[0] == b"watching", "it begins")
        each = (node.status()["rss_bytes"] - before) // count
        with node.client() as client:
            sent = int(node.info()["watch_messages"])
            for _ in range(20):
                client.pipeline([("SET", b"other", b"v")] * 100)
            check(int(node.info()["watch_messages"]) == sent, "a watcher got an event of another key")
            client.call("SET", "w/7", "v")
        message = clients[7].read_reply(timeout=10)
        check(message[0] == b"events" and message[2][0][0] == b"w/7", f"{message}")
        check(options.no_memory_limit or each < 64 << 10, f"an idle watcher takes {each} bytes")
        for client in clients:
            client.close()
        print(f"{count} idle watchers take {each / 1024:.1f} KiB each")


def shell(options):
    """What `leasehold watch` says, its flags, and how it ends."""
    def watch(*flags, lines, servers=None):
        process = subprocess.Popen([options.binary, "watch", "--servers", servers or address, *flags],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = [process.stdout.readline().rstrip("\n") for _ in lines]
        process.send_signal(signal.SIGTERM)
        rest, complaints = process.communicate(timeout=10)
        check(said == lines and not rest, f"watch {flags} said {said} {rest!r}, not {lines}: {complaints}")
        check(process.returncode == 0, f"watch {flags}: status {process.returncode}: {complaints}")

    def refused(status, text, *flags):
        done = subprocess.run([options.binary, "watch", *flags], capture_output=True, text=True,
                              timeout=30, check=False)
        check(done.returncode == status and text in done.stderr,
              f"watch {flags}: status {done.returncode}, {done.stderr!r}")

    with Cluster(options.binary, size=1, keep=options.keep) as cluster:
        node = cluster.start()
        address = f"127.0.0.1:{node.port}"
        with node.client() as client:
            client.call("MSET", "k/1", "v", "k/2", "two words", "x", "y")
            client.call("DEL", "x")
            client.call("SET", "k/1", "w")
            lease = client.call("LEASE.GRANT", "60000", "ID", "7")
            client.call("SET", "k 3", "v", "LEASE", "7")
            client.call("LEASE.REVOKE", "7")
            check(lease == [7, 4], f"{lease}")
        watch("--from", "1", "--prefix", "k/", "--values",
              lines=["1  set  k/1  v", '1  set  k/2  "two words"', "3  set  k/1  w"])
        watch("--from", "2", "--key", "x", "--key", "k 3",
              lines=["2  deleted  x", '5  set  "k 3"', '6  revoked  "k 3"'])
        watch("--from=5", "--json", "--values", lines=[
            '{"revision":5,"event":"set","key":"k 3","create_revision":5,"version":1,"lease":7,"value":"v"}',
            '{"revision":6,"event":"revoked","key":"k 3","lease":7}'])
        watch("--existing", "--key", "k/2", "--key", "nothing", lines=["6  resync", "1  is  k/2"])
        # A revision of another group: the watch begins again.
        watch("--from", "100", "--prefix", "k/", lines=["6  resync", "3  is  k/1", "1  is  k/2"])
        # The first server is none.
        watch("--from", "6", lines=['6  revoked  "k 3"'], servers=f"127.0.0.1:1,{address}")
        refused(2, "--servers is missing", "--key", "k")
        refused(2, "--from: expected a revision", "--servers", address, "--from", "0")
        refused(2, "choose one", "--servers", address, "--from", "1", "--existing")
        refused(2, "unknown option", "--servers", address, "--what")
        refused(2, "write a key after --key", "--servers", address, "k")
        refused(2, "is not an address", "--servers", "nowhere")
        refused(4, "the key is longer", "--servers", address, "--key", "k" * 70000)
        node.terminate()
        # Nobody is there, and it waits.
        process = subprocess.Popen([options.binary, "watch", "--servers", address],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(address in process.stderr.readline(), "it does not say that nobody is there")
        process.send_signal(signal.SIGINT)
        check(process.wait(10) == 0, f"status {process.returncode} at a signal")
        print("leasehold watch says what happened")


def run(options):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    print(f"--seed {seed}", flush=True)
    shell(options)
    slow_consumers(options)
    a_member_that_was_away(options)
    idle_watchers(options)
    under_faults(options, seed)


if __name__ == "__main__":
    main(__doc__, run, arguments)
