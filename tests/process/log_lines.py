#!/usr/bin/env python3
"""A node writes its log as lines of JSON, and says more or less of what it does when a client asks for that."""

import datetime
import json

from cluster import Cluster, check, main, wait_for

SECONDS = 10
MEMBERS = {"time": str, "level": str, "node": int, "message": str}


def lines(node):
    """Whole ones. What the deputy says is not of the node's log."""
    found = []
    for line in node.log_text().split("\n")[:-1]:
        if not line.startswith("{"):
            check("deputy" in line, f"no object: {line!r}")
            continue
        entry = json.loads(line)
        check({name: type(value) for name, value in entry.items()} == MEMBERS, f"other members: {line}")
        at = datetime.datetime.strptime(entry["time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
        age = datetime.datetime.now(datetime.timezone.utc) - at
        check(-5 < age.total_seconds() < 600, f"the time is not in UTC: {line}")
        check(entry["node"] == node.id, f"another node: {line}")
        found.append(entry)
    return found


def set_level(node, name, value):
    with node.client() as client:
        check(client.call("CONFIG", "SET", name, value) == "OK", f"CONFIG SET {name} {value}")
        return client.call("CONFIG", "GET", "log-level")[1].decode()


def run(options):
    with Cluster(options.binary, flags=["--log-format", "json"], keep=options.keep) as cluster:
        cluster.start()
        node = cluster.wait_leader()
        wait_for("news of the lease", SECONDS, lambda: any("lease" in entry["message"] for entry in lines(node)))
        said = lines(node)
        check({entry["level"] for entry in said} <= {"info", "warning"}, "it says more than it was asked for")
        check(set_level(node, "log-level", "trace") == "trace", "another level is shown")
        with node.client() as client:
            client.call("LEASEHOLD", "TRANSFER")
        wait_for("news of a promise", SECONDS,
                 lambda: any(e["level"] == "debug" and "promise" in e["message"] for e in lines(node)))
        check(set_level(node, "loglevel", "warning") == "warn", "another level is shown")
        quiet = len(lines(node))
        node.kill()
        node.start()
        wait_for("the level of the start", SECONDS,
                 lambda: any(entry["level"] == "info" for entry in lines(node)[quiet:]))
        print(f"{len(lines(node))} lines of JSON")


if __name__ == "__main__":
    main(__doc__, run)
