"""Many requests at once, by `leasehold bench`, of the cluster that several parts share: beside Redis, the floor of a
write, and etcd."""

import shutil

import load_blocks
from judge import Judge
from scene import KEYS, VALUE_BYTES
from sweeps import say
from transfers import Etcd

# How many are under way at once, beside etcd.
ETCD_WRITES = (1, 64, 512, 4096)


def measure(options, report, cluster, leader, floors):
    """GETs beside Redis, SETs beside the floor that batches as we do."""
    port, redis, null = cluster.client_ports[leader], floors.get("redis"), floors["null"]
    everybody = [process.pid for process in cluster.processes.values()]

    judge = Judge(options, report, "loads", port, VALUE_BYTES)

    def pair(name, pids, floor_name, floor, flags):
        found = load_blocks.measure(
            options.program, options.work, name,
            {floor_name: (f"127.0.0.1:{floor.port}", floor.tree()), name: (f"127.0.0.1:{port}", pids)},
            ["--keys", KEYS, "--value-size", VALUE_BYTES, *flags], options.pairs, judges={name: judge})
        load_blocks.report_pair(report, name, found[name], floor_name, found[floor_name])

    say(f"loads: closed loop, blocks of a second, {VALUE_BYTES}-byte values")
    if redis:
        pids = [cluster.processes[leader].pid]
        pair("pipelined GET", pids, "Redis", redis, ["--connections", 16, "--pipeline", 32])
        pair("GET at 64 connections", pids, "Redis", redis, ["--connections", 64])
    pair("512 writes in flight", everybody, "null-replicate", null, ["--workload", "set", "--in-flight", 512])
    judge.conclude()


def measure_beside_etcd(options, report, cluster, leader):
    """Writes beside three members of etcd in its own protocol."""
    if shutil.which("etcd") is None:
        say("etcd is not installed (Debian: etcd-server): nothing is held against it")
        return
    etcd = Etcd(options.work)
    try:
        etcd.start()
        targets = {"etcd": (load_blocks.ETCD + etcd.addresses, etcd.pids)}
        say(f"writes beside etcd: closed loop, blocks of a second, {VALUE_BYTES}-byte values")
        judge = Judge(options, report, "writes beside etcd", cluster.client_ports[leader], VALUE_BYTES)
        for under_way in ETCD_WRITES:
            name = "write beside etcd" if under_way == 1 else f"writes of {under_way} clients"
            targets[name] = (f"127.0.0.1:{cluster.client_ports[leader]}",
                             [process.pid for process in cluster.processes.values()])
            found = load_blocks.measure(
                options.program, options.work, name, targets,
                ["--keys", KEYS, "--value-size", VALUE_BYTES, "--workload", "set", "--in-flight", under_way],
                options.pairs, judges={name: judge})
            load_blocks.report_pair(report, name, found[name], "etcd", found["etcd"])
            del targets[name]
        judge.conclude()
    finally:
        etcd.stop()
