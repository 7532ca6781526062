"""A group as docs/operations.md secures it: certificates by `leasehold cert`, TLS on both ports, users with
passwords, and no right for a client that has not said who it is. And what the programs of clients/ get to reach it."""

import os
import ssl
import subprocess

from cluster import Cluster, check, wait_for

ROOT = ("root", "the secret of root")


class SecuredCluster(Cluster):
    """`users`: the rules of each user of the test, by name. Without any it is a Cluster as every other: a plain group
    without users."""

    def __init__(self, binary, users=None, **settings):
        super().__init__(binary, **settings)
        self.users = users or {}
        if not self.users:
            return
        for authority in ("ca", "other"):
            self._cert("init", "--cluster", "default", folder=authority)
            for user in self.users:
                self._cert("client", "--user", user, folder=authority)
        context = ssl.create_default_context(cafile=self.path("ca", "ca.pem"))
        for node in self.nodes:
            self._cert("node", "--id", str(node.id), "--host", "127.0.0.1,localhost", folder="ca")
            node.flags += ["--tls-cert", self.path("ca", f"node-{node.id}.pem"),
                           "--tls-key", self.path("ca", f"node-{node.id}-key.pem"),
                           "--tls-ca", self.path("ca", "ca.pem"), "--tls-crl", self.path("ca", "crl.pem")]
            node.tls = context

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def _cert(self, *words, folder):
        made = subprocess.run([self.binary, "cert", *words, "--dir", self.path(folder)], capture_output=True,
                              text=True, check=False, timeout=30)
        check(made.returncode == 0, f"leasehold cert {words}: {made.stderr}")

    def start(self, seconds=20):
        leader = super().start(seconds)
        if self.users:
            self._make_users(leader)
        return leader

    def _make_users(self, leader):
        """The operator first; the last change closes the door. A node that has that one has them all."""
        with leader.client() as client:
            for name, rules in ((ROOT[0], "~* &* +@all"), *self.users.items(), ("default", "off")):
                words = ["on", ">" + self.password(name), *rules.split()] if name != "default" else [rules]
                reply = client.call("ACL", "SETUSER", name, *words)
                check(reply == "OK", f"ACL SETUSER {name} {rules}: {reply}")
                if name == ROOT[0]:
                    check(client.call("AUTH", *ROOT) == "OK", "AUTH as root")
        for node in self.nodes:
            def is_closed(node=node):
                with node.client() as client:
                    return getattr(client.call("PING"), "word", "") == "NOAUTH"
            wait_for(f"{node} to take no client without a user", 10, is_closed)
            node.user = ROOT

    @staticmethod
    def password(user):
        return ROOT[1] if user == ROOT[0] else f"the secret of {user}"

    def environment(self, user):
        """What a program of clients/ gets on top of this one's environment. Nothing if the group is plain."""
        if not self.users:
            return {}
        found = {"ACCESS_USER": user, "ACCESS_PASSWORD": self.password(user)}
        for prefix, authority in (("ACCESS", "ca"), ("ACCESS_OTHER", "other")):
            found[f"{prefix}_CA"] = self.path(authority, "ca.pem")
            found[f"{prefix}_CERT"] = self.path(authority, f"client-{user}.pem")
            found[f"{prefix}_KEY"] = self.path(authority, f"client-{user}-key.pem")
        return found
