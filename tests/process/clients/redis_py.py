#!/usr/bin/python3
"""redis-py, unmodified: redis_py.py PORT PORT PORT (of the nodes). Prints what it did."""

import sys
import threading
import time

import redis
from redis.cluster import ClusterNode, RedisCluster

from access import HAS_RESP3, SECURED, check, connect, refusals, refuses, settings


def one_node(port, **protocol):
    r = connect(port, **protocol)
    key = f"py:{port}"
    check(r.set(key, b"\x00\xff\r\n") is True, "SET")
    check(r.get(key) == b"\x00\xff\r\n", "GET")
    check(r.set(key, "x", nx=True) is None, "SET NX")
    check(r.mset({key + ":a": 1, key + ":b": 2}) is True, "MSET")
    check(r.mget(key + ":a", "py:nothing", key + ":b") == [b"1", None, b"2"], "MGET")
    check(r.incrby(key + ":a", 5) == 6 and r.decr(key + ":a") == 5, "INCRBY")
    check(r.exists(key, key + ":a", "py:nothing") == 2, "EXISTS")
    check(r.type(key) == b"string" and r.ttl(key) == -1 and r.ttl("py:nothing") == -2, "TYPE, TTL")
    check(r.append(key + ":b", "xyz") == 4 and r.getrange(key + ":b", 1, 2) == b"xy", "APPEND")
    check(r.getdel(key + ":b") == b"2xyz" and not r.exists(key + ":b"), "GETDEL")
    for i in range(250):
        r.set(f"{key}:scan:{i}", i)
    found = list(r.scan_iter(match=f"{key}:scan:*", count=40))
    check(len(found) == 250 and len(set(found)) == 250, f"SCAN found {len(found)}")
    check(r.delete(*found) == 250, "DEL")
    check(r.set(key, "x", ex=100) is True and 99 <= r.ttl(key) <= 100, "SET EX")
    check(r.expire(key, 50, gt=True) is False and r.expire(key, 200) is True, "EXPIRE")
    check(199_000 < r.pttl(key) <= 200_000 and r.persist(key) and r.ttl(key) == -1, "PERSIST")
    check(r.getex(key, px=1000) == b"x" and 0 < r.pttl(key) <= 1000, "GETEX")
    refuses(lambda: r.lpush(key, 1), redis.ResponseError, "LPUSH", "every value is a string")
    check(r.info()["loading"] == 0 and r.config_get("databases") == {"databases": "1"}, "INFO")
    check(any(c["id"] == str(r.client_id()) for c in r.client_list()), "CLIENT LIST")
    check(r.command_count() > 50 and "get" in r.command(), "COMMAND")
    check(r.slowlog_get() is not None and r.role()[0] in (b"master", b"slave"), "SLOWLOG, ROLE")
    with r.pipeline(transaction=True) as p:
        check(p.set(key, 1).incr(key).get(key).execute() == [True, 2, b"2"], "MULTI")
    with r.pipeline(transaction=False) as p:
        for i in range(1000):
            p.incr(key)
        check(p.execute()[-1] == 1002, "a pipeline")


def transactions(ports):
    """Threads at all nodes raise one number by read, think and write under WATCH: none is lost."""
    rounds, threads = 20, 6
    connect(ports[0]).set("py:watched", 0)

    def raise_it(port):
        r = connect(port)
        for _ in range(rounds):
            r.transaction(lambda p: (lambda old: (p.multi(), p.set("py:watched", old + 1)))(
                int(p.get("py:watched"))), "py:watched")

    workers = [threading.Thread(target=raise_it, args=(ports[i % len(ports)],))
               for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    total = int(connect(ports[-1]).get("py:watched"))
    check(total == rounds * threads, f"{rounds * threads} raises under WATCH gave {total}")


def notifications(ports):
    """Every node reports the changes of a key, wherever it is written."""
    listeners = []
    # Since release 5 a client that is no longer used ends its listeners.
    clients = [connect(port) for port in ports]
    for r in clients:
        r.config_set("notify-keyspace-events", "KEA")
        p = r.pubsub(ignore_subscribe_messages=True)
        p.subscribe("__keyevent@0__:expired")
        p.psubscribe("__keyspace@0__:py:heard*")
        listeners.append(p)
        # The subscription stands when its confirmation has come.
        for _ in range(2):
            check(p.get_message(timeout=10) is None, "a confirmation")
    r = clients[0]
    r.set("py:heard", 1)
    r.incr("py:heard")
    r.set("py:not heard", 1)
    lease = r.execute_command("LEASE.GRANT", 2000)[0]
    r.execute_command("SET", "py:heard", 3, "LEASE", lease)
    expected = [("__keyspace@0__:py:heard", "set"), ("__keyspace@0__:py:heard", "incrby"),
                ("__keyspace@0__:py:heard", "set"), ("__keyspace@0__:py:heard", "expired"),
                ("__keyevent@0__:expired", "py:heard")]
    for p in listeners:
        heard = []
        until = time.monotonic() + 20
        while len(heard) < len(expected) and time.monotonic() < until:
            message = p.get_message(timeout=1)
            if message is not None:
                heard.append((message["channel"].decode(), message["data"].decode()))
        check(heard == expected, f"heard {heard}")
        p.unsubscribe()
        p.punsubscribe()
        p.close()
    p = r.pubsub()
    p.subscribe("news")
    refuses(lambda: p.get_message(timeout=10), redis.ResponseError, "SUBSCRIBE news", "no publish/subscribe")


def cluster(ports):
    c = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port) for port in ports], **settings())
    check(len(c.get_nodes()) == 3 and len(c.get_primaries()) == 1, f"nodes: {c.get_nodes()}")
    for i in range(100):
        c.set(f"py:cluster:{i}", i)
    check(all(c.get(f"py:cluster:{i}") == str(i).encode() for i in range(100)), "cluster GET")
    c = RedisCluster(host="127.0.0.1", port=ports[0], read_from_replicas=True, **settings())
    check(all(c.get(f"py:cluster:{i}") == str(i).encode() for i in range(100)), "replica GET")


def main():
    ports = [int(word) for word in sys.argv[1:]]
    protocols = [{"protocol": 2}, {"protocol": 3}] if HAS_RESP3 else [{}]
    for port in ports:
        for protocol in protocols:
            one_node(port, **protocol)
            if SECURED:
                refusals(port, **protocol)
    transactions(ports)
    notifications(ports)
    cluster(ports)
    print(f"redis-py {redis.__version__}, RESP2{' and RESP3' if HAS_RESP3 else ''}: commands, pipelines, "
          "WATCH from six threads, keyspace notifications, the cluster client"
          f"{'; by TLS as a user, and what that user is refused' if SECURED else ''}")


if __name__ == "__main__":
    main()
