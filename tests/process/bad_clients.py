"""What a client can send that it should not."""

import random
import socket

import resp
from cluster import check, wait_for

KEY_MAX = 64 << 10
VALUE_MAX = 16 << 20
# Of one node, while a client asks for 400 MiB and reads nothing.
RESIDENT_MAX = 300 << 20
# While 60 clients send the most of a value of 15 MiB and never its end.
UNFINISHED_MAX = 256 << 20

# Bytes after which the connection cannot be in step any more, and a part of the error.
MALFORMED = [
    (b"*abc\r\n", "invalid multibulk length"),
    (b"*-0\r\n", "invalid multibulk length"),
    (b"*1234567890123456789\r\n", "invalid multibulk length"),
    (b"*65537\r\n", "invalid multibulk length"),
    (b"*1\r\n:5\r\n", "expected '$'"),
    (b"*1\r\n$x\r\n", "invalid bulk length"),
    (b"*1\r\n$-5\r\n", "invalid bulk length"),
    (b"*1\r\n$99999999999\r\n", "invalid bulk length"),
    (b"*1\r\n$%d\r\n" % (VALUE_MAX + (1 << 20)), "invalid bulk length"),
    (b"*1\r\n$4\r\nPINGxx", "expected CRLF"),
    (b"x" * (KEY_MAX + 1), "too big inline request"),
    (b"SET \"open 1\r\n", "unbalanced quotes"),
    (b"*2\r\n$4\r\nECHO\r\n$16777216\r\n" + b"x" * 1000 + b"\r\n*", None),
]

# Commands that are refused, and the beginning of the error. The connection stays open.
REFUSED = [
    (("NOSUCH",), "ERR unknown command 'NOSUCH'"),
    (("X" * 100000,), "ERR unknown command"),
    (("",), "ERR unknown command"),
    ((b"\x00\xff\r\n",), "ERR unknown command"),
    (("GET",), "ERR wrong number of arguments for 'get'"),
    (("GET", "a", "b"), "ERR wrong number of arguments for 'get'"),
    (("SET", "a"), "ERR wrong number of arguments for 'set'"),
    (("DEL",), "ERR wrong number of arguments for 'del'"),
    (("INCR",), "ERR wrong number of arguments for 'incr'"),
    (("PING", "a", "b"), "ERR wrong number of arguments for 'ping'"),
    (("SET", "a", "b", "PX"), "ERR syntax error at 'PX'"),
    (("EXPIRE", "a", "x"), "ERR value is not an integer"),
    (("EVAL", "return 1", "0"), "ERR there is no Lua here"),
    (("EVALSHA", "0" * 40, "0"), "NOSCRIPT "),
    (("SAVE",), "ERR 'SAVE' is not supported"),
    (("MSET", "a"), "ERR wrong number of arguments for 'mset'"),
    (("MSET", "a", "b", "c"), "ERR wrong number of arguments for 'mset'"),
    (("SETRANGE", "a", "-1", "b"), "ERR offset is out of range"),
    (("SETRANGE", "a", str(1 << 40), "b"), "ERR the value would be longer"),
    (("SCAN", "x"), "ERR invalid cursor"),
    (("SCAN", "77"), "ERR this node does not know the cursor"),
    (("KEYS", "x" * 2000), "ERR the pattern is longer"),
    (("EXEC",), "ERR EXEC without MULTI"),
    (("SET", "a", "b", "NX", "XX"), "ERR syntax error"),
    (("INCRBY", "a", "x"), "ERR value is not an integer"),
    (("INCRBY", "a", "9223372036854775808"), "ERR value is not an integer"),
    (("DECRBY", "a", "-9223372036854775808"), "ERR decrement would overflow"),
    (("SELECT", "1"), "ERR DB index is out of range"),
    (("SELECT", "x"), "ERR value is not an integer"),
    (("HELLO", "4"), "NOPROTO"),
    (("HELLO", "3", "AUTH", "user", "password"), "WRONGPASS invalid username-password pair"),
    (("CLIENT", "SETNAME", "two words"), "ERR Client names"),
    (("CLIENT", "KILL"), "ERR wrong number of arguments for 'client|kill'"),
    (("CLIENT", "NOSUCH"), "ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP."),
    (("CONFIG", "SET", "save", "1"), "ERR CONFIG SET failed"),
    (("COMMAND", "GETKEYS"), "ERR wrong number of arguments for 'command|getkeys'"),
    (("LEASEHOLD", "NOSUCH"), "ERR unknown subcommand"),
    (("LEASEHOLD", "READMODE", "fast"), "ERR unknown read mode"),
    (("LEASEHOLD", "READMODE", "stale"), "ERR stale needs a bound"),
    (("LEASEHOLD", "READMODE", "stale", "2x"), "ERR '2x' is not a duration"),
    (("GET", b"k" * (KEY_MAX + 1)), "ERR the key is longer than 65536 bytes"),
    (("EXISTS", "a", b"k" * (KEY_MAX + 1)), "ERR the key is longer than 65536 bytes"),
    (("SET", b"k" * (KEY_MAX + 1), "v"), "ERR"),
    (("INCR", b"k" * (KEY_MAX + 1)), "ERR"),
    (("DEL", b"k" * (KEY_MAX + 1)), "ERR"),
    (("SET", "k", b"v" * (VALUE_MAX + 1)), "ERR"),
]


def connect_from_elsewhere(source, port):
    """A connection from another address of this machine each time: the ports of one would not last."""
    client = socket.socket()
    client.bind((f"127.{source.randrange(1, 250)}.{source.randrange(1, 250)}.1", 0))
    client.settimeout(30)
    client.connect(("127.0.0.1", port))
    return client


def read_to_the_mark(client):
    """All replies to a pipeline that is in step and ends with ECHO end."""
    tail = b""
    while not tail.endswith(b"$3\r\nend\r\n"):
        data = client.recv(1 << 16)
        check(data, "a pipeline that was in step ended the connection")
        tail = (tail + data)[-64:]


def counts(node):
    return node.status()["clients"]


def expect_counts(node, before, **rises):
    after = counts(node)
    for name, rise in rises.items():
        check(after[name] - before[name] == rise,
              f"{node}: {name} rose by {after[name] - before[name]}, not by {rise}")


def attack_client_port(node, seed, judge_memory):
    malformed(node)
    refused(node)
    largest(node)
    wrong_type(node)
    truncated(node)
    random_bytes(node, seed)
    slow_reader(node, judge_memory)
    inline_web_request(node)
    unfinished_values(node, judge_memory)


def malformed(node):
    before = counts(node)
    errors = 0
    for data, text in MALFORMED:
        with node.client() as client:
            # What came before in the same packet is still answered.
            client.send_raw(resp.encode("PING") + data)
            check(client.read_reply() == "PONG", "the good command was not answered")
            if text is None:
                continue
            reply = client.read_reply()
            check(isinstance(reply, resp.RespError) and text in reply.text,
                  f"{data[:40]!r} was answered {reply!r}")
            check(client.closed_by_server(), f"{data[:40]!r}: the connection stays open")
            errors += 1
    expect_counts(node, before, protocol_errors=errors, commands_refused=0)
    print(f"{node}: {errors} malformed requests: each an error and a closed connection")


def refused(node):
    before = counts(node)
    with node.client(timeout=20) as client:
        for words, beginning in REFUSED:
            reply = client.call(*words)
            check(isinstance(reply, resp.RespError) and reply.text.startswith(beginning) and
                  len(reply.text) < 1000, f"{str(words)[:60]} was answered {str(reply)[:300]}")
            check(client.call("PING") == "PONG", f"{str(words)[:60]}: out of step")
    expect_counts(node, before, commands_refused=len(REFUSED), protocol_errors=0)
    print(f"{node}: {len(REFUSED)} wrong commands: each an error, the connection goes on")


def largest(node):
    """What is just allowed."""
    key, value = b"k" * KEY_MAX, bytes(range(256)) * (VALUE_MAX // 256)
    with node.client(timeout=30) as client:
        check(client.call("SET", key, value) == "OK", "the largest value was refused")
        check(client.call("GET", key) == value, "the largest value came back changed")
        check(client.call("DEL", key) == 1, "the largest key was not deleted")


def wrong_type(node):
    with node.client() as client:
        check(client.call("SET", f"text:{node.id}", "text") == "OK", "SET failed")
        reply = client.call("INCR", f"text:{node.id}")
        check(isinstance(reply, resp.RespError) and reply.word == "ERR", f"INCR gave {reply!r}")
        check(client.call("SET", f"most:{node.id}", (1 << 63) - 1) == "OK", "SET failed")
        reply = client.call("INCR", f"most:{node.id}")
        check(isinstance(reply, resp.RespError) and reply.word == "ERR", f"INCR gave {reply!r}")


def truncated(node):
    """Every prefix of a request, then the end of the stream: nothing of it is executed."""
    request = resp.encode("SET", f"truncated:{node.id}", "value")
    before = counts(node)
    for size in range(len(request)):
        with node.client() as client:
            client.send_raw(request[:size])
            client.half_close()
            check(client.closed_by_server(), f"{size} bytes: the connection stays open")
    with node.client() as client:
        check(client.call("GET", f"truncated:{node.id}") is None, "half a request was executed")
    expect_counts(node, before, commands_refused=0)


def random_bytes(node, seed):
    source = random.Random(seed)
    for number in range(100):
        data = source.randbytes(source.choice((1, 10, 100, 1000, 100000)))
        if number % 2:
            data = source.choice((b"*", b"$", b"*3\r\n$3\r\nSET\r\n", b"GET ")) + data
        with node.client() as client:
            try:
                client.send_raw(data)
                client.half_close()
            except (resp.ConnectionLost, OSError):
                pass  # closed by the node before it had read all
            check(client.closed_by_server(), f"random bytes {number} of seed {seed}: stays open")


def slow_reader(node, judge_memory):
    """Asks for far more than it reads: the node stops asking it for more, and keeps little."""
    before = counts(node)
    value = b"v" * (1 << 20)
    asked = 400
    with node.client(timeout=30) as client:
        check(client.call("SET", f"slow:{node.id}", value) == "OK", "SET failed")
        client.send_raw(resp.encode("GET", f"slow:{node.id}") * asked)
        wait_for("the node to hold the client back", 10,
                 lambda: counts(node)["output_stalls"] > before["output_stalls"])
        size = max(node.status()["rss_bytes"] for _ in range(100))
        check(size < RESIDENT_MAX or not judge_memory,
              f"{node} takes {size} bytes for a client that does not read")
        for _ in range(asked):
            check(client.read_reply() == value, "a wrong value")
        check(client.call("DEL", f"slow:{node.id}") == 1, "DEL failed")
    print(f"{node}: held back a client that did not read {asked} MiB, at "
          f"{size / (1 << 20):.0f} MiB of memory")


def inline_web_request(node):
    """What a web page has a browser send: nothing behind a line of HTTP is executed."""
    before = counts(node)
    key = f"stolen:{node.id}"
    lines = (b"POST / HTTP/1.1", b"GET / HTTP/1.1", b"Host: localhost")
    for line in lines:
        with node.client() as client:
            client.send_raw(line + b"\r\nSET " + key.encode() + b" 1\r\n")
            check(client.closed_by_server(), f"{line!r}: the connection stays open")
    with node.client() as client:
        check(client.call("EXISTS", key) == 0, "a command behind HTTP was executed")
    expect_counts(node, before, http_requests=len(lines))


def unfinished_values(node, judge_memory):
    """Values of 15 MiB that never end, 60 of them, cost what --client-memory-max says; small
    requests of others are served all the while."""
    before = node.status()["rss_bytes"]
    part = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$15728640\r\n" + b"x" * (14 << 20)
    clients = []
    try:
        for _ in range(60):
            clients.append(node.client(timeout=20))
            try:
                clients[-1].send_raw(part)
            except (OSError, resp.ConnectionLost):
                pass  # refused in the middle
        with node.client() as client:
            check(client.call("SET", f"small:{node.id}", "1") == "OK", "a small request is refused")
        grown = node.status()["rss_bytes"] - before
        check(not judge_memory or grown < UNFINISHED_MAX,
              f"60 unfinished values take {grown >> 20} MiB")
        refused_now = counts(node)["connections_large"]
        check(refused_now > 0, "no connection was refused")
    finally:
        for client in clients:
            client.close()
    print(f"{node}: 60 unfinished values take {grown >> 20} MiB")
