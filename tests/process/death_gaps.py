#!/usr/bin/env python3
"""How long does nobody read or write after the leader has gone: Leasehold beside etcd, by turns, in one run?

  kill       the leader's process is killed
  restart    the same, its deputy before it; a supervisor starts it again after 100 ms. From when it listens again
  stop       the leader's process is stopped
  machine    the leader's machine is gone: cut off, and nobody left on it
  cut        the leader is cut off from the others

Three members of each, with their defaults. The gap of a member that stays is the time from the event to the first
answer to a request that was made after it, of reads (linearizable) and of writes each; what counts is the longer one
of the two members. A request never waits for the one before it. Every request goes into a history, which is judged.

Network namespaces are needed for `machine` and `cut`, and so is root. Without etcd (Debian: etcd-server) Leasehold is
alone. Status 1: a goal was missed, by the bad end of the 95 % interval of the median, or by the 99th percentile."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import statistics
import sys
import time

import chaos_net
from cluster import Failed, Skipped, built, check, main
from death_systems import MEMBERS, Etcd, Leasehold, Refused, Unknown
from history import History

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import results  # noqa: E402  pylint: disable=wrong-import-position

EVENTS = ("kill", "restart", "stop", "machine", "cut")
SUPERVISOR_PAUSE = 0.1
# When the requests are sent, in seconds after the event: more often while a known death is short.
EARLY = (0.001, 0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08)
LATE_PAUSE = 0.05
GIVEN_UP_SECONDS = 30.0
RETRY_PAUSE = 0.005
# The lease and the election timeout that a node has by default.
UNKNOWN_END = 1.0 + 0.3
# Median and 99th percentile.
GOALS = {"kill": (0.025, 0.080), "restart": (0.030, None), "stop": (1.1 * UNKNOWN_END, None),
         "machine": (1.1 * UNKNOWN_END, None), "cut": (1.1 * UNKNOWN_END, None)}


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--trials", type=int, default=50, help="of each event, with each system")
    parser.add_argument("--events", nargs="+", choices=EVENTS, default=EVENTS)
    parser.add_argument("--alone", action="store_true", help="without etcd")
    parser.add_argument("--no-goals", action="store_true", help="judge the histories only")
    parser.add_argument("--json", help="write every gap to this file, in ms")
    parser.add_argument("--results", metavar="FILE", help="write the table as JSON; tests/results.py prints that")


class Trial:
    """One event at one system."""

    clients = itertools.count(1)

    def __init__(self, system, network, event, history, key):
        self._system = system
        self._network = network
        self._event = event
        self._history = history
        self._key = key
        self._probes = set()
        self._ready = {}
        self._zero = None
        self._found = {}

    async def run(self):
        """{kind: seconds}."""
        leader = await in_thread(self._system.leader)
        survivors = [member for member in MEMBERS if member != leader]
        slots = [(member, kind) for member in survivors for kind in ("read", "write")]
        for slot in slots:
            self._ready[slot] = [self._system.client(slot[0]) for _ in EARLY]
            for client in self._ready[slot]:
                await client.open()
        # Both systems are at rest, and have been for some heartbeats.
        await asyncio.sleep(0.2 + random.random() * 0.1)
        probing = await self._happen(leader, slots)
        await probing
        await self._undo(leader)
        done, late = await asyncio.wait(self._probes, timeout=GIVEN_UP_SECONDS)
        for probe in late:
            probe.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for probe in done:
            probe.result()
        for clients in self._ready.values():
            for client in clients:
                client.close()
        return {kind: max(self._found[member, kind] for member in survivors) for kind in ("read", "write")}

    async def _happen(self, leader, slots):
        system = self._system
        if self._event == "restart":
            system.kill_helper(leader)
        if self._event in ("machine", "cut"):
            self._network.block(self._pairs(leader))
        self._zero = time.monotonic()
        if self._event in ("kill", "restart"):
            system.kill(leader)
        elif self._event == "machine":
            system.kill_all(leader)
        elif self._event == "stop":
            system.pause(leader)
        if self._event != "restart":
            return asyncio.create_task(self._probe(slots))
        await asyncio.sleep(SUPERVISOR_PAUSE)
        system.start(leader)
        while True:
            client = system.client(leader)
            try:
                await client.open()
                break
            except Refused:
                await asyncio.sleep(0.001)
            finally:
                client.close()
        self._zero = time.monotonic()
        return asyncio.create_task(self._probe(slots))

    async def _undo(self, leader):
        if self._event == "stop":
            self._system.resume(leader)
        if self._event in ("machine", "cut"):
            self._network.unblock(self._pairs(leader))
        if self._event in ("kill", "machine"):
            # Not on another thread: a member ends with the thread that started it.
            self._system.start(leader)

    def _pairs(self, leader):
        """Every path from and to the leader's machine."""
        first = self._network.first[self._system.name]
        machine = first + leader
        others = [first + member for member in MEMBERS if member != leader]
        return [pair for other in others for pair in ((machine, other), (other, machine))]

    async def _probe(self, slots):
        for number in itertools.count():
            at = EARLY[number] if number < len(EARLY) else EARLY[-1] + LATE_PAUSE * (number - len(EARLY) + 1)
            await asyncio.sleep(max(0.0, self._zero + at - time.monotonic()))
            open_slots = [slot for slot in slots if slot not in self._found]
            if not open_slots:
                return
            check(at < GIVEN_UP_SECONDS, f"{self._system.name}, {self._event}: nobody answers {open_slots}")
            for slot in open_slots:
                task = asyncio.create_task(self._request(slot))
                self._probes.add(task)

    async def _request(self, slot):
        """Until it is answered, or another one was."""
        member, kind = slot
        client = self._ready[slot].pop() if self._ready[slot] else None
        try:
            while True:
                try:
                    if client is None:
                        client = self._system.client(member)
                        await client.open()
                    await (self._read(client) if kind == "read" else self._write(client))
                    self._found.setdefault(slot, time.monotonic() - self._zero)
                    return
                except (Refused, Unknown):
                    if slot in self._found:
                        return
                    client.close()
                    client = None
                    await asyncio.sleep(RETRY_PAUSE)
        finally:
            if client is not None:
                client.close()

    async def _read(self, client):
        invoked = self._history.now()
        value = await client.read(self._key)
        self._history.read(next(Trial.clients), self._key, value, invoked)

    async def _write(self, client):
        value = self._history.new_value()
        invoked = self._history.now()
        reply = None
        try:
            await client.write(self._key, value)
            reply = "OK"
        except Refused:
            raise
        except BaseException:
            self._history.wrote(next(Trial.clients), self._key, value, invoked, None)
            raise
        self._history.wrote(next(Trial.clients), self._key, value, invoked, reply)


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


def median_interval(values, resamples=1000):
    """The 95 % interval of the median, by a bootstrap."""
    draw = random.Random(1)
    drawn = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(resamples))
    return drawn[int(0.025 * resamples)], drawn[int(0.975 * resamples)]


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def table_of(found):
    """A row of each event, system and kind of request."""
    rows = []
    for (event, system, kind), gaps in found.items():
        low, high = median_interval(gaps)
        worst = quantile(gaps, 0.99)
        row = {"event": event, "system": system, "kind": kind, "p50 ms": in_ms(statistics.median(gaps)),
               "95 % interval": f"{in_ms(low)} to {in_ms(high)}", "p90 ms": in_ms(quantile(gaps, 0.9)),
               "p99 ms": in_ms(worst), "max ms": in_ms(max(gaps)), "trials": len(gaps)}
        if system == Leasehold.name:
            median_goal, worst_goal = GOALS[event]
            row["goal"] = f"p50 at most {median_goal * 1000:.0f}"
            if worst_goal:
                row["goal"] += f", p99 at most {worst_goal * 1000:.0f}"
            met = high <= median_goal and (worst_goal is None or worst <= worst_goal)
            row["verdict"] = "met" if met else "missed"
        rows.append(row)
    return rows


def in_ms(seconds):
    return round(seconds * 1000, 1)


def write_results(path, options, rows):
    results.write(path, "how long nobody reads or writes after a leader has gone, beside etcd",
                  time.strftime("%Y-%m-%d"),
                  f"tests/process/death_gaps.py --trials {options.trials} --events {' '.join(options.events)}",
                  [f"{os.cpu_count()} cores, three members of each system in network namespaces of one machine, "
                   "defaults of both, by turns.",
                   "The gap is the longer one of the two members that stay, from the event on; of `restart` from the "
                   "instant at which the restarted process listens."],
                  [("Gaps", rows)])


def networks(events):
    """The network of all members of both systems."""
    try:
        chaos_net.enter_router()
        network = chaos_net.Namespaces(2 * len(MEMBERS), False)
    except Skipped as why:
        without = [event for event in events if event not in ("machine", "cut")]
        if not without:
            raise
        print(f"{why}: only {', '.join(without)}, on the loopback interface", flush=True)
        events, network = without, chaos_net.Loopback(2 * len(MEMBERS), False)
    network.first = {Leasehold.name: 0, Etcd.name: len(MEMBERS)}
    return events, network


def trials(options, events, network, systems, history):
    found = {}
    done = 0
    in_all = options.trials * len(events) * len(systems)
    for event in events:
        for number in range(options.trials):
            # A B B A: a mood of the machine meets both.
            for system in systems if number % 2 == 0 else systems[::-1]:
                key = f"{system.name}-{event}-{number}"
                gaps = asyncio.run(Trial(system, network, event, history[system.name], key).run())
                for kind, seconds in gaps.items():
                    found.setdefault((event, system.name, kind), []).append(seconds)
                done += 1
                print(f"{done} of {in_all}: {event}, {system.name}: read {gaps['read'] * 1000:.0f} ms, write "
                      f"{gaps['write'] * 1000:.0f} ms", flush=True)
    return found


def run(options):
    events, network = networks(options.events)
    places = list(network.places.values())
    history = {Leasehold.name: History(), Etcd.name: History()}
    with contextlib.ExitStack() as stack:
        stack.callback(network.close)
        systems = [stack.enter_context(Leasehold(options.binary, places[:len(MEMBERS)], options.keep))]
        if not options.alone and Etcd.installed():
            systems.append(stack.enter_context(Etcd(places[len(MEMBERS):], options.keep)))
        elif not options.alone:
            print("etcd is not installed (Debian: etcd-server): Leasehold alone")
        found = trials(options, events, network, systems, history)
    rows = table_of(found)
    print(results.table_of(rows))
    if options.results:
        write_results(options.results, options, rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({", ".join(name): [round(gap * 1000, 3) for gap in gaps] for name, gaps in found.items()},
                      file, indent=1)
    for system, record in history.items():
        if len(record) > 0:
            linearizable, verdict = record.judge(options.checker)
            print(f"history of {system}: {verdict}")
            check(linearizable, f"the history of {system} is not linearizable")
    missed = [f"{row['event']}, {row['kind']}" for row in rows if row.get("verdict") == "missed"]
    if missed and not options.no_goals:
        raise Failed("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main(__doc__, run, arguments)
