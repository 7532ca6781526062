"""A deputy that a test tells how to behave, by one word in the file "mode" beside it:

  on_time   tells the peers when the node has ended
  late      two seconds after that
  twice     two processes tell them
  cut_off   nobody hears it
  replay    tells them of the process before this one, while this one lives
  forge     tells them of this process while it lives, with another secret, and sends what is no notice

It is a program of its own, without an environment: known_deaths.py puts a line with the interpreter in front."""

import os
import select
import signal
import socket
import struct
import time

CHANNEL, PROCESS = 0, 1
ADDRESS_BYTES, ANSWER_BYTES = 28, 36
TARGET_BYTES = ADDRESS_BYTES + ANSWER_BYTES
SECRET_BYTES = 32
SENDS = 10
LATE = 2.0
HERE = os.path.dirname(os.path.abspath(__file__))
LAST_NOTICE = os.path.join(HERE, "notice")


def mode():
    with open(os.path.join(HERE, "mode"), encoding="ascii") as file:
        return file.read().strip()


def addresses(peers):
    found = []
    for at in range(0, len(peers), TARGET_BYTES):
        family, = struct.unpack_from("=H", peers, at)
        if family == socket.AF_INET:
            port, = struct.unpack_from("!H", peers, at + 2)
            found.append((socket.inet_ntoa(peers[at + 4:at + 8]), port))
    return found


class Deputy:
    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.notice = b""
        self.before = b""  # the notice of the process before this one
        self.peers = []
        if os.path.exists(LAST_NOTICE):
            with open(LAST_NOTICE, "rb") as file:
                self.before = file.read()

    def hear(self):
        """False: the node wants no deputy."""
        message = os.read(CHANNEL, 1 << 16)
        if message[:1] == b"n":
            self.notice = message[1:]
            if self.before == self.notice:
                self.before = b""  # another deputy of this process wrote it
            with open(LAST_NOTICE + ".new", "wb") as file:
                file.write(self.notice)
            os.rename(LAST_NOTICE + ".new", LAST_NOTICE)
        elif message[:1] == b"p":
            self.peers = addresses(message[1:])
        return message[:1] != b"q"

    def send(self, datagram):
        for peer in self.peers:
            self.socket.sendto(datagram, peer)

    def tell(self):
        for _ in range(SENDS):
            self.send(self.notice)
            time.sleep(0.02)

    def lie(self, how):
        """What no peer may believe."""
        if how == "replay" and self.before:
            self.send(self.before)
        if how == "forge" and self.notice:
            self.send(self.notice[:-SECRET_BYTES] + os.urandom(SECRET_BYTES))
            self.send(self.notice[:-1])
            self.send(os.urandom(200))


def main():
    os.closerange(2, 1 << 16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    process = PROCESS
    deputy = Deputy()
    watched = [CHANNEL, process]
    while True:
        ready, _, _ = select.select(watched, [], [], 0.05)
        if process in ready:
            break
        if CHANNEL in ready and not deputy.hear():
            return
        deputy.lie(mode())
    how = mode()
    if how == "cut_off":
        return
    if how == "late":
        time.sleep(LATE)
    if how == "twice":
        os.fork()
    deputy.tell()


main()
