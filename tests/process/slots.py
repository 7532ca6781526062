"""The slots of keys, as Redis Cluster has them."""

import binascii
import re

COUNT = 16384


def slot_of(key):
    tag = re.search(r"{([^}]*)}", key)
    return binascii.crc_hqx((tag[1] if tag and tag[1] else key).encode(), 0) % COUNT
