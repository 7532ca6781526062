"""Does to a cluster what a plan (chaos_plan.py) says, and undoes it. One class of faults, one
method. What a machine cannot do is said once, and left out."""

import asyncio
import collections
import contextlib
import errno
import os
import signal
import time

from chaos_plan import LEADER, OF_A_PROCESS, PROXY_KINDS, STOPS
from cluster import Failed, check, wait_for
from load import LOST

CGROUP_PERIOD_US = 100_000
# Starving by hand, where there are no control groups: stopped for most of each period.
HAND_PERIOD = 0.1


async def in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(None, function, *args)


class CpuGroup:
    """The processor time of one node, by a control group."""

    ROOTS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup")

    def __init__(self, name):
        self.path = None
        for root in self.ROOTS:
            path = os.path.join(root, name)
            with contextlib.suppress(OSError):
                os.makedirs(path, exist_ok=True)
                if os.path.exists(f"{path}/cpu.cfs_quota_us") or os.path.exists(f"{path}/cpu.max"):
                    self.path = path
                    break
                os.rmdir(path)

    def limit(self, pid, percent):
        """None: as much as it likes."""
        self._write("cgroup.procs", str(pid))
        quota = None if percent is None else CGROUP_PERIOD_US * percent // 100
        if os.path.exists(f"{self.path}/cpu.max"):
            self._write("cpu.max", f"{'max' if quota is None else quota} {CGROUP_PERIOD_US}")
        else:
            self._write("cpu.cfs_quota_us", str(-1 if quota is None else quota))

    def _write(self, name, text):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    def close(self):
        if self.path is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self.path)


class Faults:
    """The hands of a plan. `watch` knows who leads. `busy` are the nodes of which the process is in
    somebody's hands; a second fault of a process leaves them alone."""

    def __init__(self, cluster, network, power, clocks, vm_clocks, proxy, watch, story, members, moves,
                 groups=1):
        self._cluster = cluster
        self._members = members
        self._moves = moves
        self._groups = groups
        self._network = network
        self._power = power  # None without a disk that can be cut
        self._clocks = clocks
        self._vm_clocks = vm_clocks
        self._proxy = proxy
        self._watch = watch
        self._story = story
        self._cpu = {node: CpuGroup(f"leasehold-chaos-{os.getpid()}-{node.place}")
                        for node in cluster.nodes}
        self._stopping = asyncio.Event()
        self.busy = set()
        self._replacing = False  # a node: the others are all that know what it knew
        self.workload = None  # that of the round
        self.failed = None  # what went wrong first; told before anything that follows from it
        self.done = collections.Counter()
        self.left_out = collections.Counter()

    @property
    def starves_by_hand(self):
        return any(group.path is None for group in self._cpu.values())

    async def follow(self, plan, stop):
        """Everything of a plan, each at its time; ends when all is undone. After `stop` nothing
        new begins, and what lasts ends early."""
        self._stopping = stop
        begun = time.monotonic()
        tasks = []
        for fault in plan.faults:
            if self.failed or not await self._sleep(begun + fault.at - time.monotonic()):
                break
            tasks.append(asyncio.create_task(self._one(fault)))
        if tasks:
            await asyncio.wait(tasks)  # all, also if one failed: each undoes what it did
        if self.failed:
            raise self.failed
        await self._sleep(begun + plan.seconds - time.monotonic())

    async def _sleep(self, seconds):
        """False once all has to stop."""
        try:
            await asyncio.wait_for(self._stopping.wait(), max(seconds, 0))
            return False
        except asyncio.TimeoutError:
            return True

    def _leader(self):
        leader = self._watch.leader()
        return self._cluster.node(leader) if leader is not None else None

    async def _one(self, fault):
        nodes = self._nodes_of(fault)
        if nodes is None:
            self.left_out[fault.kind] += 1
            return
        self.done[fault.kind] += 1
        entry = self._story.begin(fault, nodes)
        try:
            await getattr(self, "do_" + fault.kind)(fault, nodes)
        except Exception as error:  # follow() raises it once all is undone
            self.failed = self.failed or error
        finally:
            self._story.end(entry)

    def _nodes_of(self, fault):
        """None: another fault uses the node, or there is no leader; or too few would be left that are well."""
        if fault.kind == "replace" and (self._replacing or self.busy or not self._watch.all_answer()):
            return None
        holds = fault.kind in OF_A_PROCESS or fault.what in STOPS
        if fault.node is None:
            nodes = list(self._cluster.nodes) if fault.kind == "power" else []
        else:
            node = self._leader() if fault.node == LEADER else self._cluster.at(fault.node)
            nodes = [node]
        if None in nodes or (holds and self.busy & set(nodes)):
            return None
        return nodes

    @contextlib.contextmanager
    def _hold(self, nodes):
        self.busy |= set(nodes)
        try:
            yield
        finally:
            self.busy -= set(nodes)

    async def do_kill(self, fault, nodes):
        with self._hold(nodes):
            await in_thread(nodes[0].kill)
            await self._sleep(fault.lasts)
            nodes[0].start()  # on this thread: a process ends with the thread that started it

    async def do_replace(self, fault, nodes):
        node, before, fresh = nodes[0], nodes[0].id, self._members.new_number()
        self._replacing = True
        with self._hold(nodes):
            await in_thread(node.kill)
            await self._sleep(fault.lasts)
            await in_thread(self._members.remove, node, before)
            self._watch.becomes_another(node)
            node.become(fresh, self._members.others_of(node))
            if self._proxy is not None:
                self._proxy.moves_in(fresh, node.place)
            elif fault.detail["address"] == "another":
                self._members.move(node)
            adding = asyncio.ensure_future(in_thread(self._members.add, node, fresh))
            await self._sleep(fault.detail["late"])
            node.start()
            await adding
        # Not if one of these fails: then the next one could take the majority.
        self._replacing = False

    async def do_power(self, fault, nodes):
        """The log of each must hold what the node had called durable, before anybody helps it."""
        with self._hold(nodes):
            before = await in_thread(self._power.cut, nodes)
            for node in nodes:
                await in_thread(self._power.examine, node, before[node])
            await self._sleep(fault.lasts)
            for node in nodes:
                node.start()

    async def do_pause(self, fault, nodes):
        with self._hold(nodes):
            unread = await self.workload.open_unread(nodes[0])
            await in_thread(nodes[0].pause)
            await self._sleep(fault.lasts)
            self.workload.send_unread(unread)
            nodes[0].resume()

    async def do_starve(self, fault, nodes):
        with self._hold(nodes):
            group = self._cpu[nodes[0]]
            if group.path is None:
                await self._starve_by_hand(fault, nodes[0])
                return
            pid = nodes[0].process.pid
            group.limit(pid, fault.detail["percent"])
            await self._sleep(fault.lasts)
            group.limit(pid, None)

    async def _starve_by_hand(self, fault, node):
        share = fault.detail["percent"] / 100
        end = time.monotonic() + fault.lasts
        while time.monotonic() < end and not self._stopping.is_set():
            node.signal(signal.SIGSTOP)
            await asyncio.sleep(HAND_PERIOD * (1 - share))
            node.signal(signal.SIGCONT)
            await asyncio.sleep(HAND_PERIOD * share)

    async def do_disk(self, fault, nodes):
        node, shim = nodes[0], self._power.shims[nodes[0]]
        with self._hold(nodes):
            if fault.what == "disk stalls":
                shim.stall(fault.detail["stall"], fault.detail["syncs"])
                await self._sleep(fault.lasts)
                shim.set(stalls=0)
            elif fault.what == "disk full":
                shim.set(full=1)
                await self._sleep(fault.lasts)
                shim.set(full=0)
                # One that starts on a full disk ends, but it closes the stores that it has opened first.
                await in_thread(wait_for, f"{node} to answer or to end", 30,
                                lambda: not node.running or node.try_status() is not None)
            else:
                shim.fail_sync(1, getattr(errno, fault.detail["error"]))
                await self._sleep(fault.lasts)
                shim.set(syncs_until_fail=0)
            await self._start_again_if_it_ended(node, fault)

    async def _start_again_if_it_ended(self, node, fault):
        """A node ends when its disk fails, and at no other time. One that has no space for the next
        part of its log tries again later, and says in place what it can: it may go on."""
        if fault.what == "sync fails" and self._power.shims[node].get("failed") > 0:
            for_want_of_space = fault.detail["error"] != "EIO"
            try:
                await in_thread(node.wait_exit, 3 if for_want_of_space else 10)
            except Failed:
                if not for_want_of_space:
                    raise
            self._power.shims[node].set(failed=0)
        if node.running:
            return
        status = node.process.poll()
        check(status == 1 and fault.what != "disk stalls",
              f"{node} ended with status {status} during: {fault.what}")
        await in_thread(node.wait_exit, 1)
        node.start()

    async def do_partition(self, fault, nodes):
        everyone = [node.place for node in self._cluster.nodes]
        if nodes:
            one = nodes[0].place
            out = [(one, other) for other in everyone if other != one]
            into = [(other, one) for other in everyone if other != one]
            pairs = {"isolated": out + into, "mute": out, "deaf": into}[fault.what]
        else:
            pairs = fault.detail["pairs"]
        if self._network.cuts:
            await in_thread(self._network.block, pairs)
            await self._sleep(fault.lasts)
            await in_thread(self._network.unblock, pairs)
        else:
            token = object()
            self._proxy.add(token, pairs, {"carries": False})
            await self._sleep(fault.lasts)
            self._proxy.remove(token)

    async def do_proxy(self, fault, _):
        token = object()
        self._proxy.add(token, fault.detail["pairs"], PROXY_KINDS[fault.what])
        await self._sleep(fault.lasts)
        self._proxy.remove(token)

    async def do_drift(self, fault, _):
        leader = self._leader()
        for node in self._cluster.nodes:
            rates = fault.detail["rates"]
            is_leader = node is leader and LEADER in rates
            self._clocks[node].drift(*rates[LEADER if is_leader else node.place])
        await self._sleep(fault.lasts)

    async def do_jump(self, fault, nodes):
        clock = self._clocks[nodes[0]]
        if fault.what == "boot clock":
            clock.jump(fault.detail["ahead"])
        elif fault.what == "wall clock":
            clock.wall(fault.detail["ahead"])
        else:
            with self._hold(nodes):
                unread = await self.workload.open_unread(nodes[0])
                await in_thread(nodes[0].pause)
                begun = time.monotonic()
                await self._sleep(fault.lasts)
                self.workload.send_unread(unread)
                stood = time.monotonic() - begun
                if fault.what == "suspended":
                    clock.slept(stood)
                else:
                    clock.lost(stood)
                    self._vm_clocks[nodes[0]].disrupted()
                nodes[0].resume()
            return
        await self._sleep(fault.lasts)

    async def do_transfer(self, fault, nodes):
        """Of all groups that the node leads."""
        def transfer():
            with contextlib.suppress(*LOST):
                with nodes[0].client(3) as client:
                    for group in range(1, self._groups + 1):
                        client.call("LEASEHOLD", "GROUP", group)
                        client.call("LEASEHOLD", "TRANSFER")
        await in_thread(transfer)
        await self._sleep(fault.lasts)

    async def do_slots(self, fault, _):
        await self._moves.strike(fault.detail, self.workload)
        await self._sleep(fault.lasts)

    def close(self):
        for group in self._cpu.values():
            group.close()
