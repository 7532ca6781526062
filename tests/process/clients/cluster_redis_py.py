#!/usr/bin/python3
"""The cluster client of redis-py, unmodified: cluster_redis_py.py PORT PORT PORT (of the nodes). Writes and reads back
until its input ends; a line for each value that was acknowledged ("ok N"), and for each call that failed ("failed
WHY").

An object of release 4.3 that asks for the layout once more fails as soon as one of its nodes does not answer (it cannot
copy its own settings). So it is made again after that exception."""

import logging
import select
import sys

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException

from access import settings


def say(*words):
    print(*words, flush=True)


def main():
    # The library writes to the log what it raises, too, and destroys what it has only begun to copy.
    logging.disable()
    sys.unraisablehook = lambda _: None
    nodes = [ClusterNode("127.0.0.1", int(port)) for port in sys.argv[1:]]
    client = None
    number = 0
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        number += 1
        key = f"redis-py:{number}"
        try:
            client = client or RedisCluster(startup_nodes=nodes, **settings(socket_timeout=3))
            if client.set(key, number) is not True:
                raise redis.RedisError("SET")
            say("ok", number)
            read = client.get(key)
            if read != str(number).encode():
                say("wrong", number, repr(read))
        except (redis.RedisError, RedisClusterException, OSError) as error:
            if isinstance(error, RedisClusterException):
                client = None
            say(f"failed {type(error).__name__}: {error}".splitlines()[0])


if __name__ == "__main__":
    main()
