#!/usr/bin/env python3
"""Bad input at both ports, at the command line and in the folders. Each gets a clear error or a
closed connection and is counted; a good client that works all the while notices nothing."""

import argparse

from bad_clients import attack_client_port
from bad_nodes import attack_folders, attack_with_strangers
from bad_peers import attack_peer_port
from bad_settings import attack_settings
from cluster import PATIENT, Background, Cluster, check, main
from good_client import DiskProbe, GoodClient

PARTS = ("settings", "clients", "peers", "strangers", "folders")


def arguments(parser):
    parser.add_argument("--seed", type=int, default=1, help="of the random bytes")
    parser.add_argument("--only", choices=PARTS, action="append", help=argparse.SUPPRESS)


def run(options):
    parts = options.only or PARTS
    with Cluster(options.binary, flags=PATIENT, keep=options.keep) as cluster:
        leader = cluster.start()
        # One follower is stopped and started by some of the tests; the other two must not suffer.
        victim = cluster.others(leader)[0]
        stayers = cluster.others(victim)
        term = leader.status()["term"]
        disk = DiskProbe(cluster.folder)
        good = [GoodClient(node, options.slack, disk) for node in stayers]
        with disk, Background(good[0].step), Background(good[1].step):
            for part in PARTS:
                if part not in parts:
                    continue
                print(f"--- {part}", flush=True)
                if part == "settings":
                    attack_settings(cluster)
                elif part == "clients":
                    for node in stayers:
                        attack_client_port(node, options.seed, not options.no_memory_limit)
                elif part == "peers":
                    for node in stayers:
                        attack_peer_port(node, options.seed)
                elif part == "strangers":
                    attack_with_strangers(cluster, victim, stayers)
                else:
                    attack_folders(cluster, victim, stayers)
                for client in good:
                    client.report()
        for node in stayers:
            check(node.status()["term"] == term, "an election was held meanwhile")


if __name__ == "__main__":
    main(__doc__, run, arguments)
