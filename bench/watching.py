#!/usr/bin/env python3
"""Measures what it costs to be watched: lease reads and writes of a plain group, of one with an admin port
that nobody asks, of one whose /metrics is asked every second at each node, and of groups with spans of 1 %
and of all commands, in turn; see bench/README.md.

A second plain group shows how far two equal groups differ.
"""

import http.client
import sys
import threading

import variants
from ports import free_port

SCRAPE_S = 1.0


class Monitor:
    """Asks for /metrics at all ports, one after the other, again and again."""

    def __init__(self, ports):
        self._ports = ports
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(SCRAPE_S):
            for port in self._ports:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request("GET", "/metrics")
                connection.getresponse().read()
                connection.close()

    def stop(self):
        self._stop.set()
        self._thread.join()


def measure(options, stack, report):
    """what it costs to be watched"""
    nodes = (1, 2, 3)
    quiet, asked = ({node: free_port() for node in nodes} for _ in range(2))

    def admin(ports):
        return lambda node: ["--admin", f"127.0.0.1:{ports[node]}"]

    def spans(ratio):
        return lambda node: ["--spans", options.work / f"spans-{ratio}-{node}", "--spans-ratio", ratio]

    groups = variants.Variants(options, stack, {
        "plain": lambda node: [],
        "plain-again": lambda node: [],
        "admin": admin(quiet),
        "admin-asked": admin(asked),
        "spans-1": spans(0.01),
        "spans-100": spans(1),
    })
    monitor = Monitor(asked.values())
    stack.callback(monitor.stop)
    groups.reads(report)
    groups.writes(report)


if __name__ == "__main__":
    sys.exit(variants.main("watching", __doc__, measure))
