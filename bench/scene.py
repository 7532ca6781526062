"""A cluster in a folder of its own, with what it is held against, for one part of a measurement."""

import contextlib
import shutil
import signal

import cluster as c

KEYS = 1000
VALUE_BYTES = 256


class Bench:
    """A cluster in a folder of its own, which ends with the block."""

    def __init__(self, options, name, members=3, **more):
        """`more`: what Cluster takes."""
        self.options = options
        self.folder = options.work / name
        self.folder.mkdir()
        self.stack = contextlib.ExitStack()
        self.cluster = c.Cluster(options.program, self.folder, members=members, **more)

    def __enter__(self):
        self.stack.callback(lambda: self.cluster.stop(signal.SIGKILL))
        try:
            self.leader = self.cluster.start()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *error):
        self.stack.close()
        if error[0] is None:
            shutil.rmtree(self.folder, ignore_errors=True)  # else logs stay

    @property
    def port(self):
        return self.cluster.client_ports[self.leader]

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def pids(self):
        return [process.pid for process in self.cluster.processes.values()]

    @property
    def leader_pid(self):
        return self.cluster.processes[self.leader].pid

    def counters(self):
        """Of the leader, which has to be the one that led at the start."""
        return self.cluster.leader_counters(self.leader)

    def fill(self, keys=KEYS, value_bytes=VALUE_BYTES, port=None):
        c.load(self.options.programs, "load", port or self.port, keys, value_bytes)

    def start_redis(self, *flags):
        """Its process, or None where there is no redis-server."""
        process = c.start_redis(self.folder, flags=flags)
        if process is not None:
            self.stack.callback(process.stop)
        return process

    def redis(self):
        """Its port, or None."""
        process = self.start_redis()
        return process and process.port

    def start_floor(self, name, *words):
        """A process of one of the floors."""
        process = c.Process(name, [self.options.programs / name, *words, "serve"], self.folder, True)
        self.stack.callback(process.stop)
        return process

    def floor(self, value_bytes):
        """The address of the write without consensus."""
        process = self.start_floor("floor_null_replicate", "--dir", self.folder, "--value-bytes", value_bytes)
        return f"127.0.0.1:{process.port}"
