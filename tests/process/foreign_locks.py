#!/usr/bin/env python3
"""Locks of libraries of other projects: redis-py's own Lock, and the protocol of node-redlock over
node-redis. First every method of each, at every node. Then processes compete for one lock at any node
while leaders are killed: in true time no two hold it at once, though some go away without a release
and some extend it.

Debian has no lock library for Node. With --redlock FILE, the redlock.js of a release 4 of node-redlock,
that library competes as it was published, too. With --redlock npm, npm fetches it into the folder of the
test, and release 5 with ioredis, of which only every method is run.

With --tls all is done by TLS, and those that compete are a user that may run only what a lock needs, on its
own keys; the test shows what it is refused.

With --overtime the holders stay for longer than they may, without a renewal: then two do hold it at
once, and the test passes only if it sees that."""

import os
import subprocess
import time

from cluster import Skipped, check, main
from foreign_programs import IOREDIS, npm_modules
from secured import SecuredCluster

TTL = 1.5
REDLOCK = "redlock@4.2.0"
REDLOCK5 = "redlock@5.0.0-beta.2"
# docs/operations.md (Users) names these.
TO_LOCK = "~locks:* +set +eval +evalsha +script|load +del +pexpire +exists"
USERS = {
    "locker": TO_LOCK,
    # The stories also look at what the libraries did.
    "teller": TO_LOCK + " +@read +expire +script",
}
SECONDS = 90
HERE = os.path.dirname(os.path.abspath(__file__))


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=20, help="of the competition")
    parser.add_argument("--kills", type=int, default=3, help="of leaders, meanwhile")
    parser.add_argument("--overtime", type=float, default=0,
                        help="seconds for which holders stay too long")
    parser.add_argument("--redlock", metavar="FILE",
                        help="the redlock.js of node-redlock 4, to run it as well; or npm")
    parser.add_argument("--tls", action="store_true", help="by TLS and as a user")


def start(environment, *command):
    # Debian's node looks for modules there; so does a node of another origin then.
    environment = {**os.environ, "NODE_PATH": "/usr/share/nodejs", **environment}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=environment)


def finish(process, seconds):
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        check(False, f"{process.args[:3]} does not end: {output[-2000:]}")
    check(process.returncode == 0, f"{process.args[:3]}: {output[-2000:]}")
    return output


def outputs(processes, seconds):
    """Of all, once they have ended. If one fails, none goes on."""
    try:
        return [finish(process, seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()


class Libraries:
    """Starts the programs of clients/ as a user of the group."""

    def __init__(self, cluster, user, modules):
        self._environment = cluster.environment(user)
        self._redlock, self._redlock5 = modules

    def python(self, *words):
        return start(self._environment, "/usr/bin/python3", "-B", f"{HERE}/clients/lock_redis_py.py", *words)

    def node(self, *words):
        return start(self._environment, "nodejs", f"{HERE}/clients/lock_node_redis.js", *words)

    def redlock(self, *words):
        return start(self._environment, "nodejs", f"{HERE}/clients/lock_node_redlock.js", self._redlock, *words)

    def redlock5(self, *words):
        return start({**self._environment, "NODE_PATH": self._redlock5}, "nodejs",
                     f"{HERE}/clients/lock_node_redlock5.js", *words)

    def all(self):
        return ([self.python, self.node] + ([self.redlock] if self._redlock else []) +
                ([self.redlock5] if self._redlock5 else []))


def tell_all(libraries, *words):
    """All at once: each has keys of its own."""
    for output in outputs([library(*words) for library in libraries.all()], SECONDS):
        print(output.strip(), flush=True)


def redlock_modules(options, folder):
    """The file of release 4 and the modules of release 5: None for what is not asked for, or not here."""
    if options.redlock != "npm":
        return options.redlock and os.path.abspath(options.redlock), None
    try:
        return (f"{npm_modules(f'{folder}/redlock', REDLOCK)}/redlock/redlock.js",
                npm_modules(f"{folder}/redlock5", REDLOCK5, IOREDIS))
    except Skipped as reason:
        print(f"skipped: {reason}", flush=True)
        return None, None


def kill_leaders(options, cluster):
    pause = options.seconds / (options.kills + 1)
    for _ in range(options.kills):
        time.sleep(pause)
        leader = cluster.wait_leader()
        leader.kill()
        cluster.wait_leader(among=cluster.others(leader))
        leader.start()


def times_held(outputs):
    """(from, until, who, how), in order."""
    held = []
    for who, output in enumerate(outputs):
        for line in output.splitlines():
            words = line.split()
            check(len(words) == 4 and words[0] == "held", f"process {who} said {line!r}")
            held.append((float(words[1]), float(words[2]), who, words[3]))
    return sorted(held)


def overlaps(held):
    found = []
    last = None
    for one in held:
        if last and one[0] < last[1]:
            found.append((last, one))
        if not last or one[1] > last[1]:
            last = one
    return found


def compete(options, cluster, libraries):
    ports = [str(one.port) for one in cluster.nodes]
    words = [str(options.seconds), str(TTL)]
    clients = [libraries.python("compete", *words, str(options.overtime), *ports) for _ in range(3)]
    if not options.overtime:
        clients += [libraries.node("compete", *words, *ports) for _ in range(2)]
    if libraries.redlock in libraries.all():
        clients += [libraries.redlock("compete", *words, *ports) for _ in range(2)]
    kill_leaders(options, cluster)
    held = times_held(outputs(clients, options.seconds + SECONDS))
    holders = {one[2] for one in held}
    left = sum(1 for one in held if one[3] == "left")
    twice = overlaps(held)
    print(f"held {len(held)} times by {len(holders)} processes, {left} times left without a release; "
          f"{options.kills} leaders died; {len(twice)} times by two at once")
    check(len(holders) > 1, "one process alone had the lock")
    if options.overtime:
        check(twice, "holders stayed too long, and the test has not seen it")
        return
    check(left > 0, "nobody left it without a release")
    check(not twice, f"two held it at once: {twice[:3]}")


def run(options):
    with SecuredCluster(options.binary, USERS if options.tls else None, keep=options.keep) as cluster:
        cluster.start()
        modules = redlock_modules(options, cluster.folder)
        ports = [str(one.port) for one in cluster.nodes]
        locker = Libraries(cluster, "locker", modules)
        if not options.overtime:
            tell_all(Libraries(cluster, "teller", modules), "stories", *ports)
        if options.tls:
            tell_all(locker, "refusals", *ports)
        compete(options, cluster, locker)


if __name__ == "__main__":
    main(__doc__, run, arguments)
