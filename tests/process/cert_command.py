#!/usr/bin/env python3
"""`leasehold cert`: an authority, certificates of nodes and users, a list of revoked ones and a group's key, as an
operator makes them. The program openssl reads them, and a group of three runs with them."""

import os
import shutil
import stat
import subprocess

from cluster import Cluster, Skipped, check, main

DONE, NO, USAGE = 0, 1, 2


def openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Cert:
    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def __call__(self, status, *words):
        done = subprocess.run([self.binary, "cert", *words], capture_output=True, text=True, timeout=60, check=False)
        check(done.returncode == status, f"cert {' '.join(words)}: status {done.returncode}, not {status}: "
              f"{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def make_all(cert):
    place = ["--dir", cert.folder]
    cert(DONE, "init", "--cluster", "orders", "--nodes", "1=127.0.0.1,3=localhost", *place)
    cert(DONE, "node", "--id", "2", "--host", "localhost,127.0.0.1", *place)
    cert(DONE, "client", "--user", "ann", "--days", "7", *place)
    cert(DONE, "key", cert.path("group.key"))
    for name in os.listdir(cert.folder):
        mode = stat.S_IMODE(os.lstat(cert.path(name)).st_mode)
        secret = name.endswith("-key.pem") or name == "group.key"
        check(mode == (0o600 if secret else 0o644), f"{name} has mode {mode:o}")
    check("leasehold://orders/user/ann" in cert(DONE, "show", cert.path("client-ann.pem")), "show names no user")
    check("authority of orders" in cert(DONE, "show", cert.path("ca.pem")), "show names no authority")
    with open(cert.path("group.key"), encoding="ascii") as file:
        check(len(bytes.fromhex(file.read().strip())) == 32, "the group's key is not of 32 bytes")


def as_openssl_sees_it(cert):
    verify = ["verify", "-x509_strict", "-CAfile", cert.path("ca.pem")]
    for name, purpose, good in (("node-1", "sslserver", True), ("node-1", "sslclient", True),
                                ("client-ann", "sslclient", True), ("client-ann", "sslserver", False)):
        status, said = openssl(*verify, "-purpose", purpose, cert.path(f"{name}.pem"))
        check((status == 0) == good, f"{name} as {purpose}: {said}")
    _, text = openssl("x509", "-noout", "-text", "-in", cert.path("node-2.pem"))
    for part in ("URI:leasehold://orders/node/2/-", "DNS:localhost", "IP Address:127.0.0.1"):
        check(part in text, f"{part} is missing in {text}")
    cert(DONE, "revoke", cert.path("client-ann.pem"), "--dir", cert.folder)
    status, said = openssl(*verify, "-crl_check", "-CRLfile", cert.path("crl.pem"), cert.path("client-ann.pem"))
    check(status != 0 and "revoked" in said, f"a revoked certificate is good: {said}")


def refusals(cert):
    place = ["--dir", cert.folder]
    for status, words, part in (
            (NO, ["init", "--cluster", "orders", *place], "--force"),
            (NO, ["node", "--id", "1", "--host", "localhost", *place], "--force"),
            (NO, ["key", cert.path("group.key")], "--force"),
            (NO, ["node", "--id", "4", "--host", "localhost", "--dir", cert.path("none")], "leasehold cert init"),
            (NO, ["node", "--id", "4", "--host", "a host", *place], "is not a host"),
            (NO, ["node", "--id", "4", "--host", "h", "--uuid", "12", *place], "32 hexadecimal digits"),
            (NO, ["show", cert.path("group.key")], "is not a certificate"),
            (USAGE, ["init", *place], "--cluster"),
            (USAGE, ["init", "--cluster", "c", "--nodes", "1=h,1=h", *place], "node 1 is there twice"),
            (USAGE, ["init", "--cluster", "c", "--nodes", "1", *place], "is not NUMBER=HOST"),
            (USAGE, ["init", "--cluster", "c", "--nodes", "0=h", *place], "number of a node"),
            (USAGE, ["node", "--nodes", "1=h", *place], "--nodes is for init"),
            (USAGE, ["node", "--host", "localhost", *place], "--id"),
            (USAGE, ["node", "--id", "4", *place], "--host"),
            (USAGE, ["node", "--id", "0", "--host", "h", *place], "number of a node"),
            (USAGE, ["client", *place], "--user"),
            (USAGE, ["client", "--user", "../ann", *place], "no slash"),
            (USAGE, ["client", "--user", "bob", "--days", "0", *place], "number of days"),
            (USAGE, ["key"], "needs one file"),
            (USAGE, ["make"], "none of init")):
        said = cert(status, *words)
        check(part in said, f"cert {' '.join(words)}: {part!r} is missing in {said}")
    check(not os.path.exists(cert.path("node-4.pem")) and not os.path.exists(cert.path("node-4-key.pem")),
          "a refused certificate is there")


def group(options, cert):
    """Three nodes with these certificates, and then with certificates for their directories only."""
    with Cluster(options.binary, flags=["--cluster", "orders"], keep=options.keep) as cluster:
        for node in cluster.nodes:
            stem = cert.path(f"node-{node.id}")
            node.flags += ["--tls-cert", stem + ".pem", "--tls-key", stem + "-key.pem", "--tls-ca",
                           cert.path("ca.pem"), "--tls-crl", cert.path("crl.pem"), "--client-tls", "optional"]
        cluster.start(30 * options.slack)
        with cluster.nodes[0].client() as client:
            check(client.call("SET", "a", "b") in (b"OK", "OK"), "SET is refused")
        for node in cluster.nodes:
            check(node.terminate() == 0, f"{node} did not end well")
            cert(DONE, "node", "--id", str(node.id), "--host", "localhost", "--data-dir", node.data_dir, "--dir",
                 cert.folder, "--force")
            shown = cert(DONE, "show", cert.path(f"node-{node.id}.pem"))
            check(f"leasehold://orders/node/{node.id}/" in shown and f"node/{node.id}/-" not in shown,
                  f"not for one directory: {shown}")
        other = cert(NO, "node", "--id", "2", "--host", "localhost", "--data-dir", cluster.nodes[0].data_dir, "--dir",
                     cert.folder, "--force")
        check("is the directory of node 1, not of node 2" in other, f"another node's directory: {other}")
        cluster.start(30 * options.slack)
        with cluster.nodes[1].client() as client:
            check(client.call("GET", "a") == b"b", "what was written is gone")


def run(options):
    if shutil.which("openssl") is None:
        raise Skipped("the program openssl is not installed")
    os.umask(0)
    with Cluster(options.binary, size=1, keep=options.keep) as place:
        cert = Cert(options.binary, os.path.join(place.folder, "ca"))
        make_all(cert)
        as_openssl_sees_it(cert)
        refusals(cert)
        group(options, cert)


if __name__ == "__main__":
    main(__doc__, run)
