#!/usr/bin/env python3
"""The admin port of three real nodes: what monitors read before, while and after the leader is killed, drains or has a
stopped majority; HTTP clients that are slow, hostile or many; TLS and certificates beyond loopback. Where promtool is
installed (Debian: prometheus), it looks at the page, too."""

import gzip
import http.client
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

from cluster import Cluster, check, main, wait_for
from secured import SecuredCluster

ADMIN = ("--admin", "127.0.0.1:0")
PORT = re.compile(r"monitors on \S+ \(port (\d+)\)")
REQUEST_SECONDS = 5
SAMPLE = re.compile(r'^([a-z_]+(?:\{[^}]*\})?) (\S+)$')


def admin_port(node):
    """The one that its last start has announced."""
    found = PORT.findall(node.log_text())
    check(found, f"{node} announces no admin port")
    return int(found[-1])


def get(node, path, headers=None, method="GET", tls=None):
    """Status and body."""
    port = admin_port(node)
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    else:
        connection = http.client.HTTPSConnection("localhost", port, timeout=20, context=tls)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read()
        if answer.getheader("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        return answer.status, body.decode()
    finally:
        connection.close()


def metrics(node, query=""):
    """Each sample with its labels as they are written."""
    status, page = get(node, "/metrics" + query, {"Accept-Encoding": "gzip"})
    check(status == 200, f"{node}: /metrics answers {status}")
    samples = {}
    for line in page.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.match(line)
        check(match and match[1] not in samples, f"a line that is no sample, or is there twice: {line!r}")
        samples[match[1]] = float(match[2])
    return samples


def readiness(node):
    """Whether it is ready, and the names of the conditions that are not met."""
    status, body = get(node, "/readyz")
    answer = json.loads(body)
    check(status == (200 if answer["ready"] else 503), f"{node}: /readyz answers {status}: {body}")
    return answer["ready"], [one["name"] for one in answer["conditions"] if not one["met"]]


def what_a_group_shows(cluster):
    leader = cluster.wait_leader()
    with leader.client() as client:
        for i in range(20):
            check(client.call("SET", f"k{i}", "v") == "OK", "no write")
            client.call("GET", f"k{i}")
    for node in cluster.nodes:
        wait_for(f"{node} to be ready", 20, lambda node=node: readiness(node) == (True, []))
        check(get(node, "/healthz")[0] == 200, f"{node} is not alive")
    seen, status = metrics(leader), leader.status()
    check(seen['leasehold_raft_role{group="1",role="leader"}'] == 1, "the leader does not show its role")
    check(seen["leasehold_leases_gained_total"] >= seen["leasehold_leases_ended_total"] + 1, "leases that ended")
    check(seen["leasehold_groups_leased"] == 1 and 0 < seen['leasehold_lease_left_seconds{group="1"}'] < 1,
          "no lease is shown")
    check(seen['leasehold_raft_term{group="1"}'] == status["term"], "another term")
    check(seen['leasehold_reads_total{way="lease_hit"}'] >= 20, "no reads under the lease")
    check(seen['leasehold_writes_ended_total{outcome="committed"}'] >= 20, "no writes")
    check(seen["leasehold_log_syncs_total"] > 0, "no sync")
    check(seen["leasehold_log_sync_seconds_count"] > 0 and seen["leasehold_log_sync_seconds_sum"] > 0, "no times")
    check(seen["leasehold_lease_left_at_reads_seconds_count"] == seen['leasehold_reads_total{way="lease_hit"}'],
          "reads without what was left")
    check(0 < seen["leasehold_lease_left_at_reads_seconds_sum"] < 1000, "what was left")
    check(seen['leasehold_commands_by_kind_total{kind="string"}'] >= 40, "no commands of strings")
    check(sum(value for name, value in seen.items() if name.startswith("leasehold_commands_by_kind_total")) ==
          seen["leasehold_commands_total"], "the kinds are not all commands")
    check(seen["process_resident_memory_bytes"] > 1e6 and seen["process_open_fds"] > 5, "no figures of the process")
    check(abs(seen["process_start_time_seconds"] - time.time()) < 600, "another start")
    check(seen["leasehold_disk_free_bytes"] > 0, "no disk")
    for other in cluster.others(leader):
        check(seen[f'leasehold_peer_connected{{peer="{other.id}"}}'] == 1, f"{other} is not connected")
        check(0 < seen[f'leasehold_peer_acknowledged_age_seconds{{peer="{other.id}"}}'] < 1, f"{other} is not heard")
        check(0 < metrics(other)['leasehold_promise_left_seconds{group="1"}'] < 2, f"{other} has no promise")
        check(metrics(other)['leasehold_raft_leader{group="1"}'] == leader.id, "another leader")
    print(f"a page has {len(seen)} samples")


def a_killed_leader_is_seen(cluster):
    leader = cluster.wait_leader()
    before = {node: metrics(node) for node in cluster.others(leader)}
    leader.kill()
    following = cluster.wait_leader(among=cluster.others(leader))
    won = "leasehold_elections_won_total"
    wait_for("a won election to be counted", 10, lambda: metrics(following)[won] == before[following][won] + 1)
    wait_for("the lease to be shown", 10, lambda: metrics(following)["leasehold_groups_leased"] == 1)
    peer = f'leasehold_peer_connected{{peer="{leader.id}"}}'
    wait_for("the lost connection to be shown", 10, lambda: metrics(following)[peer] == 0)
    check(readiness(following) == (True, []), "a leader of a majority is not ready")
    campaigns = {cause: metrics(following)[f'leasehold_campaigns_total{{cause="{cause}"}}'] -
                 before[following][f'leasehold_campaigns_total{{cause="{cause}"}}']
                 for cause in ("leader_ended", "election_timeout")}
    check(sum(campaigns.values()) >= 1, "no campaign is counted")
    # Without a majority nobody leads.
    last = next(node for node in cluster.others(leader) if node is not following)
    last.kill()
    wait_for("readiness to end", 20, lambda: readiness(following) == (False, ["leader_known"]))
    check(get(following, "/healthz")[0] == 200, "it is not alive")
    seen = metrics(following)
    check(seen["leasehold_groups_without_leader"] == 1, "a leader is shown")
    check(seen['leasehold_leaderships_ended_total{cause="quorum_lost"}'] >= 1, "no lost quorum is counted")
    check(seen["leasehold_leases_ended_total"] >= 1, "no ended lease is counted")
    for node in (leader, last):
        node.start()
    cluster.wait_leader()
    for node in cluster.nodes:
        wait_for(f"{node} to be ready again", 20, lambda node=node: readiness(node) == (True, []))


def a_drain_is_seen(cluster):
    """A write that waits for a majority holds the drain, and the port answers meanwhile."""
    leader = cluster.wait_leader()
    others = cluster.others(leader)
    for other in others:
        other.pause()
    with leader.client(30) as client:
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nd\r\n$1\r\n1\r\n")
        wait_for("the write to wait", 5, lambda: leader.status()["writes"]["proposed"] >
                 leader.status()["writes"]["committed"])
        leader.signal(signal.SIGTERM)
        wait_for("the drain to be shown", 10, lambda: "not_draining" in readiness(leader)[1])
        check(metrics(leader)["leasehold_draining"] == 1, "no drain is shown")
        for other in others:
            other.resume()
    check(leader.wait_exit(20) == 0, "it did not end well")
    leader.start()
    cluster.wait_leader()


def raw(node, data, seconds=20.0):
    """What comes back until the node closes the connection, and after which time."""
    begun = time.monotonic()
    got = b""
    with socket.create_connection(("127.0.0.1", admin_port(node)), timeout=seconds) as sock:
        try:
            sock.sendall(data)
            while True:
                more = sock.recv(65536)
                if not more:
                    break
                got += more
        except (ConnectionResetError, BrokenPipeError):
            pass
    return got, time.monotonic() - begun


def hostile_clients(cluster, options):
    node = cluster.nodes[0]
    good = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    expected = [
        (good, b"HTTP/1.1 200 "),
        (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n", b"HTTP/1.1 405 "),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n", b"HTTP/1.1 405 "),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(4000)), b"HTTP/1.1 431 "),
        (b"GET /" + b"a" * 20000, b"HTTP/1.1 431 "),
        (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"HTTP/1.1 421 "),
        (b"*1\r\n$4\r\nPING\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x00" * 100 + b"\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 404 "),
    ]
    for data, begins in expected:
        answer, _ = raw(node, data)
        check(answer.startswith(begins), f"{data[:60]!r} got {answer[:60]!r}")
        check(b"root:" not in answer, "a file")
    # Slow ones hold no thread: others are answered beside them. And each has its end.
    slow = [socket.create_connection(("127.0.0.1", admin_port(node)), timeout=30) for _ in range(25)]
    for sock in slow:
        sock.sendall(b"GET / HTTP/1.1\r\n")
    for _ in range(20):
        check(raw(node, good)[0].startswith(b"HTTP/1.1 200 "), "not answered beside slow clients")
    begun = time.monotonic()
    for sock in slow:
        try:
            check(sock.recv(100) == b"", "a slow client got something")
        except ConnectionResetError:
            pass
        sock.close()
    check(time.monotonic() - begun < (REQUEST_SECONDS + 5) * options.slack, "slow clients were not closed in time")
    # A crowd makes room.
    crowd = [socket.create_connection(("127.0.0.1", admin_port(node)), timeout=30) for _ in range(200)]
    check(raw(node, good)[0].startswith(b"HTTP/1.1 200 "), "not answered in a crowd")
    for sock in crowd:
        sock.close()
    seen = metrics(node)
    for reason in ("slow", "crowded", "large", "foreign"):
        check(seen[f'leasehold_admin_refused_total{{reason="{reason}"}}'] > 0, f"not counted: {reason}")
    check(readiness(node) == (True, []), "it is not ready")


def nobody_reads(cluster):
    """A client that asks and does not read costs a place, until its time is over."""
    node = cluster.nodes[0]
    held = []
    for _ in range(20):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        sock.connect(("127.0.0.1", admin_port(node)))
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        held.append(sock)
    check(get(node, "/healthz")[0] == 200, "not answered beside clients that do not read")
    for sock in held:
        sock.close()


def the_page_and_its_status(cluster):
    """What one node's page reads of all nodes; a step that is over is among the latest."""
    leader = cluster.wait_leader()
    for node in cluster.nodes:
        status, body = get(node, "/status.json")
        seen = json.loads(body)
        check(status == 200 and seen["node"] == node.id and seen["leader"] == leader.id, f"{node}: {body}")
        check((seen["lease_left_ms"] > 0) == (node is leader), f"{node}: lease {seen['lease_left_ms']}")
        check((seen["promise_left_ms"] > 0) == (node is not leader), f"{node}: promise {seen['promise_left_ms']}")
        check(node is leader or seen["promise_to"] == leader.id, f"{node}: promise to {seen['promise_to']}")
        check(any(event["text"] == f"node {leader.id} leads" for event in seen["events"]), f"{node}: no step")
        for member in seen["members"]:  # of a peer it is known once the leader has heard from it
            known = node is leader and (member["id"] == node.id or "heard_ago_ms" in member)
            check(("behind" in member) == known, f"{node}: {member}")
        check(get(node, "/")[1].startswith("<!doctype html>"), "no page")


def promtool_agrees(cluster):
    promtool = shutil.which("promtool")
    if promtool is None:
        print("promtool is not installed: it did not look at the page")
        return
    done = subprocess.run([promtool, "check", "metrics"], input=get(cluster.nodes[0], "/metrics")[1], text=True,
                          capture_output=True, check=False, timeout=60)
    check(done.returncode == 0, f"promtool: {done.stdout}{done.stderr}")


def beyond_loopback(options):
    """Only users with a certificate are answered."""
    with Cluster(options.binary, size=1, keep=options.keep) as cluster:
        node = cluster.nodes[0]
        node.flags += ["--admin", "0.0.0.0:0"]
        node.start()
        check(node.wait_exit(20) == 1, "an unprotected port beyond loopback was opened")
        check("--admin-open on" in node.log_text(), "the log does not say what to do")
        node.flags += ["--admin-open", "on"]
        cluster.start()
        check(get(node, "/metrics", {"Host": "some.name.example"})[0] == 200, "not open")
    with SecuredCluster(options.binary, users={"eve": "-@all +ping"}, size=1, keep=options.keep) as cluster:
        node = cluster.nodes[0]
        node.flags += ["--admin", "0.0.0.0:0"]
        node.start()
        wait_for("its admin port", 20, lambda: PORT.search(node.log_text()))
        check(raw(node, b"GET /metrics HTTP/1.1\r\n\r\n")[0].startswith(b"HTTP/1.1 403 "), "plain HTTP is answered")
        check(get(node, "/metrics", tls=node.tls)[0] == 403, "one without a certificate is answered")
        for authority, good in (("ca", True), ("other", False)):
            context = ssl.create_default_context(cafile=cluster.path("ca", "ca.pem"))
            context.load_cert_chain(cluster.path(authority, "client-eve.pem"),
                                    cluster.path(authority, "client-eve-key.pem"))
            try:
                status = get(node, "/metrics", tls=context)[0]
            except (ssl.SSLError, ConnectionError, http.client.HTTPException):
                status = None
            check((status == 200) == good, f"a certificate of {authority}: {status}")


def many_groups(options):
    with Cluster(options.binary, flags=[*ADMIN, "--groups", "20"], keep=options.keep) as cluster:
        cluster.start()
        node = cluster.nodes[0]
        for each in cluster.nodes:
            wait_for(f"{each} to be ready", 60, lambda each=each: readiness(each) == (True, []))
        seen = metrics(node)
        check(seen["leasehold_groups"] == 20 and not any("group=" in name for name in seen), "lines of each group")
        check(sum(metrics(each)["leasehold_groups_led"] for each in cluster.nodes) == 20, "groups without a leader")
        one = metrics(node, "?group=7")
        check('leasehold_raft_term{group="7"}' in one and 'leasehold_raft_term{group="8"}' not in one, "one group")
        check(len(metrics(node, "?group=all")) > len(one) + 300, "all groups")


def run(options):
    with Cluster(options.binary, flags=ADMIN, keep=options.keep) as cluster:
        cluster.start()
        what_a_group_shows(cluster)
        the_page_and_its_status(cluster)
        promtool_agrees(cluster)
        a_killed_leader_is_seen(cluster)
        a_drain_is_seen(cluster)
        hostile_clients(cluster, options)
        nobody_reads(cluster)
        cluster.wait_leader()
        for node in cluster.nodes:
            check(node.terminate() == 0, f"{node}: status 0")
    many_groups(options)
    beyond_loopback(options)


if __name__ == "__main__":
    main(__doc__, run)
