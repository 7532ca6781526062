"""The slots of keys, as Redis Cluster has them, and which group has which."""

import binascii
import re

from cluster import check

COUNT = 16384


def slot_of(key):
    tag = re.search(r"{([^}]*)}", key)
    return binascii.crc_hqx((tag[1] if tag and tag[1] else key).encode(), 0) % COUNT


def as_map(reply):
    return {key.decode(): value for key, value in zip(reply[::2], reply[1::2])}


def owners(node):
    """Of each slot its group, as LEASEHOLD SLOTS LIST says."""
    found = [None] * COUNT
    with node.client() as client:
        reply = client.call("LEASEHOLD", "SLOTS", "LIST")
    check(isinstance(reply, list), f"{node}: LEASEHOLD SLOTS LIST was answered {reply!r}")
    for run in map(as_map, reply):
        for slot in range(run["first"], run["last"] + 1):
            check(found[slot] is None, f"{node}: slot {slot} is in the groups {found[slot]} and {run['group']}")
            found[slot] = run["group"]
    check(None not in found, f"{node}: a slot is in no group")
    return found
