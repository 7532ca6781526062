"""The slots of keys, as Redis Cluster has them."""

import binascii

COUNT = 16384


def slot_of(key):
    """Of a key without a {tag}."""
    return binascii.crc_hqx(key.encode(), 0) % COUNT
