"""What strangers send to ports that speak TLS: nothing of TLS, broken pieces of it, a whole handshake with malformed
frames behind it, and a handshake without the certificate that is wanted."""

import os
import random
import socket
import ssl
import subprocess

from bad_clients import MALFORMED, connect_from_elsewhere, read_to_the_mark
from bad_peers import cases as peer_cases
from cluster import Failed
import resp

HELLOS = 8


class Certificates:
    """An authority, and a certificate for each of the nodes 1 to 3, as `leasehold cert` makes them."""

    def __init__(self, binary, folder):
        self.folder = folder
        self.authority = os.path.join(folder, "ca.pem")
        subprocess.run([binary, "cert", "init", "--cluster", "default", "--dir", folder, "--nodes",
                        ",".join(f"{i}=127.0.0.1" for i in (1, 2, 3))], check=True, stdout=subprocess.DEVNULL)

    def flags(self, node):
        stem = os.path.join(self.folder, f"node-{node.id}")
        # The test's own questions are plain; the good client and the attackers speak TLS.
        return ["--tls-cert", f"{stem}.pem", "--tls-key", f"{stem}-key.pem", "--tls-ca", self.authority,
                "--client-tls", "optional"]


def first_words(context):
    """What a client of TLS says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class Attacker:
    """Strikes the client port and the peer port of one node, each time by a new connection."""

    def __init__(self, port, peer_port, authority, hostile_pipeline, seed):
        self._source = random.Random(seed)
        self._ports = (port, peer_port)
        self._pipeline = hostile_pipeline
        self._trusting = ssl.create_default_context(cafile=authority)
        self._blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._blind.check_hostname, self._blind.verify_mode = False, ssl.CERT_NONE
        self._hellos = [first_words(self._blind) for _ in range(HELLOS)]
        self._peer_bytes = [data for _, data in peer_cases(seed) if len(data) < 100_000]
        self.connections = 0

    def strike(self, pipeline_share):
        """One connection. Returns how many hostile frames it brought."""
        self.connections += 1
        if self._source.random() < pipeline_share:
            return self._frames_in_step()
        return self._source.choice((self._frame_that_breaks, self._plain, self._plain, self._broken_hello,
                                    self._broken_hello, self._broken_hello, self._peer_without_certificate))()

    def _protected(self, port, context):
        return context.wrap_socket(connect_from_elsewhere(self._source, port), server_hostname="127.0.0.1")

    def _frames_in_step(self):
        frames = self._pipeline(self._source)
        with self._protected(self._ports[0], self._trusting) as client:
            client.sendall(b"".join(frames))
            read_to_the_mark(client)
        return len(frames)

    def _frame_that_breaks(self):
        with self._protected(self._ports[0], self._trusting) as client:
            client.sendall(self._source.choice(MALFORMED)[0])
            client.shutdown(socket.SHUT_WR)  # one of them is no more than a value that never ends
            self._read_to_the_end(client)
        return 1

    def _plain(self):
        """Frames without TLS: for the peer port, or cut in their first byte, which no port takes."""
        if self._source.random() < 0.5:
            self._send(self._ports[1], self._source.choice(self._peer_bytes))
        else:
            self._send(self._ports[self._source.randrange(2)], resp.encode("SET", "a", "b")[1:])
        return 1

    def _broken_hello(self):
        hello = bytearray(self._source.choice(self._hellos))
        how = self._source.randrange(4)
        if how == 0:
            del hello[self._source.randrange(1, len(hello)):]
        elif how == 1:
            for _ in range(self._source.randrange(1, 8)):
                hello[self._source.randrange(len(hello))] ^= 1 << self._source.randrange(8)
        elif how == 2:
            hello += self._source.randbytes(self._source.randrange(1, 2000))
        else:
            hello[5:] = self._source.randbytes(self._source.randrange(1, 16000))
        self._send(self._ports[self._source.randrange(2)], bytes(hello))
        return 1

    def _peer_without_certificate(self):
        """In TLS 1.3 the dialler believes that all is well until it reads."""
        try:
            with self._protected(self._ports[1], self._blind) as client:
                client.sendall(self._source.choice(self._peer_bytes))
                while client.recv(1 << 16):
                    raise Failed("a peer without a certificate got an answer")
        except (ssl.SSLError, OSError):
            pass
        return 1

    def _send(self, port, data):
        with connect_from_elsewhere(self._source, port) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # closed by the node before it had read all
            self._read_to_the_end(client)

    @staticmethod
    def _read_to_the_end(client):
        try:
            while client.recv(1 << 16):
                pass
        except ssl.SSLError:
            pass
        except socket.timeout as error:
            raise Failed("a connection that brought nothing good stays open") from error
        except OSError:
            pass
