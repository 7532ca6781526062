"""Hostile cases by a generator: every command of a node's table, with each wrong credential, whole and spoiled."""

import collections
import itertools
import shlex

import resp
from client_scene import TREASURE, password_of
from cluster import check

SCRIPT = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end"
# What a user with the rights changes by it: the control sees each of them move something. `;`: the next command.
MOVERS = {
    "append": "APPEND app:k evil", "decr": "DECR app:n", "decrby": "DECRBY app:n 5", "incr": "INCR app:n",
    "incrby": "INCRBY app:n 5", "del": "DEL app:k", "unlink": "UNLINK app:n", "expire": "EXPIRE app:k 0",
    "pexpire": "PEXPIRE app:k 0", "expireat": "EXPIREAT app:k 1", "pexpireat": "PEXPIREAT app:k 1",
    "getdel": "GETDEL app:k", "getex": "GETEX app:k EXAT 1", "getset": "GETSET app:k evil",
    "mset": "MSET app:k evil app:n evil", "msetnx": "MSETNX app:new evil", "rename": "RENAME app:k app:stolen",
    "renamenx": "RENAMENX app:k app:stolen", "set": "SET app:k evil", "setex": "SETEX app:k 1000 evil",
    "setnx": "SETNX app:new evil", "psetex": "PSETEX app:k 1000000 evil", "setrange": "SETRANGE app:k 0 evil",
    "setseq": "SETSEQ app:q/ evil", "exec": "MULTI; SET app:k evil; EXEC",
    "eval": f"EVAL '{SCRIPT}' 1 app:k '{TREASURE}'",
    "lease.revoke": "LEASE.REVOKE lock", "lease.attach": "LEASE.ATTACH lock app:n",
    "lease.detach": "LEASE.DETACH app:held",
    "leasehold|session": "LEASEHOLD SESSION CLOSE {session}",
    "leasehold|backup": "LEASEHOLD BACKUP evil",
    "acl|setuser": "ACL SETUSER evil on nopass ~* +@all", "acl|deluser": "ACL DELUSER nobody",
    "leasehold|settings": "LEASEHOLD SETTINGS SET margin 11ms",
    "leasehold|transfer": "LEASEHOLD TRANSFER {other}", "leasehold|member": "LEASEHOLD MEMBER DEMOTE {other}",
}
# With what the others would show, touch or change something.
OTHERS = {
    "acl|dryrun": "ACL DRYRUN root SET app:k evil", "acl|getuser": "ACL GETUSER root", "auth": "AUTH root guess",
    "client|kill": "CLIENT KILL ID {victim}", "client|reply": "CLIENT REPLY ON", "config|get": "CONFIG GET *",
    "config|set": "CONFIG SET maxmemory 1", "evalsha": f"EVALSHA {'0' * 40} 1 app:k x", "keys": "KEYS *",
    "hello": "HELLO 3 AUTH root guess",
    "lease.grant": "LEASE.GRANT 60000 NAME lock", "lease.renew": "LEASE.RENEW lock",
    "lease.info": "LEASE.INFO NAME lock",
    "leasehold|once": "LEASEHOLD ONCE {session} 5 SET app:k evil", "leasehold|range": "LEASEHOLD RANGE app: VALUES",
    "leasehold|read": "LEASEHOLD READ lease GET app:k", "leasehold|watch": "LEASEHOLD WATCH KEY app:k VALUES",
    "leasehold|expect": "LEASEHOLD EXPECT app:k 0", "scan": "SCAN 0 COUNT 1000", "getrange": "GETRANGE app:k 0 -1",
    "substr": "SUBSTR app:k 0 -1", "subscribe": "SUBSCRIBE __keyspace@0__:app:k",
    "psubscribe": "PSUBSCRIBE __key*__:app:*", "script|load": f"SCRIPT LOAD '{SCRIPT}'",
    "wait": "WAIT 0 0", "leasehold|readmode": "LEASEHOLD READMODE quorum",
    "leasehold|readbackup": "LEASEHOLD READBACKUP evil 0", "leasehold|slots": "LEASEHOLD SLOTS MOVE 0-9 TO 2",
    "leasehold|trace": "LEASEHOLD TRACE START 10ms",
}
# Answered without a user: they prove one, or end the connection.
WITHOUT_USER = {"quit", "reset"}
# These prove who one is, which no attacker can.
PROVE = {"auth", "hello"}
# After these a connection is not what it was.
CHANGES_CONNECTION = {"auth", "client|reply", "discard", "exec", "hello", "leasehold|expect", "leasehold|readmode",
                      "leasehold|watch", "multi", "psubscribe", "quit", "reset", "subscribe", "watch"}
# What belongs to somebody else, among the words of a command. LEASE.INFO shows every lease to who may read.
NOT_MINE = ("app:", "lock", "{session}")
SHOWS_LEASES = {"lease.info", "lease.list"}
OUT_OF_RANGE = ("9223372036854775808", "-1", "99999999999999999999999999", "x" * 70000, "", "nan", "\0\r\n*1",
                "-9223372036854775809")
VARIANTS = ("whole", "truncated", "out of range", "sent twice")


class Command:
    def __init__(self, name, arity, first_key, for_operators):
        self.name = name
        self.for_operators = for_operators
        line = MOVERS.get(name) or OTHERS.get(name)
        own = name.split("|")
        if line:
            self.parts = [shlex.split(part) for part in line.split("; ")] if "EVAL" not in line else [shlex.split(line)]
        else:
            self.parts = [own + ["app:k" if first_key > 0 else "x"] * (abs(arity) - len(own))]
        self.named = len(own)
        self.not_mine = name not in SHOWS_LEASES and any(
            word.startswith(NOT_MINE) for part in self.parts for word in part[len(own):])

    def bytes(self, scene, node):
        return b"".join(resp.encode(*scene.fill(part, node)) for part in self.parts)

    def spoiled(self, count, short):
        """Each argument is one that no command can mean."""
        words = [word for word in OUT_OF_RANGE if not short or len(word) < 100]
        odd = itertools.islice(itertools.cycle(words), count % len(words), None)
        return b"".join(resp.encode(*part[:self.named], *(next(odd) for _ in part[self.named:])) for part in self.parts)


def commands_of(operator):
    """Every command and subcommand of the table, as the node lists it."""
    found = []
    for_operators = {name.decode() for name in operator.call("ACL", "CAT", "cluster-admin")}
    for entry in operator.call("COMMAND"):
        for name, arity, _, first_key, *_ in [entry] + (entry[9] if len(entry) > 9 else []):
            name = name.decode()
            found.append(Command(name, arity, first_key, name in for_operators))
    check(len(found) > 100, f"the table has {len(found)} commands only")
    return found


class Generator:
    """Sends every command by every attacker, who may not have it."""

    def __init__(self, scene, every_variant):
        self.scene = scene
        self.every_variant = every_variant
        self.commands = commands_of(scene.operator())
        self.count = 0
        self._open = {}
        self._cut_off = collections.Counter()

    def run(self):
        attackers = [one for one in self.scene.attackers if one.kind in ("powerless", "nobody", "mallory")]
        for place, command in enumerate(self.commands):
            for number, attacker in enumerate(attackers):
                # In the short form, one that no node serves tries a part of the commands.
                if not self.every_variant and self._cut_off[attacker.name] > 10 and (place + number) % 4:
                    continue
                chosen = VARIANTS if self.every_variant else (VARIANTS[self.count % len(VARIANTS)],)
                if attacker.guesses and not self.every_variant and chosen == ("truncated",):
                    chosen = ("whole",)
                for variant in chosen:
                    self._one(command, attacker, variant)
                    if self.every_variant:
                        self.scene.look(f"{command.name}, {variant}, by {attacker.name}")
            self.scene.look(f"{command.name} by {len(attackers)} attackers")
        for client in self._open.values():
            client.close()
        return self.count

    def _one(self, command, attacker, variant):
        node = self.scene.cluster.nodes[self.count % len(self.scene.cluster.nodes)]
        what = f"{command.name}, {variant}, by {attacker.name} at {node}"
        self.count += 1
        at = (attacker.name, node.id)
        client = self._open.pop(at, None) or attacker.connect(node)
        if client is None:
            return None
        short = attacker.guesses and not self.every_variant
        data = (command.spoiled(self.count, short) if variant == "out of range" else
                command.bytes(self.scene, node))
        expected = len(command.parts)
        if variant == "truncated":
            data = data[:-1 - self.count % (len(data) // 2)]
        elif variant == "sent twice":
            data, expected = 2 * data, 2 * expected
        try:
            client.send_raw(data)
            if variant == "truncated" and attacker.tls:
                return client.close()  # one half of it cannot be closed alone
            if variant == "truncated":
                client.half_close()
                check(client.closed_by_server(), f"{what}: the connection stays open")
                client.close()
                while (reply := client.next_reply()) is not None:
                    self._judge(command, attacker, what, reply)
                return None
            for _ in range(expected):
                reply = client.read_reply()
                self._judge(command, attacker, what, reply)
        except (resp.ConnectionLost, OSError):
            self._cut_off[attacker.name] += 1
            return client.close()
        changed = command.name in (CHANGES_CONNECTION if attacker.kind == "mallory" else WITHOUT_USER)
        if changed or getattr(reply, "word", "") == "DENIED":
            client.close()
        else:
            self._open[at] = client
        return None

    def _judge(self, command, attacker, what, reply):
        check(TREASURE not in str(reply), f"{what} shows a value: {reply!r}")
        check("app:" not in str(reply) or command.not_mine or command.name in SHOWS_LEASES,
              f"{what} shows a key: {reply!r}")
        if isinstance(reply, resp.RespError) or command.name in WITHOUT_USER:
            return
        # Every user may select a group: each command has rights of its own.
        if command.name == "leasehold|group" and attacker.kind != "powerless":
            return
        # A user may do what concerns nobody else. A transaction begins, and is refused then.
        begun = command.name == "exec" and reply == "OK"
        errors = isinstance(reply, list) and reply and all(isinstance(one, resp.RespError) for one in reply)
        mine = begun or errors or not command.not_mine or "out of range" in what
        check(attacker.kind == "mallory" and mine and not command.for_operators and command.name not in PROVE,
              f"{what} was answered {str(reply)[:200]}")


def control(scene):
    """The same bytes of an operator move something. Returns how many commands did."""
    moved = 0
    # These two change who leads and who votes: at the end.
    last = ("leasehold|transfer", "leasehold|member")
    commands = {command.name: command for command in commands_of(scene.operator()) if command.name in MOVERS}
    check(set(commands) == set(MOVERS), f"no commands: {set(MOVERS) - set(commands)}")
    for name in [*(name for name in commands if name not in last), *last]:
        command = commands[name]
        scene.furnish()
        before = scene.standing()
        leader = scene.leader()
        with leader.client(30) as client:
            if name == "leasehold|session":  # it is there for its owner only
                check(client.call("AUTH", "ann", password_of("ann")) == "OK", "AUTH")
            client.send_raw(command.bytes(scene, leader))
            replies = [client.read_reply() for _ in command.parts]
        scene.cluster.wait_leader()
        for node in scene.cluster.nodes:
            scene.cluster.wait_caught_up(node)
        check(scene.standing() != before, f"the control: {command.name} by who may moves nothing: {replies}")
        moved += 1
    return moved
