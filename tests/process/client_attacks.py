#!/usr/bin/env python3
"""Attacks on the client ports of three kinds of group: plain on loopback, with a key and passwords, with certificates.

client_attacks.json has the attacks. On top of them every command of the table is sent with each wrong credential, whole
and spoiled (client_cases.py). None may move a term, a leader, a member, a user, a lease, a session or a key, show a
value, end a process or a connection of others, or take more memory than it states."""

import contextlib
import json
import os
import re
import time

import client_floods
import resp
from client_cases import Generator, control
from client_scene import GROUPS, Recorder, blind
from cluster import check, main

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "client_attacks.json"), encoding="utf-8") as attacks_file:
    ATTACKS = json.load(attacks_file)
# What an attack may make the memory of a node grow by, in MiB, unless it states something else; and all together.
MEMORY = 12
MEMORY_AT_THE_END = 128
# A check of a password takes 16 of them. One may still be under way that an attack before has asked for.
MEMORY_OF_A_GUESS = 20
# What a request of a rightful user may take beside an attack, unless it states something else.
SECONDS = 10
SETTLE_SECONDS = 0.005


class Attacks:
    def __init__(self, options, scene):
        self.options = options
        self.scene = scene
        self.count = 0

    def listed(self):
        for place, spec in enumerate(ATTACKS):
            # The bytes of the other two groups come to the same parser behind TLS: in the short form, a part of them.
            if not self.options.full and self.scene.kind == "certificates" and "text" in spec and place % 4:
                continue
            if self.scene.kind not in spec.get("groups", GROUPS):
                continue
            if not self.options.full and self.scene.kind not in spec.get("short", GROUPS):
                continue
            attackers = self.scene.of(spec.get("by", ["powerless"]))
            if "connections" in spec or not self.options.full and "commands" not in spec:
                # A guess before each of many connections shows nothing more, and takes its time.
                attackers = [one for one in attackers if not one.guesses]
            if not self.options.full and ("commands" not in spec or spec.get("slow")):
                attackers = attackers[self.count % len(attackers):][:1] if attackers else []
            for attacker in attackers:
                self.one(spec, attacker)

    def one(self, spec, attacker):
        nodes = self.scene.cluster.nodes
        node = nodes[self.count % len(nodes)]
        what = f"{spec['name']} by {attacker.name} at {node}"
        self.count += 1
        self.scene.memory[node.id] = self.scene.status(node)["rss_bytes"]

        def hold():
            time.sleep(SETTLE_SECONDS)
            self.hold(what, spec, node)
        begun = time.monotonic()
        if "do" in spec:
            spec = {"seconds": SECONDS, **spec}
            getattr(client_floods, spec["do"])(client_floods.Flood(self.scene, node, attacker, spec, hold))
        elif "text" in spec:
            self.text(spec, attacker, node, what, hold)
        else:
            self.commands(spec, attacker, node, what)
            hold()
        if self.options.times:
            print(f"{time.monotonic() - begun:7.3f} s {self.scene.grown(node) >> 10:7} KiB  {what}", flush=True)

    def hold(self, what, spec, node):
        """Looks at the group while the attack has what it can get, and is its user beside it."""
        grown = max(self.scene.grown(node) for _ in range(3))
        limit = spec.get("memory", MEMORY) + (MEMORY_OF_A_GUESS if self.scene.with_users else 0)
        check(self.options.no_memory_limit or grown < limit << 20,
              f"{what}: {node} grew by {grown >> 10} KiB, and {limit} MiB are stated")
        self.scene.look(what)
        if "connections" not in spec:
            return  # it is over
        begun = time.monotonic()
        reply = self.scene.operator(node).call("SET", "beside", what)
        check(reply == "OK", f"{what}: a user is answered {reply!r} beside it")
        took = time.monotonic() - begun
        check(took < spec.get("seconds", SECONDS) * self.options.slack, f"{what}: a write beside it takes {took:.1f} s")
        self.scene.again()

    @staticmethod
    def text(spec, attacker, node, what, hold):
        """Bytes that have to end the connection."""
        client = attacker.connect(node)
        if client is not None:
            with client:
                text = spec["text"] if isinstance(spec["text"], str) else "".join(spec["text"])
                with contextlib.suppress(resp.ConnectionLost):
                    client.send_raw(text.encode("latin-1"))
                check(client.closed_by_server(), f"{what}: the connection stays open")
        hold()

    def commands(self, spec, attacker, node, what):
        """Commands that have to be refused, each with an error."""
        client = None
        for words in spec["commands"]:
            client = client or attacker.connect(node)
            if client is None:
                return
            try:
                reply = client.call(*self.scene.fill(words, node))
                if isinstance(reply, list) and len(reply) == 1:
                    reply = reply[0]
                check(isinstance(reply, resp.RespError) and re.match(spec.get("reply", ""), reply.text),
                      f"{what}: {str(words)[:200]} was answered {str(reply)[:200]}")
            except resp.ConnectionLost:
                client = None
        if client:
            client.close()

    def end(self):
        for node in self.scene.cluster.nodes:
            with node.client() as client:
                check(client.call("SET", f"after-{node.id}", "x") == "OK", f"{node} does not write any more")


def records_of_operators(scene):
    """The control of the group with certificates: what operators do moves something, and its recording nothing."""
    node = scene.leader()
    scene.furnish()
    scene.again()
    for words in (("SET", "app:k", "evil"), ("ACL", "SETUSER", "evil", "on", "nopass"), ("INCR", "app:n"),
                  ("LEASE.REVOKE", "lock"), ("LEASEHOLD", "BACKUP", "evil"), ("DEL", "app:held", "app:k")):
        with Recorder(node) as recorder, resp.Client(recorder.port, 10, tls=blind(), user=node.user) as client:
            check(not isinstance(client.call(*words), resp.RespError), f"{words} of an operator")
        check(scene.standing() != scene.before, f"the control: {words} of an operator moves nothing")
        scene.again()
        client_floods.deaf(node, "127.0.0.1", recorder.sent)
        scene.look(f"{words} of an operator, replayed")


def attack(options, kind):
    with GROUPS[kind](options) as scene:
        begun = time.monotonic()
        at_first = {node.id: scene.status(node)["rss_bytes"] for node in scene.cluster.nodes}
        attacks = Attacks(options, scene)
        attacks.listed()
        listed = time.monotonic()
        scene.again()
        generated = Generator(scene, options.full).run()
        scene.memory = at_first
        if not options.no_memory_limit:
            scene.check_memory("all of them", MEMORY_AT_THE_END << 20)
        attacks.end()
        print(f"{kind}: {attacks.count} attacks in {listed - begun:.1f} s and {generated} cases in "
              f"{time.monotonic() - listed:.1f} s: nothing moved", flush=True)
        if kind == "certificates":
            records_of_operators(scene)
        moved = control(scene) if kind == "key" else 0
        if moved:
            print(f"control: the same bytes of an operator move something: {moved} commands", flush=True)


def run(options):
    for kind in options.groups.split(","):
        attack(options, kind)


if __name__ == "__main__":
    def arguments(parser):
        parser.add_argument("--full", action="store_true", help="each attack and case by each attacker, in each way")
        parser.add_argument("--groups", default=",".join(GROUPS), help="some of them")
        parser.add_argument("--times", action="store_true", help="print what each attack of the list took")
    main(__doc__.splitlines()[0], run, arguments)
