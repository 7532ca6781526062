"""A client of the Redis protocol, as strict as a test needs it: one connection, every wait has an
end. Replies are Python values: bytes (bulk string), str (simple string), int, None (null), list,
and RespError, which is returned, not raised."""

import socket
import time


class RespError:
    """An error reply. `word` is its first word: NOLEADER, TRYAGAIN, UNKNOWNOUTCOME, NOSESSION, ERR..."""

    def __init__(self, text):
        self.text = text
        self.word = text.split(" ", 1)[0]

    def __repr__(self):
        return f"-{self.text}"

    def __eq__(self, other):
        return isinstance(other, RespError) and other.text == self.text

    @property
    def not_executed(self):
        """The server promises that the command was not and will not be executed."""
        return self.word in ("NOLEADER", "TRYAGAIN", "MOVED", "CLUSTERDOWN")

    @property
    def unknown(self):
        """The command may have been, or may yet be, executed."""
        return self.word == "UNKNOWNOUTCOME"


class ProtocolError(Exception):
    """The server sent bytes that are not a reply."""


class ConnectionLost(Exception):
    """The connection ended, or did not come about."""


class TimedOut(Exception):
    """No answer before the deadline."""


def encode(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        if isinstance(word, int):
            word = str(word)
        if isinstance(word, str):
            word = word.encode()
        out.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(out)


class Parser:
    """Takes bytes in any pieces, gives whole replies."""

    def __init__(self):
        self._buffer = bytearray()
        self._position = 0

    def feed(self, data):
        if self._position > 1 << 20:
            del self._buffer[:self._position]
            self._position = 0
        self._buffer += data

    def take(self):
        """(True, reply), or (False, None) if more bytes are needed."""
        start = self._position
        try:
            return True, self._value()
        except IndexError:
            self._position = start
            return False, None

    def _line(self):
        end = self._buffer.find(b"\r\n", self._position)
        if end < 0:
            if len(self._buffer) - self._position > 1 << 16:
                raise ProtocolError("a line without end")
            raise IndexError
        line = bytes(self._buffer[self._position:end])
        self._position = end + 2
        return line

    def _value(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RespError(rest.decode("utf-8", "replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return None
            end = self._position + size
            if len(self._buffer) < end + 2:
                raise IndexError
            if self._buffer[end:end + 2] != b"\r\n":
                raise ProtocolError("a bulk string without its end")
            value = bytes(self._buffer[self._position:end])
            self._position = end + 2
            return value
        if kind == b"*":
            count = int(rest)
            return None if count < 0 else [self._value() for _ in range(count)]
        raise ProtocolError(f"not a reply: {line[:80]!r}")


class Client:
    """One blocking connection. Context manager."""

    def __init__(self, port, timeout=5.0, host="127.0.0.1", tls=None, user=None):
        """`tls`: an ssl.SSLContext. `user`: a name and its password."""
        self.timeout = timeout
        self._parser = Parser()
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout)
            if tls:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except socket.timeout as error:
            raise TimedOut(f"connect to port {port}") from error
        except OSError as error:
            raise ConnectionLost(f"connect to port {port}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if user:
            reply = self.call("AUTH", *user)
            if reply != "OK":
                raise ConnectionLost(f"AUTH at port {port}: {reply}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def send_raw(self, data):
        try:
            self._socket.settimeout(self.timeout)
            self._socket.sendall(data)
        except socket.timeout as error:
            raise TimedOut("send") from error
        except OSError as error:
            raise ConnectionLost(str(error)) from error

    def half_close(self):
        self._socket.shutdown(socket.SHUT_WR)

    def read_reply(self, timeout=None):
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            whole, reply = self._parser.take()
            if whole:
                return reply
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimedOut("no reply in time")
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(1 << 18)
            except socket.timeout:
                continue
            except OSError as error:
                raise ConnectionLost(str(error)) from error
            if not data:
                raise ConnectionLost("closed by the server")
            self._parser.feed(data)

    def next_reply(self):
        """One that has come already, or None."""
        return self._parser.take()[1]

    def call(self, *words, timeout=None):
        self.send_raw(encode(*words))
        return self.read_reply(timeout)

    def pipeline(self, commands, timeout=None):
        """Sends all, then reads all replies. The batch must fit into the buffers of both sides."""
        self.send_raw(b"".join(encode(*words) for words in commands))
        return [self.read_reply(timeout) for _ in commands]

    def closed_by_server(self, timeout=5.0):
        """Reads until the end; True when the server closed within `timeout`. Replies are kept."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._socket.recv(1 << 16)
            except socket.timeout:
                return False
            except OSError:
                return True
            if not data:
                return True
            self._parser.feed(data)
        return False
