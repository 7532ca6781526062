"""Reads interval logs of HdrHistogram: written from the description of the format, and shares no code with what writes
them."""

import base64
import struct
import zlib

ENCODING, COMPRESSED = 0x1C849313, 0x1C849314
HEAD = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


class WrongLog(Exception):
    pass


def need(what, told):
    if not what:
        raise WrongLog(told)


def zigzags(payload):
    """Numbers of seven bits a byte, the last of at most nine bytes with eight."""
    at = 0
    while at < len(payload):
        number = shift = 0
        for place in range(9):
            byte = payload[at]
            at += 1
            number |= (byte if place == 8 else byte & 0x7F) << shift
            shift += 7
            if place == 8 or byte < 0x80:
                break
        yield (number >> 1) ^ -(number & 1)


def largest_of_slot(index, digits):
    """The largest value that counts in a slot: of 2 * 10^digits and more single values first, and then halves of so
    many for each doubling."""
    magnitude = (2 * 10**digits - 1).bit_length()
    half = 1 << (magnitude - 1)
    bucket = index // half - 1
    if bucket < 0:
        return index
    return ((index - bucket * half + 1) << bucket) - 1


def histogram(text, ours=True):
    """{largest value of a slot: its count}."""
    data = base64.b64decode(text, validate=True)
    cookie, length = struct.unpack(">II", data[:8])
    need(cookie == COMPRESSED and length == len(data) - 8, f"head {cookie:#x}, {length} bytes of {len(data) - 8}")
    plain = zlib.decompress(data[8:])
    cookie, length, shift, digits, lowest, highest, ratio = struct.unpack(">IIIIqqd", plain[:40])
    need((cookie, lowest) == (ENCODING, 1), f"settings {cookie:#x} {lowest}")
    # hdr-histogram-js writes others, and its readers do not look at them.
    need(not ours or (shift, ratio) == (0, 1.0), f"settings {shift} {ratio}")
    need(length == len(plain) - 40, f"{length} bytes of counts, and there are {len(plain) - 40}")
    counts, index = {}, 0
    for number in zigzags(plain[40:]):
        if number < 0:
            index -= number
            continue
        if number > 0:
            counts[largest_of_slot(index, digits)] = number
        index += 1
    # The last slot may reach further than its highest value.
    need(not counts or max(counts) <= 2 * highest, "a value above the highest")
    return counts


def intervals(path):
    """(tag, start, length, largest in ms, histogram) of each line."""
    with open(path, encoding="ascii") as file:
        lines = file.read().splitlines()
    need(lines[0].startswith("#[Histogram log format version 1."), f"first line {lines[0]}")
    need(any(line.startswith("#[StartTime: ") for line in lines), "no StartTime")
    need(HEAD in lines, "no names of the columns")
    found = []
    for line in lines:
        if line.startswith(("#", '"')):
            continue
        tag, start, length, largest, text = line.split(",")
        need(tag.startswith("Tag="), line[:40])
        found.append((tag[4:], float(start), float(length), float(largest), histogram(text)))
    return found
