"""Certificates of every kind, good and bad, by `leasehold cert` as an operator makes them."""

import os
import shutil
import subprocess

from cluster import check


class Authority:
    def __init__(self, binary, folder, cluster="default"):
        self.binary = binary
        self.folder = folder
        self("init", "--cluster", cluster)

    def __call__(self, *words):
        done = subprocess.run([self.binary, "cert", *words, "--dir", self.folder], capture_output=True, text=True,
                              check=False)
        check(done.returncode == 0, f"leasehold cert {words}: {done.stderr}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def pair(self, stem):
        return self.path(f"{stem}.pem"), self.path(f"{stem}-key.pem")

    def client(self, user):
        self("client", "--user", user)
        return self.pair(f"client-{user}")

    def node(self, number):
        self("node", "--id", str(number), "--host", "127.0.0.1")
        return self.pair(f"node-{number}")

    def revoked(self, user):
        """A good certificate of the user, which was stolen and then revoked."""
        pair = self.client(user)
        kept = tuple(shutil.copy(path, path + ".revoked") for path in pair)
        self("revoke", pair[0])
        for path in pair:
            os.remove(path)
        return kept

    def expired(self, pair):
        """The same certificate as that of `pair`, with a life that is over."""
        certificate, private = pair
        over = self.path("expired.pem")
        request = subprocess.run(["openssl", "x509", "-x509toreq", "-in", certificate, "-signkey", private,
                                  "-copy_extensions", "copy"], capture_output=True, check=True).stdout
        subprocess.run(["openssl", "x509", "-req", "-CA", self.path("ca.pem"), "-CAkey", self.path("ca-key.pem"),
                        "-days", "-1", "-copy_extensions", "copy", "-out", over], input=request, check=True,
                       stderr=subprocess.DEVNULL)
        return over, private
