#!/usr/bin/env python3
"""kill -9 of the leader under load, again and again: how long until the first acknowledged write
and the first lease read, and is every acknowledged write still there at the end?

  --known-by deputy    the leader's deputy tells the others of its end (the default)
  --known-by restart   the deputy is killed first, and the leader started again after 100 ms, as by a
                       supervisor: its next process tells of the end; gaps count from its start
  --known-by time      no deputies, and no restart meanwhile: the lease runs out"""

import asyncio
import os
import signal
import statistics
import time

from cluster import Cluster, Failed, built, check, main, wait_for
from history import History, Ledger
from load import GapMeter, Load, spread

WRITERS = 6
MIXERS = 6
REGISTERS = 4
# How long the load runs between the kills.
STEADY_SECONDS = 1.0
# A median of fewer kills says too little to be judged.
MEDIAN_KILLS = 20
SUPERVISOR_PAUSE = 0.1
# Of gaps, the median and the longest: in round trips, and above all the work of the machine.
KNOWN_GAP, KNOWN_GAP_MAX = 0.025, 0.080
# A process has to start, to open its log and its store, and to connect.
START_GAP, START_GAP_MAX = 0.150, 0.400


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--known-by", choices=["deputy", "restart", "time"], default="deputy")
    parser.add_argument("--writes", type=int, default=10000,
                        help="acknowledged unique writes, at least")
    parser.add_argument("--pause-ms", type=float, default=10,
                        help="how long each client rests between two operations")
    parser.add_argument("--lease-ms", type=int, default=1000)
    parser.add_argument("--election-timeout-ms", type=int, default=300)


async def one_kill(cluster, ledger, load, options, limit):
    leader = await in_thread(cluster.wait_leader)
    before = leader.status()
    restart = options.known_by == "restart"
    meter = GapMeter(cluster.others(leader), ledger, before["term"], any_read=restart)
    await meter.prepare()
    if restart:
        os.kill(await in_thread(wait_for, "its deputy", 10, leader.deputy), signal.SIGKILL)
    begun = time.monotonic()
    measuring = asyncio.create_task(meter.measure(limit + 10))
    leader.process.kill()
    if restart:
        await asyncio.sleep(SUPERVISOR_PAUSE)
        await in_thread(leader.kill)
        check(meter.write_gap is None and meter.read_gap is None, "somebody led before the restart")
        leader.start()
        started = time.monotonic() - begun
    await measuring
    if restart:
        meter.write_gap -= started
        meter.read_gap -= started
    else:
        await in_thread(leader.kill)  # waits for what is dead already
        leader.start()
    await in_thread(cluster.wait_caught_up, leader)
    await asyncio.sleep(STEADY_SECONDS)
    load.check()
    await meter.settle()
    return meter, leader


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


async def kill_all_rounds(options, cluster, ledger, history, limit):
    load = Load(cluster.nodes, ledger, history, WRITERS, MIXERS, REGISTERS,
                options.pause_ms / 1000)
    meters = []
    for number in range(1, options.kills + 1):
        meter, killed = await one_kill(cluster, ledger, load, options, limit)
        meters.append(meter)
        print(f"kill {number}: {killed} led; first write after {meter.write_gap * 1000:.0f} ms, first "
              f"read after {meter.read_gap * 1000:.0f} ms; writes: {ledger.summary()}", flush=True)
    while len(ledger.acked) < options.writes:
        load.check()
        await asyncio.sleep(0.05)
    await load.stop()
    return meters


def judge_gaps(name, gaps, options, lease, election):
    median_limit, maximum_limit = {
        "deputy": (KNOWN_GAP, KNOWN_GAP_MAX),
        "restart": (START_GAP, START_GAP_MAX),
        "time": (1.1 * (lease + election), lease + 4 * election),
    }[options.known_by]
    median_limit *= options.slack
    maximum_limit *= options.slack
    print(f"{name}: {spread(gaps)}, over {len(gaps)} kills; limits: median "
          f"{median_limit * 1000:.0f} ms, maximum {maximum_limit * 1000:.0f} ms")
    problems = []
    if max(gaps) > maximum_limit:
        problems.append(f"{name}: the longest gap is above its limit")
    if len(gaps) >= MEDIAN_KILLS and statistics.median(gaps) > median_limit:
        problems.append(f"{name}: the median gap is above its limit")
    return problems


def read_back(cluster, ledger, when):
    for node in cluster.nodes:
        count, found = ledger.read_back(node)
        print(f"{when}: {node} returned all of {count} writes; {found} of the "
              f"{len(ledger.unknown)} unknown ones were executed")


def run(options):
    lease, election = options.lease_ms / 1000, options.election_timeout_ms / 1000
    flags = ["--lease", f"{options.lease_ms}ms",
             "--election-timeout", f"{options.election_timeout_ms}ms",
             "--deputy", "off" if options.known_by == "time" else "on"]
    ledger, history = Ledger("ledger"), History()
    with Cluster(options.binary, flags=flags, keep=options.keep) as cluster:
        cluster.start()
        meters = asyncio.run(kill_all_rounds(options, cluster, ledger, history,
                                             lease + 4 * election))
        print(f"ledger: {ledger.summary()}")
        check(len(ledger.acked) >= options.writes, "too few acknowledged writes")
        read_back(cluster, ledger, "after the kills")
        for node in cluster.nodes:
            node.process.kill()
        for node in cluster.nodes:
            node.kill()
        cluster.start()
        read_back(cluster, ledger, "after kill -9 of all")
    linearizable, verdict = history.judge(options.checker)
    print(f"history of the registers: {verdict}")
    check(linearizable, "the history is not linearizable")
    problems = (judge_gaps("first write", [m.write_gap for m in meters], options, lease, election) +
                judge_gaps("first read", [m.read_gap for m in meters], options, lease,
                           election))
    if problems:
        raise Failed("; ".join(problems))


if __name__ == "__main__":
    main(__doc__, run, arguments)
