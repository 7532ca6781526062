"""Ports of the loopback interface for programs that are measured or tested."""

import random
import socket

# Below the range from which Linux takes the ports of outgoing connections: a connection that is made meanwhile
# takes none of them, and a killed node finds its ports free when it returns.
PORTS = range(20000, 32000)

# Ports that this process has given, each with what keeps other processes from it: a name that ends with this one.
_given = {}


def free_port():
    for _ in range(1000):
        port = random.SystemRandom().choice(PORTS)
        if port in _given:
            continue
        claim = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                claim.bind(f"\0leasehold-port-{port}")
                probe.bind(("127.0.0.1", port))
            except OSError:
                claim.close()
                continue
        _given[port] = claim
        return port
    raise OSError(f"no free port from {PORTS.start} to {PORTS.stop - 1}")
