#!/usr/bin/env python3
"""Measures what protection costs: lease reads and writes of a plain group, of one with a key and of one
with certificates whose clients speak TLS, in turn; see bench/README.md.

A second plain group shows how far two equal groups differ. Redis, plain and by TLS, stands beside the
reads where it is installed with TLS.
"""

import subprocess
import sys

import cluster as c
import variants


def make_credentials(program, folder):
    """A key and certificates. Returns the flags of a node for each kind of group."""
    def cert(*words):
        subprocess.run([program, "cert", *words], check=True, stdout=subprocess.DEVNULL)

    cert("key", folder / "group.key")
    cert("init", "--cluster", "default", "--dir", folder, "--nodes", "1=127.0.0.1,2=127.0.0.1,3=127.0.0.1")
    return {
        "plain": lambda node: [],
        "plain-again": lambda node: [],
        "key": lambda node: ["--peer-key", folder / "group.key"],
        # The harness's own questions are plain.
        "tls": lambda node: ["--tls-cert", folder / f"node-{node}.pem", "--tls-key", folder / f"node-{node}-key.pem",
                             "--tls-ca", folder / "ca.pem", "--client-tls", "optional"]}


def address(kind, port):
    return f"tls:127.0.0.1:{port}" if kind.endswith("tls") else f"127.0.0.1:{port}"


def start_redis(options, stack, folder):
    """Plain and by TLS: (process, port) by their names; nothing, where it is not installed so."""
    plain = c.start_redis(options.work)
    authority = folder / "ca.pem"
    protected = plain and c.start_redis(options.work, (folder / "node-1.pem", folder / "node-1-key.pem", authority))
    for process in filter(None, (plain, protected)):
        stack.callback(process.stop)
        c.load(options.programs, "load", process.port, variants.KEYS, variants.VALUE_BYTES)
    return {"redis": (plain, plain.port), "redis-tls": (protected, protected.tls_port)} if protected else {}


def measure(options, stack, report):
    """what protection costs"""
    folder = options.work / "certificates"
    folder.mkdir(mode=0o700)
    flags = make_credentials(options.programs.parent / "server" / "leasehold", folder)
    groups = variants.Variants(options, stack, flags, address, ["--tls-ca", folder / "ca.pem"])
    redis = start_redis(options, stack, folder)
    reads = groups.reads(report, redis)
    if redis:
        report.series("Redis GET", reads["redis"], "plain", reads["plain"])
        report.series("Redis GET, tls", reads["redis-tls"], "Redis GET", reads["redis"])
        report.difference("Redis GET, tls - plain", reads["redis-tls"], reads["redis"])
    groups.writes(report)


if __name__ == "__main__":
    sys.exit(variants.main("protection", __doc__, measure))
