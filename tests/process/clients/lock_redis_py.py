#!/usr/bin/python3
"""Locks of redis-py, unmodified.

  lock_redis_py.py stories PORT...            every method of its Lock, at each node
  lock_redis_py.py compete SECONDS TTL OVERTIME PORT...
      takes one lock again and again, at any node, and prints one line for each time: when it had the
      lock from and until, by the machine's monotonic clock, and whether it released it. OVERTIME:
      seconds for which it stays longer than it may.
  lock_redis_py.py refusals PORT...           what a user is refused that may only lock
"""

import random
import sys
import time

import redis
from redis.exceptions import LockError, LockNotOwnedError, NoPermissionError, RedisError

from access import check, connect, refuses

NAME = "locks:contested"
# What a holder leaves, of both clocks' drift and of what it takes to stop.
MARGIN = 0.1


def stories(port):
    r = connect(port)
    name = f"locks:py:{port}"
    first = r.lock(name, timeout=60)
    other = r.lock(name, timeout=60, blocking=False)
    check(first.acquire() and first.owned() and first.locked(), "acquire")
    check(not other.acquire(), "a second one acquired it")
    check(first.extend(30) and 89_000 < r.pttl(name) <= 90_000, f"extend to {r.pttl(name)}")
    check(first.extend(20, replace_ttl=True) and 19_000 < r.pttl(name) <= 20_000, "extend, replace")
    check(first.reacquire() and 59_000 < r.pttl(name) <= 60_000, "reacquire")
    for call in (other.release, lambda: other.extend(10), other.reacquire):
        other.local.token = b"another"
        refuses(call, LockNotOwnedError, "what another one does")
    check(r.pttl(name) > 50_000, "another one has shortened it")
    first.release()
    check(not r.exists(name), "release")
    refuses(first.release, LockError, "a second release")
    with r.lock(name, timeout=60):
        check(r.exists(name), "as a context")
    check(not r.exists(name), "behind the context")
    short = r.lock(name, timeout=0.5)
    check(short.acquire(), "a short one")
    began = time.monotonic()
    check(r.lock(name, timeout=60).acquire(blocking=True, blocking_timeout=20), "behind a short one")
    check(time.monotonic() - began > 0.3, "the short one ended early")
    refuses(short.release, LockNotOwnedError, "a release of what has ended")
    r.delete(name)
    endless = r.lock(name)
    check(endless.acquire() and r.ttl(name) == -1, "without a time")
    endless.release()
    digest = r.script_load(redis.lock.Lock.LUA_RELEASE_SCRIPT)
    check(r.script_exists(digest) == [True] and r.script_flush(), "SCRIPT")
    refuses(lambda: r.eval("return 1", 0), redis.ResponseError, "another script")


def refusals(port):
    r = connect(port)
    mine = r.lock("locks:py:mine", timeout=60)
    check(mine.acquire() and mine.extend(30) and mine.reacquire(), "its own lock")
    refuses(r.lock("another", timeout=60).acquire, NoPermissionError, "another key", "access a key")
    another = r.lock("another", timeout=60)
    for call in (another.release, lambda: another.extend(10), another.reacquire):
        another.local.token = mine.local.token
        refuses(call, NoPermissionError, "a script on another key", "access a key")
    mine.release()
    refuses(lambda: r.incr("locks:py:mine"), NoPermissionError, "another command", "'incrby' command")


def compete(seconds, ttl, overtime, ports):
    end = time.monotonic() + seconds
    dice = random.Random()
    while time.monotonic() < end:
        client = connect(dice.choice(ports), socket_timeout=3, socket_connect_timeout=3)
        try:
            while time.monotonic() < end:
                lock = client.lock(NAME, timeout=ttl, sleep=0.02)
                sent = time.monotonic()
                if not lock.acquire(blocking=False):
                    time.sleep(0.02)
                    continue
                hold(lock, sent, ttl, overtime, dice)
        except RedisError:
            # The lock may be held in this one's name, and ends by itself.
            time.sleep(0.05)
        finally:
            client.close()


def hold(lock, sent, ttl, overtime, dice):
    since = time.monotonic()
    mine = sent + ttl - MARGIN
    if since >= mine:
        return
    way = dice.random()
    if way < 0.3 and not overtime:
        # To the last moment, and away without a word.
        time.sleep(mine - since)
        print(f"held {since:.6f} {mine:.6f} left", flush=True)
        return
    if way < 0.5 and not overtime:
        sent = time.monotonic()
        lock.extend(ttl / 2)
        mine += ttl / 2
    until = time.monotonic() + overtime + dice.uniform(0, 0.05)
    if overtime:
        until += mine - time.monotonic()
    else:
        until = min(until, mine)
    time.sleep(max(0, until - time.monotonic()))
    print(f"held {since:.6f} {until:.6f} released", flush=True)
    try:
        lock.release()
    except LockError:
        pass


def main():
    what, *words = sys.argv[1:]
    if what == "compete":
        compete(float(words[0]), float(words[1]), float(words[2]), [int(port) for port in words[3:]])
        return
    for port in words:
        (stories if what == "stories" else refusals)(int(port))
    told = "every method of Lock" if what == "stories" else "with no right but that to lock,"
    print(f"redis-py {redis.__version__}: {told} at {len(words)} nodes")


main()
