"""What a client that is not a peer can send to the peer port. docs/wire.md has the frame's form."""

import random
import socket
import struct

from cluster import check, wait_for

MAGIC = b"LHP1"
HELLO, REFUSAL, MESSAGE = 1, 2, 3
# How long the node waits for the end of the handshake.
HANDSHAKE_SECONDS = 2.0


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def header(version=0, kind=HELLO, zero=0, body=b"", protobuf_bytes=None, payload_bytes=0,
           magic=MAGIC):
    size = len(body) if protobuf_bytes is None else protobuf_bytes
    start = magic + struct.pack("<HBBIII", version, kind, zero, size, payload_bytes, crc32c(body))
    return start + struct.pack("<I", crc32c(start))


def cases(seed):
    """(name, bytes). After each the node has to close the connection by itself, and to count it."""
    good = header(body=b"\x08\x01")
    flipped = bytearray(good)
    flipped[9] ^= 1
    source = random.Random(seed)
    return [
        ("a web request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("a client's request", b"*1\r\n$4\r\nPING\r\n" * 4),
        ("zeroes", bytes(64)),
        ("random bytes", source.randbytes(1000)),
        ("many random bytes", source.randbytes(1 << 20)),
        ("magic and random bytes", MAGIC + source.randbytes(100)),
        ("another magic", header(magic=b"LHP2", body=b"x") + b"x"),
        ("an unknown version", header(version=999, kind=MESSAGE, body=b"x") + b"x"),
        ("an unknown kind", header(kind=77, body=b"x") + b"x"),
        ("a reserved byte", header(zero=1, body=b"x") + b"x"),
        ("a flipped bit in the header", bytes(flipped) + b"\x08\x01"),
        ("a flipped bit in the body", good + b"\x08\x00"),
        ("a header of a huge frame", header(protobuf_bytes=0xffffffff)),
        ("a header of a huge payload", header(payload_bytes=0xfffffff0)),
        ("a hello of 1 MiB", header(protobuf_bytes=1 << 20)),
        ("a hello that is no message", header(body=b"\xff\xff\xff\xff") + b"\xff\xff\xff\xff"),
        ("an empty hello", header()),
        ("a message before the hello", header(version=2, kind=MESSAGE, body=b"\x08\x01") +
         b"\x08\x01"),
    ]


def rejected(node):
    return node.status()["node"]["frames_rejected"]


def connect(node):
    return socket.create_connection(("127.0.0.1", node.peer_port), timeout=5)


def ends(connection, seconds):
    """Whether the node closes the connection within `seconds`."""
    connection.settimeout(seconds)
    try:
        while connection.recv(1 << 16):
            pass
    except socket.timeout:
        return False
    except OSError:
        pass
    return True


def attack_peer_port(node, seed):
    for name, data in cases(seed):
        before = rejected(node)
        with connect(node) as connection:
            try:
                connection.sendall(data)
            except OSError:
                pass  # closed by the node before it had read all
            check(ends(connection, HANDSHAKE_SECONDS / 2), f"{node}: {name}: stays open")
        after = rejected(node)
        check(after == before + 1, f"{node}: {name}: frames_rejected rose by {after - before}")
    truncated(node)
    silent(node)
    print(f"{node}: {len(cases(seed))} kinds of bad bytes on the peer port: each closed, counted")


def truncated(node):
    """Every prefix of a frame, then the end."""
    frame = header(body=b"\x08\x01") + b"\x08\x01"
    for size in range(len(frame)):
        with connect(node) as connection:
            connection.sendall(frame[:size])
            connection.shutdown(socket.SHUT_WR)
            check(ends(connection, HANDSHAKE_SECONDS * 2), f"{node}: {size} bytes: stays open")


def silent(node):
    """More connections than may wait, none of which says a word: all are closed in time."""
    before = rejected(node)
    connections = [connect(node) for _ in range(100)]
    try:
        for connection in connections:
            check(ends(connection, HANDSHAKE_SECONDS * 2), f"{node}: a silent one stays open")
    finally:
        for connection in connections:
            connection.close()
    wait_for("the silent ones to be counted", 5,
             lambda: rejected(node) - before >= len(connections))
