#!/usr/bin/env python3
"""A leader is stopped past its lease, a new one overwrites keys, and only then do reads of these
keys arrive in the sockets of the stopped one. When it goes on, it finds them unread: none may be
answered with what was overwritten.

With --expect-stale the verdict is turned around: for a build without the lease check, on which this
test has to fail."""

from cluster import Cluster, Failed, built, check, main, wait_for
from history import History

import resp

KEYS = 120
SOCKETS = 4
# For the checker's explanations only.
SETUP, STOPPED, WRITER, OTHER = 0, 1, 2, 3


def arguments(parser):
    parser.add_argument("--checker", required=True, type=built, help="the leasehold_check program")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--expect-stale", action="store_true")


def overwrite(history, node, client, keys):
    """A new value under every key, each acknowledged."""
    values = {}
    with node.client() as connection:
        for key in keys:
            values[key] = history.new_value()
            invoked = history.now()
            reply = connection.call("SET", key, values[key])
            history.wrote(client, key, values[key], invoked, reply)
            check(reply == "OK", f"SET at {node} was answered {reply!r}")
    return values


def open_sockets(leader):
    """Connections that the leader's threads know: each has answered."""
    clients = [leader.client(timeout=15) for _ in range(SOCKETS)]
    for client in clients:
        check(client.call("PING") == "PONG", "no PONG")
    return clients


def write_gets(history, clients, keys):
    """All in one go. Returns who asked what when."""
    asked = []
    for number, client in enumerate(clients):
        part = keys[number::len(clients)]
        invoked = history.now()
        client.send_raw(b"".join(resp.encode("GET", key) for key in part))
        asked += [(client, key, invoked) for key in part]
    return asked


def one_round(history, cluster, number):
    leader = cluster.wait_leader()
    others = cluster.others(leader)
    keys = [f"stopped:{number}:{i}" for i in range(KEYS)]
    overwrite(history, leader, SETUP, keys)
    clients = open_sockets(leader)
    term = leader.status()["term"]
    leader.pause()
    try:
        successor = cluster.wait_leader(among=others)
        check(successor.status()["term"] > term, "the term did not rise")
        fresh = overwrite(history, successor, WRITER, keys)
        asked = write_gets(history, clients, keys)
    finally:
        leader.resume()
    answered = refused = stale = 0
    for client, key, invoked in asked:
        reply = client.read_reply()
        history.read(STOPPED, key, reply, invoked)
        if isinstance(reply, resp.RespError):
            refused += 1
        else:
            answered += 1
            stale += reply != str(fresh[key]).encode()
    for client in clients:
        client.close()
    with successor.client() as connection:
        for key in keys:
            invoked = history.now()
            history.read(OTHER, key, connection.call("GET", key), invoked)
    print(f"round {number}: {leader} stopped, {successor} took over; of {len(asked)} unread GETs "
          f"{answered} were answered, {stale} of them stale, {refused} refused", flush=True)
    wait_for(f"{leader} to follow", 20, lambda: cluster.wait_leader() is not None)
    return len(asked), stale


def run(options):
    history = History()
    asked = stale = 0
    with Cluster(options.binary, keep=options.keep) as cluster:
        cluster.start()
        for number in range(1, options.rounds + 1):
            round_asked, round_stale = one_round(history, cluster, number)
            asked += round_asked
            stale += round_stale
    linearizable, verdict = history.judge(options.checker)
    print(f"{options.rounds} rounds, {asked} unread GETs, {stale} stale answers; the history: "
          f"{verdict}")
    if not options.expect_stale:
        check(stale == 0 and linearizable, "a stopped leader served what was overwritten")
    elif stale == 0:
        raise Failed("not one stale answer: this test cannot see what it is there to see")
    else:
        check(not linearizable, "the checker passed a history with stale answers")


if __name__ == "__main__":
    main(__doc__, run, arguments)
