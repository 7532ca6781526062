#!/usr/bin/env python3
"""Numbered commands in sessions at random nodes, while leaders are killed, restarted and transferred
and members come back by snapshots. Every command is sent again under its number until it is answered,
often when it was executed long ago: at the end each was executed once, and each answer was that of
the one time. With --without-sessions the same is sent bare: the control, which has to execute some
twice."""

import collections
import random
import threading
import time

import resp
from cluster import Cluster, Failed, check, main, wait_for

COUNTER = "counter"
# Small, so that a node that was away for a moment needs a snapshot.
LOG_BYTES = 64 << 10
FILLER_BYTES = 4096
# An answer that takes longer is given up; the command is sent again, elsewhere.
CALL_SECONDS = 1.0
# A pipeline of a client that has several commands under way.
WINDOW = 8
# So many of all sends are cut off on purpose: the command arrives, its answer is not waited for.
CUT_SHARE = 0.05
GIVE_UP_SECONDS = 30
LOST = (resp.ConnectionLost, resp.TimedOut)


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=120, help="how long faults go on")
    parser.add_argument("--clients", type=int, default=4, help="of each of the three kinds")
    parser.add_argument("--idle-max", type=float, default=30, help="--session-idle-max in seconds")
    parser.add_argument("--without-sessions", action="store_true",
                        help="the control: bare commands, sent again after an unknown outcome")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))


class Client(threading.Thread):
    """One session. `send_next()` of a subclass sends its next commands and notes the answers. `tag`: all keys begin so,
    and the session is of the group that has them."""

    def __init__(self, number, cluster, options, stop, tag=""):
        super().__init__(daemon=True)
        self.tag = tag
        self.counter = tag + COUNTER  # the key that all adders share
        self.number = number
        self.options = options
        self.source = random.Random(options.seed * 1000 + number)
        self.error = None
        self.retries = collections.Counter()
        self.session = None
        self.sequence = 0
        self._nodes = cluster.nodes
        self._over = stop
        self._connection = None

    def run(self):
        try:
            if not self.options.without_sessions:
                self.session = self._insist([("LEASEHOLD", "SESSION", "OPEN")])[0]
            while not self._over.is_set():
                self.send_next()
                time.sleep(0.002)
        except BaseException as error:  # told to the test's own thread
            self.error = error
        self._hang_up()

    def once(self, commands):
        """The answers to commands, which are under way together."""
        first = self.sequence + 1
        self.sequence += len(commands)
        if self.session is None:
            return self._insist(commands)
        answered = ("ANSWERED", first) if len(commands) > 1 else ()
        return self._insist([("LEASEHOLD", "ONCE", self.session, first + i, *answered, *words)
                             for i, words in enumerate(commands)])

    def again(self, node, words):
        """What a node says to the newest command, which was answered before."""
        with self._open(node) as client:
            return client.call("LEASEHOLD", "ONCE", self.session, self.sequence, *words)

    def _open(self, node, *timeout):
        client = node.client(*timeout)
        if self.tag:
            check(client.call("LEASEHOLD", "GROUP", "KEY", self.tag) == "OK", f"LEASEHOLD GROUP KEY {self.tag}")
        return client

    def _insist(self, commands):
        """Sends again what is not answered, here or elsewhere, until all is."""
        answers = [None] * len(commands)
        deadline = time.monotonic() + GIVE_UP_SECONDS * self.options.slack
        while True:
            left = [i for i, answer in enumerate(answers) if answer is None]
            if not left:
                return answers
            check(time.monotonic() < deadline, f"{commands[left[0]]} found no answer")
            try:
                for i, reply in self._try(left, [commands[i] for i in left]):
                    if isinstance(reply, resp.RespError) and reply.not_executed:
                        self.retries["not executed"] += 1
                    elif isinstance(reply, resp.RespError) and reply.unknown:
                        self.retries["unknown outcome"] += 1
                    else:
                        check(not isinstance(reply, resp.RespError),
                              f"{commands[i]} was answered {reply!r}")
                        answers[i] = reply
                if None in answers:
                    self._hang_up()
                    time.sleep(0.02)
            except LOST:
                self.retries["no answer"] += 1
                self._hang_up()
                time.sleep(0.02)

    def _try(self, numbers, commands):
        """(number, reply) of each as it comes."""
        if self._connection is None:
            self._connection = self._open(self.source.choice(self._nodes), CALL_SECONDS)
        self._connection.send_raw(b"".join(resp.encode(*words) for words in commands))
        if self.source.random() < CUT_SHARE:
            time.sleep(self.source.choice((0, 0.001, 0.005)))
            self._hang_up()
            self.retries["cut"] += 1
            raise resp.ConnectionLost("cut on purpose")
        for number in numbers:
            yield number, self._connection.read_reply()

    def _hang_up(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Adder(Client):
    """Adds to the counter of all: no two may get the same sum, and none may be left out."""

    def __init__(self, *args):
        super().__init__(*args)
        self.sums = []

    def send_next(self):
        self.sums += self.once([("INCR", self.counter)])

    def last(self):
        return ("INCR", self.counter), self.sums[-1]


class Appender(Client):
    """Writes tokens behind each other."""

    def __init__(self, *args):
        super().__init__(*args)
        self.text = ""
        self.key = f"{self.tag}tokens:{self.number}"
        self._last = None

    def send_next(self):
        token = f"{self.sequence + 1},"
        self.text += token
        length = self.once([("APPEND", self.key, token)])[0]
        check(self.options.without_sessions or length == len(self.text),
              f"{self.key}: the length is {length} and not {len(self.text)}")
        self._last = ("APPEND", self.key, token), length

    def last(self):
        return self._last


class Pipeliner(Client):
    """Has several commands under way, which may be executed in any order."""

    def __init__(self, *args):
        super().__init__(*args)
        self.key = f"{self.tag}own:{self.number}"
        self.added = 0

    def send_next(self):
        count = self.source.randint(2, WINDOW)
        sums = self.once([("INCR", self.key)] * count)
        expected = set(range(self.added + 1, self.added + count + 1))
        self.added += count
        check(self.options.without_sessions or set(sums) == expected,
              f"{self.key}: the sums are {sorted(sums)} and not {sorted(expected)}")


class Faults:
    """What happens to the nodes, until the time is over."""

    KINDS = ("kill the leader", "transfer", "kill any", "leave behind")

    def __init__(self, cluster, source):
        self._cluster = cluster
        self._source = source
        self._next = []
        self.done = collections.Counter()

    def one(self):
        if not self._next:
            self._next = self._source.sample(self.KINDS, len(self.KINDS))
        kind = self._next.pop()
        getattr(self, "_" + kind.replace(" ", "_"))()
        self.done[kind] += 1
        time.sleep(self._source.choice((0.2, 0.8)))

    def _kill_the_leader(self):
        leader = self._cluster.wait_leader()
        leader.kill()
        time.sleep(self._source.choice((0, 0.5, 2)))
        leader.start()

    def _transfer(self):
        leader = self._cluster.wait_leader()
        with leader.client() as client:
            client.call("LEASEHOLD", "TRANSFER")

    def _kill_any(self):
        node = self._source.choice(self._cluster.nodes)
        node.kill()
        time.sleep(self._source.choice((0, 0.3)))
        node.start()

    def _leave_behind(self):
        """One is away until the others have cut off what it needs."""
        leader = self._cluster.wait_leader()
        away = self._source.choice(self._cluster.others(leader))
        last = away.status()["last"]
        away.kill()
        filler = [("SET", f"filler:{i}", b"x" * FILLER_BYTES) for i in range(64)]

        def cut():
            with leader.client() as client:
                client.pipeline(filler)
            return leader.status()["first"] > last + 1
        wait_for("the log to be cut", 20, cut)
        away.start()
        self._cluster.wait_caught_up(away)


def settle(cluster):
    cluster.wait_leader(30)
    for node in cluster.nodes:
        cluster.wait_caught_up(node)


def installed(cluster):
    """Snapshots. A node's own count begins at 0 with each start."""
    return sum(node.log_text().count("takes the place of the log") for node in cluster.nodes)


def value(node, key):
    with node.client() as client:
        return (client.call("GET", key) or b"").decode()


def doubles(cluster, clients):
    """How many commands were executed more than once, by what the store holds."""
    node = cluster.nodes[0]
    adders = [client for client in clients if isinstance(client, Adder)]
    surplus = int(value(node, COUNTER)) - sum(len(client.sums) for client in adders)
    for client in clients:
        if isinstance(client, Pipeliner):
            surplus += int(value(node, client.key)) - client.added
        if isinstance(client, Appender):
            surplus += value(node, client.key).count(",") - client.text.count(",")
    return surplus


def judge(cluster, clients):
    adders = [client for client in clients if isinstance(client, Adder)]
    sums = sorted(total for client in adders for total in client.sums)
    check(sums == list(range(1, len(sums) + 1)), "the sums of the shared counter are not 1 to n")
    for node in cluster.nodes:
        found = int(value(node, clients[0].counter) or 0)
        check(found == len(sums), f"{node}: the counter is {found} after {len(sums)} commands")
        for client in clients:
            if isinstance(client, Appender):
                check(value(node, client.key) == client.text,
                      f"{node}: {client.key} is not what was appended")
            if isinstance(client, Pipeliner):
                found = int(value(node, client.key) or 0)
                check(found == client.added, f"{node}: {client.key} is {found}, not {client.added}")


def repeat_the_last(cluster, clients):
    """Every node still knows the answer to the newest command of each client."""
    for client in clients:
        if isinstance(client, Pipeliner):
            continue
        words, answer = client.last()
        for node in cluster.nodes:
            again = client.again(node, words)
            check(again == answer, f"{node}: {words} was answered {answer}, now {again!r}")


def expire(cluster, clients, options):
    """Unused sessions end, a session that is touched stays."""
    kept = clients[0].session

    def ended():
        with cluster.nodes[1].client() as client:
            check(client.call("LEASEHOLD", "SESSION", "TOUCH", kept) == "OK",
                  "a session that was touched has ended")
            text = client.call("LEASEHOLD", "SESSION", "LIST").decode()
        return text.count('"id":') == 1 and f'"id":{kept},' in text
    wait_for("the idle sessions to end", (options.idle_max * 1.5 + 5) * options.slack, ended, 0.3)
    # Its number does not become that of another command.
    words, _ = clients[1].last()
    again = clients[1].again(cluster.nodes[2], words)
    check(isinstance(again, resp.RespError) and again.word == "NOSESSION",
          f"a session that ended answers {again!r}")
    judge(cluster, clients)


def load(options, cluster, faults):
    stop = threading.Event()
    kinds = [Adder, Appender, Pipeliner]
    clients = [kinds[number % 3](number, cluster, options, stop)
               for number in range(3 * options.clients)]
    for client in clients:
        client.start()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        faults.one()
        broken = [client for client in clients if client.error is not None]
        if broken:
            raise Failed(f"client {broken[0].number}: {broken[0].error!r}") from broken[0].error
    settle(cluster)
    stop.set()
    for client in clients:
        client.join(60)
        check(not client.is_alive(), f"client {client.number} does not end")
        if client.error is not None:
            raise Failed(f"client {client.number}: {client.error!r}") from client.error
    return clients


def run(options):
    print(f"--seed {options.seed}", flush=True)
    flags = ["--log-tail", str(LOG_BYTES), "--log-cut", str(LOG_BYTES), "--command-timeout", "700ms",
             "--session-idle-max", f"{options.idle_max}s"]
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        cluster.start()
        faults = Faults(cluster, random.Random(options.seed))
        clients = load(options, cluster, faults)
        settle(cluster)
        retries = sum((client.retries for client in clients), collections.Counter())
        commands = sum(client.sequence for client in clients)
        surplus = doubles(cluster, clients)
        print(f"{commands} commands; sent again after: {dict(retries)}; faults: "
              f"{dict(faults.done)}; {surplus} executed twice", flush=True)
        check(retries["cut"] > 0 and commands > 0, "nothing was tried")
        if options.without_sessions:
            check(surplus > 0, "the control did not fail: without sessions nothing came twice")
            return
        print(f"{installed(cluster)} snapshots were installed", flush=True)
        check(installed(cluster) >= faults.done["leave behind"], "too few snapshots were installed")
        check(surplus == 0, f"{surplus} commands too many or too few were executed")
        judge(cluster, clients)
        repeat_the_last(cluster, clients)
        for node in cluster.nodes:
            node.kill()
        for node in cluster.nodes:
            node.start()
        settle(cluster)
        repeat_the_last(cluster, clients)
        judge(cluster, clients)
        print("after the death of all three nothing has changed", flush=True)
        expire(cluster, clients, options)
        print("what was idle has ended, what was touched has not", flush=True)


if __name__ == "__main__":
    main(__doc__, run, arguments)
