"""What makes one file of bytes another: copies of it, and bytes between them. page/patch.js reads it."""

import zlib

# Shorter equal parts cost more to name than to repeat, except behind the last copy, where nothing has to be named.
COPY_MIN = 16
COPY_BEHIND_MIN = 6


def number(value):
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return out


def equal_length(one, at, other, place):
    length, most = 0, min(len(one) - at, len(other) - place)
    while length + 64 <= most and one[at + length:at + length + 64] == other[place + length:place + length + 64]:
        length += 64
    while length < most and one[at + length] == other[place + length]:
        length += 1
    return length


def places_in(base):
    """Where each beginning of a copy is, for the first time."""
    places = {}
    for at in range(len(base) - COPY_MIN + 1):
        places.setdefault(base[at:at + COPY_MIN], at)
    return places


def difference(base, new, places):
    """`places` is places_in(base). Numbers: the length of the result; then again and again the length of what is given
    and it, the length of a copy, and how far ahead of the place behind the last one it begins (doubled; odd: back)."""
    out = number(len(new))
    given = bytearray()
    at = behind = 0
    while at < len(new):
        best, place = equal_length(base, behind, new, at), behind
        if best < COPY_BEHIND_MIN:
            best = 0
        other = places.get(new[at:at + COPY_MIN])
        length = 0 if other is None else equal_length(base, other, new, at)
        if length > best:
            best, place = length, other
        if best == 0:
            given.append(new[at])
            at, behind = at + 1, behind + 1
            continue
        ahead = place - behind
        out += number(len(given)) + given + number(best) + number(2 * ahead if ahead >= 0 else -2 * ahead - 1)
        given = bytearray()
        at, behind = at + best, place + best
    if given:
        out += number(len(given)) + given + number(0) + number(0)
    return zlib.compress(bytes(out), 9)


def applied(base, patch):
    """As page/patch.js does it."""
    patch = zlib.decompress(patch)
    at = 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = patch[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    length, made, behind = take(), bytearray(), 0
    while len(made) < length:
        given = take()
        made += patch[at:at + given]
        at, behind = at + given, behind + given
        copy, ahead = take(), take()
        behind += -((ahead + 1) // 2) if ahead % 2 else ahead // 2
        made += base[behind:behind + copy]
        behind += copy
    return bytes(made)
