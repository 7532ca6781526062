#!/usr/bin/env python3
"""Users with rights, over real sockets, with redis-cli and redis-py: patterns, categories, changes
that reach open connections, passwords, ACL LOG; and users outlive restarts and snapshots."""

import os
import subprocess
import sys

try:
    import redis
except ImportError:
    # Debian's redis-py is there for Debian's Python.
    if sys.executable == "/usr/bin/python3":
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B"] + sys.argv)

from cluster import Cluster, check, main, wait_for

SECRET = "a-secret-of-ann"


def cli(node, *words, user=None, password=None):
    command = ["redis-cli", "-p", str(node.port), "--no-auth-warning"]
    if user:
        command += ["--user", user, "--pass", password]
    run = subprocess.run(command + list(words), capture_output=True, text=True, timeout=30,
                         check=False)
    return (run.stdout + run.stderr).strip()


def connect(node, user=None, password=None):
    return redis.Redis(port=node.port, username=user, password=password, socket_timeout=10)


def refused(what, call):
    try:
        answer = call()
    except redis.exceptions.RedisError as error:
        check(what in str(error), f"{error!r} does not say {what!r}")
        return
    check(False, f"{answer!r} was answered where {what!r} was expected")


def everywhere(cluster, name, rules):
    for node in cluster.nodes:
        wait_for(f"{node} to know {name}", 10,
                 lambda node=node: f"user {name} {rules}" in cli(
                     node, "acl", "list", user="root", password="root-secret"))


def make_users(cluster):
    """The operator first: then the door is closed."""
    one = cluster.nodes[0]
    check(cli(one, "acl", "setuser", "root", "on", ">root-secret", "~*", "&*", "+@all") == "OK", "root")
    check(cli(one, "acl", "setuser", "ann", "on", ">" + SECRET, "~ann:*", "%R~shared:*", "+@read",
              "+@write", "+@connection", "-@dangerous", "+leasehold|watch") == "OK", "ann")
    # What is left for a stranger is what this test looks at without a user.
    check(cli(one, "acl", "setuser", "default", "reset", "on", "nopass", "+leasehold|status",
              "+ping") == "OK", "default")
    for node in cluster.nodes:
        wait_for(f"{node} to be closed", 10, lambda node=node: "NOPERM" in cli(node, "get", "x"))
        check("NOPERM" in cli(node, "leasehold", "member", "list"), "members are no stranger's business")
        check("WRONGPASS" in cli(node, "ping", user="ann", password="wrong"), "a wrong password")
        check(cli(node, "acl", "whoami", user="root", password="root-secret") == "root", "root is known")


def check_rights(cluster):
    root = connect(cluster.nodes[0], "root", "root-secret")
    root.set("shared:1", "s")
    root.set("other", "o")
    for node in cluster.nodes:
        ann = connect(node, "ann", SECRET)
        check(ann.set("ann:1", "v") and ann.get("ann:1") == b"v", f"{node}: its own keys")
        check(ann.get("shared:1") == b"s", f"{node}: what it may read")
        refused("No permissions to access a key", lambda: ann.set("shared:1", "x"))
        refused("No permissions to access a key", lambda: ann.get("other"))
        refused("no permissions to run the 'keys' command", lambda: ann.keys("*"))
        refused("no permissions to run the 'leasehold|member' command",
                lambda: ann.execute_command("LEASEHOLD", "MEMBER", "LIST"))
        refused("no permissions to run the 'acl|setuser' command",
                lambda: ann.execute_command("ACL", "SETUSER", "ann", "+@all"))
        refused("No permissions to access a key",
                lambda: ann.execute_command("LEASEHOLD", "WATCH", "PREFIX", ""))
        shown = set(ann.scan_iter(count=100))
        check(shown == {b"ann:1", b"shared:1"}, f"{node} shows {shown}")
        log = str(connect(node, "root", "root-secret").execute_command("ACL", "LOG", "100"))
        check("shared:1" in log and "leasehold|member" in log, f"{node}: {log}")
        check("wrong" not in log and SECRET not in log, f"{node}: a password is in ACL LOG")
        check("acl_access_denied_key:" in node_info(node), "INFO counts refusals")
        ann.close()


def node_info(node):
    return cli(node, "info", user="root", password="root-secret")


def program(cluster, *words, secret=None, **settings):
    command = [cluster.nodes[0].binary] + list(words[:1])
    command += ["--servers", ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)]
    environment = dict(os.environ, **settings)
    run = subprocess.run(command + list(words[1:]), capture_output=True, text=True, timeout=30,
                         check=False, env=environment, stdin=subprocess.DEVNULL)
    check(secret is None or secret not in run.stdout + run.stderr, "the program shows a password")
    return run.returncode, (run.stdout + run.stderr).strip()


def check_the_program_logs_in(cluster, folder):
    path = os.path.join(folder, "password")
    with open(path, "w", encoding="utf-8") as file:
        file.write(SECRET + "\n")
    flags = ["--user", "ann", "--password-file", path]
    check(program(cluster, "put", "ann:2", "from a file", *flags)[0] == 0, "put with a file")
    check(program(cluster, "get", "ann:2", "--user", "ann", LEASEHOLD_PASSWORD=SECRET)
          == (0, "from a file"), "get with a variable")
    for words, settings, expected in (
            (["get", "ann:2"], {}, "NOPERM"),
            (["get", "other"] + flags, {}, "No permissions to access a key"),
            (["get", "ann:2", "--user", "ann"], {"LEASEHOLD_PASSWORD": "wrong"}, "WRONGPASS"),
            (["get", "ann:2", "--user", "ann"], {}, "--password-file"),
            (["get", "ann:2", "--user", "ann", "--password-file", "/none"], {}, "cannot read")):
        status, said = program(cluster, *words, secret=SECRET, **settings)
        check(status != 0 and expected in said, f"{words} said {said!r}, not {expected!r}")


def check_leases_have_owners(cluster):
    root = connect(cluster.nodes[0], "root", "root-secret")
    root.execute_command("ACL", "SETUSER", "ann", "+@lease", "-@lease-others")
    root.execute_command("ACL", "SETUSER", "bob", "on", ">b", "~*", "+@lease", "-@lease-others")
    everywhere(cluster, "bob", "on #scrypt$")
    ann = connect(cluster.nodes[1], "ann", SECRET)
    wait_for("ann's right to take leases", 10,
             lambda: may(lambda: ann.execute_command("LEASE.GRANT", "600000", "NAME", "lock")))
    for node in cluster.nodes:
        bob = connect(node, "bob", "b")
        refused("which is user ann's", lambda: bob.execute_command("LEASE.REVOKE", "lock"))
        refused("which is user ann's", lambda: renew(bob))
        check(renew(connect(node, "ann", SECRET)) == 600000, "the owner renews")
        check(renew(root) == 600000, "an operator may touch every lease")


def renew(client):
    reply = client.execute_command("LEASE.RENEW", "lock")[0]
    if isinstance(reply, Exception):
        raise reply
    return reply


def check_changes_reach_open_connections(cluster):
    one, two = cluster.nodes[0], cluster.nodes[1]
    root = connect(one, "root", "root-secret")
    ann = connect(two, "ann", SECRET)
    ann.set("ann:1", "v")
    root.execute_command("ACL", "SETUSER", "ann", "-set")
    wait_for("the right to be gone", 10, lambda: not may(lambda: ann.set("ann:1", "v")))
    root.execute_command("ACL", "SETUSER", "ann", "+set")
    wait_for("the right to be back", 10, lambda: may(lambda: ann.set("ann:1", "v")))
    root.execute_command("ACL", "SETUSER", "temporary", "on", ">t", "+@all", "~*", "&*")
    everywhere(cluster, "temporary", "on #scrypt$")
    idle = connect(two, "temporary", "t").connection_pool.get_connection("PING")
    idle.send_command("PING")
    check(idle.read_response() == b"PONG", "it is connected")
    root.execute_command("ACL", "DELUSER", "temporary")
    # Nothing is sent: the node ends the connection by itself.
    idle._sock.settimeout(10)  # pylint: disable=protected-access
    check(idle._sock.recv(1) == b"", "an idle connection of a removed user stays open")


def may(call):
    try:
        call()
        return True
    except redis.exceptions.NoPermissionError:
        return False


def check_nodes_learn_users_again(cluster):
    """From the log, from the disk, and from a snapshot."""
    late = cluster.nodes[2]
    late.kill()
    root = connect(cluster.nodes[0], "root", "root-secret")
    root.execute_command("ACL", "SETUSER", "late", "on", "nopass", "~l:*", "+get")
    for i in range(200):
        root.set(f"fill:{i}", "x" * 1000)
    for node in cluster.nodes[:2]:
        cli(node, "leasehold", "snapshot", user="root", password="root-secret")
    late.start()
    cluster.wait_leader()
    everywhere(cluster, "late", "on nopass ~l:*")
    for node in cluster.nodes:
        node.terminate()
    for node in cluster.nodes:
        node.start()
    cluster.wait_leader()
    for node in cluster.nodes:
        check("NOPERM" in cli(node, "get", "x"), f"{node} forgot its users")
        check(cli(node, "acl", "whoami", user="ann", password=SECRET)
              == "NOPERM User ann has no permissions to run the 'acl|whoami' command", "ann's rights")
    everywhere(cluster, "late", "on nopass ~l:*")


def check_a_door_that_is_shut(cluster):
    cli(cluster.nodes[0], "acl", "setuser", "default", "off", user="root", password="root-secret")
    for node in cluster.nodes:
        wait_for(f"{node} to be shut", 10, lambda node=node: "NOAUTH" in cli(node, "ping"))
        for words in (["get", "x"], ["leasehold", "status"], ["info"], ["acl", "whoami"], ["multi"]):
            check("NOAUTH" in cli(node, *words), f"{node} answers {words} to a stranger")


def check_no_password_is_written(cluster):
    for node in cluster.nodes:
        check(SECRET not in node.log_text(), f"{node}: the log has a password")
        slow = cli(node, "slowlog", "get", "128", user="root", password="root-secret")
        check(SECRET not in slow and "root-secret" not in slow, f"{node}: SLOWLOG has a password")
        hit = subprocess.run(["grep", "-rl", "--exclude=password", SECRET, node.data_dir],
                             capture_output=True, text=True, check=False).stdout
        check(not hit, f"a password is on the disk: {hit}")


def run(options):
    with Cluster(options.binary, keep=options.keep, flags=["--slowlog-threshold", "1ms"]) as cluster:
        cluster.start()
        make_users(cluster)
        check_rights(cluster)
        check_the_program_logs_in(cluster, cluster.nodes[0].data_dir)
        check_leases_have_owners(cluster)
        check_changes_reach_open_connections(cluster)
        check_no_password_is_written(cluster)
        check_nodes_learn_users_again(cluster)
        check_a_door_that_is_shut(cluster)
        print("two users, their rights and their passwords, over restarts and snapshots")


if __name__ == "__main__":
    main(__doc__, run)
