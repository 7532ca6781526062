#!/usr/bin/env python3
"""What the health check of the image makes of an admin port's answers: healthy_test.py TREE"""

import os
import pathlib
import socket
import subprocess
import sys
import threading

# (what the port answers, whether the node is well). None: the port closes the connection.
ANSWERS = (
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n", True),
    (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", False),
    (b"HTTP/1.1 2000 Odd\r\n\r\n", False),
    (b"-DENIED 200\r\n", False),
    (b"\r\n", False),
    (None, False),
)


def answer_once(listener, answer, asked):
    connection, _ = listener.accept()
    with connection:
        request = b""
        while not request.endswith(b"\r\n\r\n"):  # the shell may send it line by line
            piece = connection.recv(4096)
            if not piece:
                break
            request += piece
        asked.append(request)
        if answer is not None:
            connection.sendall(answer)


def well(script, address):
    done = subprocess.run([script], env={**os.environ, "LEASEHOLD_ADMIN": address}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=30, check=False)
    return done.returncode == 0


def main():
    script = pathlib.Path(sys.argv[1]) / "packaging" / "docker" / "healthy"
    wrong = []
    for answer, expected in ANSWERS:
        asked = []
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            thread = threading.Thread(target=answer_once, args=(listener, answer, asked), daemon=True)
            thread.start()
            if well(script, address) != expected:
                wrong.append(f"{answer} is taken for {'no ' if expected else ''}health")
            thread.join(30)
        if not asked[0].startswith(b"GET /healthz HTTP/1.1\r\nHost: " + address.encode() + b"\r\n"):
            wrong.append(f"it has asked {asked[0]}")
    if well(script, address):
        wrong.append("a port at which nobody listens is taken for health")
    for line in wrong:
        print(line)
    print(f"{len(ANSWERS) + 1} answers, {len(wrong)} judged wrongly")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
