#!/usr/bin/env python3
"""The file of `--spans`, judged by OpenTelemetry's rules for its JSON: three nodes answer writes and reads at the
leader and at a follower; each command has a span, each proposal and read that the node took a part of it, with all
stations in the order of time. No key and no value. Then a client's own trace, the part that is drawn, a refusal, a
change of leaders, a file that is bounded, and files that cannot be written."""

import json
import os
import re
import subprocess
import urllib.request

from cluster import Cluster, check, free_port, main, wait_for

KEY = "planted-key-7f3a"
VALUE = "planted-value-91bc"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SPAN_KEYS = {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes",
             "events", "droppedEventsCount", "status"}


def digits(text, least=0):
    """An integer of 64 bits in the JSON of protocol buffers."""
    check(isinstance(text, str) and re.fullmatch("0|[1-9][0-9]*", text), f"{text!r} is not such an integer")
    check(int(text) >= least and int(text) < 2**64, f"{text} is out of range")
    return int(text)


def attributes_of(given):
    found = {}
    for one in given:
        check(set(one) == {"key", "value"} and one["key"] and one["key"] not in found, f"an attribute: {one}")
        check(len(one["value"]) == 1, f"a value is one of several kinds: {one}")
        kind, value = next(iter(one["value"].items()))
        check(kind in ("stringValue", "intValue"), f"no kind of a value: {one}")
        check(kind != "intValue" or digits(value) >= 0, str(one))
        check(isinstance(value, str), str(one))
        found[one["key"]] = value
    return found


def judge_span(span):
    """By opentelemetry/proto/trace/v1/trace.proto, and the rules of its JSON."""
    check(set(span) <= SPAN_KEYS, f"unknown fields: {set(span) - SPAN_KEYS}")
    check(re.fullmatch("[0-9a-f]{32}", span["traceId"]) and int(span["traceId"], 16) > 0, span["traceId"])
    check(re.fullmatch("[0-9a-f]{16}", span["spanId"]) and int(span["spanId"], 16) > 0, span["spanId"])
    parent = span.get("parentSpanId", "")
    check(parent == "" or re.fullmatch("[0-9a-f]{16}", parent) and int(parent, 16) > 0, parent)
    check(span["name"] and span["kind"] in (1, 2), str(span))
    # Of this decade: the clock of a node begins elsewhere.
    last = begun = digits(span["startTimeUnixNano"], 1_600_000_000 * 10**9)
    for event in span["events"]:
        check(set(event) == {"timeUnixNano", "name", "attributes"} and event["name"], str(event))
        attributes_of(event["attributes"])
        check(digits(event["timeUnixNano"]) >= last, f"{event['name']} is before what stands before it: {span}")
        last = int(event["timeUnixNano"])
    check(digits(span["endTimeUnixNano"]) >= last, f"it ends before its last station: {span}")
    check(int(span["endTimeUnixNano"]) - begun < 60 * 10**9, f"it lasts for a minute: {span}")
    check(span["status"] == {} or span["status"]["code"] == 2 and span["status"]["message"], str(span["status"]))
    return span | {"attributes": attributes_of(span["attributes"]), "stations": [e["name"] for e in span["events"]]}


def spans_of(path, node=None):
    """All spans of the file, whose lines are whole."""
    spans = []
    if not os.path.exists(path):
        return spans
    with open(path, "rb") as file:
        text = file.read()
    # The node may be in the middle of a line.
    for line in text[:text.rfind(b"\n") + 1].splitlines():
        request = json.loads(line.decode("utf-8"))
        check(set(request) == {"resourceSpans"}, str(set(request)))
        for resource in request["resourceSpans"]:
            named = attributes_of(resource["resource"]["attributes"])
            check(named["service.name"] == "leasehold" and named["service.namespace"], str(named))
            check(node is None or named["service.instance.id"] == str(node.id), str(named))
            for scope in resource["scopeSpans"]:
                check(scope["scope"]["name"] == "leasehold", str(scope["scope"]))
                spans += [judge_span(span) for span in scope["spans"]]
    return spans


class Files:
    """The file of each node; what has been looked at is not shown again."""

    def __init__(self, cluster):
        self.folder = cluster.folder
        self.seen = set()

    def path(self, node):
        return os.path.join(self.folder, f"spans-{node.id}")

    def wait(self, node, name, count=1, where=lambda span: True):
        """New ones of this name."""
        def found():
            spans = [s for s in spans_of(self.path(node), node)
                     if s["name"] == name and s["spanId"] not in self.seen and where(s)]
            return spans if len(spans) >= count else None
        spans = wait_for(f"{count} spans {name} of {node}", 20, found)
        self.seen |= {span["spanId"] for span in spans}
        check(len(spans) == count, f"{len(spans)} spans {name}, and not {count}: {spans}")
        return spans


def of_a_command(span):
    """Not what the node asks for by itself, as when it begins to lead."""
    return "parentSpanId" in span


def inside(part, whole):
    check(part["traceId"] == whole["traceId"] and part["parentSpanId"] == whole["spanId"], f"{part} in {whole}")
    check(int(whole["startTimeUnixNano"]) <= int(part["startTimeUnixNano"]), f"it begins early: {part} in {whole}")
    check(int(part["endTimeUnixNano"]) <= int(whole["endTimeUnixNano"]), f"it ends late: {part} in {whole}")


def at_the_leader(files, leader):
    with leader.client() as client:
        check(client.call("SET", KEY, VALUE) == "OK", "SET")
        check(client.call("GET", KEY) == VALUE.encode(), "GET")
        check(client.call("LEASEHOLD", "READ", "quorum", "GET", KEY) == VALUE.encode(), "quorum")
        check(client.call("LEASEHOLD", "READ", "log", "GET", KEY) == VALUE.encode(), "log")
    command = files.wait(leader, "set")[0]
    check(command["kind"] == 2 and "parentSpanId" not in command, str(command))
    check(command["attributes"] == {"db.system.name": "leasehold", "server.address": "127.0.0.1",
                                    "server.port": str(leader.port), "db.operation.name": "set"}, str(command))
    part = files.wait(leader, "leasehold.propose", where=of_a_command)[0]
    inside(part, command)
    stations = [name for name in part["stations"] if name != "durable"]  # its own disk may be the last one
    check(stations == ["queued", "appended", "committed", "applied"], str(part))
    check(part["kind"] == 1 and int(part["attributes"]["leasehold.index"]) > 0, str(part))
    check(part["status"] == {}, str(part))

    read = files.wait(leader, "get")[0]
    check(read["stations"] == ["justified"], str(read))
    reads = files.wait(leader, "leasehold|read", 2)
    parts = files.wait(leader, "leasehold.read", 2, of_a_command)
    for command, part, basis, first in zip(reads, parts, ("quorum", "log"), ("asked", "queued")):
        inside(part, command)
        check(part["attributes"]["leasehold.read.basis"] == basis, str(part))
        check(part["stations"][0] == first, str(part))
        check(command["stations"] == ["asks the node", "justified"], str(command))


def at_a_follower(files, leader, follower):
    with follower.client() as client:
        check(client.call("SET", KEY, VALUE) == "OK", "SET")
        check(client.call("GET", KEY) == VALUE.encode(), "GET")
    part = files.wait(follower, "leasehold.propose", where=of_a_command)[0]
    inside(part, files.wait(follower, "set")[0])
    check(part["stations"] == ["forwarded", "applied"], str(part))
    forwarded = attributes_of(part["events"][0]["attributes"])
    check(forwarded["leasehold.leader"] == str(leader.id), f"{part}: node {leader.id} leads")
    read = files.wait(follower, "leasehold.read", where=of_a_command)[0]
    command = files.wait(follower, "get")[0]
    inside(read, command)
    check(read["stations"][:2] == ["asked the leader", "justified"], str(read))
    check(read["attributes"]["leasehold.read.basis"] == "leader", str(read))
    why = attributes_of(command["events"][0]["attributes"])
    check("lease" in why["leasehold.reason"], f"{command} does not say why")


def a_clients_own_trace(files, leader):
    """A pipeline: it is of the next command only. With it a client may also decide against a record."""
    with leader.client() as client:
        check(client.call("CONFIG", "SET", "spans-ratio", "0") == "OK", "CONFIG SET")
        check(client.call("CONFIG", "GET", "spans-ratio") == [b"spans-ratio", b"0"], "CONFIG GET")
        check(client.call("LEASEHOLD", "TRACEPARENT", f"00-{TRACE}-{PARENT}-01") == "OK", "TRACEPARENT")
        client.call("INCR", "planted-count")
        client.call("INCR", "planted-count")
        command = files.wait(leader, "incr")[0]
        check(command["traceId"] == TRACE and command["parentSpanId"] == PARENT, str(command))
        inside(files.wait(leader, "leasehold.propose", where=lambda s: s["traceId"] == TRACE)[0], command)

        check(client.call("CONFIG", "SET", "spans-ratio", "1") == "OK", "CONFIG SET")
        client.call("LEASEHOLD", "TRACEPARENT", f"00-{TRACE}-{PARENT}-00")
        client.call("INCR", "planted-count")
        client.call("DECR", "planted-count")
        files.wait(leader, "decr")
        spans = [span for span in spans_of(files.path(leader)) if span["name"] == "incr"]
        check(len(spans) == 1, f"a span of a command that was not to have one: {spans}")
        check("is a fraction" in str(client.call("CONFIG", "SET", "spans-ratio", "2")), "a ratio of 2")


def a_refusal_and_a_change(files, cluster, leader):
    """A node that is alone refuses a write; its span says so. The next leader's has another term."""
    others = cluster.others(leader)
    for node in others:
        node.pause()
    try:
        with leader.client(20.0) as client:
            said = client.call("SET", KEY, VALUE)
            check(getattr(said, "word", "") in ("UNKNOWNOUTCOME", "NOLEADER"), repr(said))
    finally:
        for node in others:
            node.resume()
    command = files.wait(leader, "set", where=lambda s: s["status"] != {})[0]
    part = files.wait(leader, "leasehold.propose", where=lambda s: s["parentSpanId"] == command["spanId"])[0]
    check(command["status"]["message"] == command["attributes"]["db.response.status_code"], str(command))
    check(part["status"]["message"].startswith(("unknown", "dropped")), str(part))
    check("committed" not in part["stations"], str(part))

    before = cluster.wait_leader()
    before.kill()
    after = cluster.wait_leader(among=cluster.others(before))
    with after.client() as client:
        check(client.call("SET", "planted-after", VALUE) == "OK", "SET")
    first = files.wait(after, "leasehold.propose", where=lambda s: "appended" in s["stations"])[-1]
    check(first["status"] == {}, str(first))
    before.start()
    cluster.wait_leader()


def keeps_secrets(files, cluster):
    for node in cluster.nodes:
        with open(files.path(node), encoding="utf-8") as file:
            text = file.read()
        check("planted" not in text, f"{files.path(node)} has data of a client")


def metrics_of(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}


def a_bounded_file(options):
    """All is written off, in two files of a MiB."""
    admin = free_port()
    with Cluster(options.binary, size=1, keep=options.keep) as cluster:
        path = os.path.join(cluster.folder, "spans")
        cluster.nodes[0].flags += ["--spans", path, "--spans-ratio", "1", "--spans-bytes", "1M", "--admin",
                                   f"127.0.0.1:{admin}"]
        leader = cluster.start()
        with leader.client() as client:
            count = 0
            while not os.path.exists(path + ".1"):
                count += 1
                check(count < 200, "no second file")
                client.pipeline([("PING",)] * 100)

        # The file goes away for a moment whenever the next one begins: look when no span is left to be written.
        def all_written():
            figures = metrics_of(admin)
            ended = [figures[name] for name in figures if name.startswith("leasehold_spans_")]
            return figures if sum(ended) >= 100 * count else None
        figures = wait_for("all spans to be written", 20, all_written)
        for name in (path, path + ".1"):
            check(os.path.getsize(name) <= 1 << 20, f"{name} has {os.path.getsize(name)} bytes")
            check(os.stat(name).st_mode & 0o777 == 0o600, f"{name} is open to others")
            check(len(spans_of(name)) > 0 or name == path, f"{name} is empty")
        check(figures["leasehold_spans_written_total"] > 100, str(figures))
        # The folder goes: the node serves, counts what it loses, and says so once.
        here = os.path.join(cluster.folder, "gone")
        os.rename(path, here)
        os.mkdir(path)
        with leader.client() as client:
            def lost():
                for _ in range(2000):
                    check(client.call("SET", KEY, VALUE) == "OK", "SET")
                return metrics_of(admin)['leasehold_spans_lost_total{reason="file"}'] > 0
            wait_for("lost spans", 60, lost)
        check(leader.log_text().count("the file of spans") == 1, leader.log_text())
        os.rmdir(path)
        with leader.client() as client:
            client.call("SET", KEY, VALUE)
        wait_for("it to be written again", 20, lambda: "can be written again" in leader.log_text())
        leader.terminate()
        check(len(spans_of(path)) > 0, "no spans again")


def what_cannot_be(options, cluster):
    """Each is refused at the start, with what to do."""
    for flags, says in ((["--spans", "/nowhere/spans"], "cannot open the file of spans /nowhere/spans: No such file"),
                        (["--spans", "/dev/full"], "cannot use the file of spans /dev/full"),
                        (["--spans-ratio", "1.5"], "'1.5' is not a fraction from 0 to 1"),
                        (["--spans-bytes", "1K"], "a file of spans needs 1M or more")):
        port = free_port()
        done = subprocess.run(
            [options.binary, "serve", "--id", "1", "--peers", f"1=127.0.0.1:{port}", "--data-dir",
             os.path.join(cluster.folder, "other"), "--listen", "127.0.0.1:0", *flags],
            capture_output=True, text=True, timeout=30, check=False)
        check(done.returncode not in (0, None) and says in done.stderr, f"{flags}: {done.stderr}")
    with cluster.nodes[0].client() as client:
        check(client.call("PING") == "PONG", "PING")


def run(options):
    with Cluster(options.binary, keep=options.keep) as cluster:
        files = Files(cluster)
        for node in cluster.nodes:
            node.flags += ["--spans", files.path(node), "--spans-ratio", "1", "--command-timeout", "2s"]
        leader = cluster.start()
        at_the_leader(files, leader)
        at_a_follower(files, leader, cluster.others(leader)[0])
        a_clients_own_trace(files, leader)
        a_refusal_and_a_change(files, cluster, cluster.wait_leader())
        keeps_secrets(files, cluster)
        what_cannot_be(options, cluster)
    a_bounded_file(options)


if __name__ == "__main__":
    main(__doc__, run)
