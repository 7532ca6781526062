"""The faults that doctor.py plants before `leasehold doctor` looks, one at a time. Each function spoils one thing, and
returns the level, the check, a part of what has to be found, and a part of the cure."""

import fcntl
import os
import shutil
import socket
import subprocess

import disk
from authority import Authority
from cluster import free_port
from wrong_answers import SETTINGS, STATUS, WrongServer, bulk

ERROR, WARNING = "error", "warning"

CLOCK = "sys/devices/system/clocksource/clocksource0/"
HEALTHY = {
    CLOCK + "current_clocksource": "tsc\n",
    CLOCK + "available_clocksource": "tsc hpet acpi_pm \n",
    "proc/cpuinfo": "flags : fpu vme\n",
    "proc/stat": "cpu  1 0 1 1 0 0 0 0 0 0\n",
    "proc/sys/vm/max_map_count": "262144\n",
    "proc/sys/net/core/somaxconn": "4096\n",
    "proc/sys/vm/overcommit_memory": "0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "proc/swaps": "Filename Type Size Used Priority\n",
    "proc/meminfo": "MemTotal: 8000000 kB\n",
    "proc/self/mountinfo": "22 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw\n",
    "proc/self/cgroup": "0::/leasehold.service\n",
}


def disk_of(patient):
    shim = disk.Shim(patient.test.options.shim, patient)
    patient.environment["DISK_SHIM_FOLDER"] = os.path.realpath(patient.folder)
    return shim


def certificates_of(patient):
    authority = Authority(patient.test.binary, os.path.join(patient.folder, "keys"))
    return authority, authority.node(1)


def use(patient, pair, authority):
    patient.flags.update({"--tls-cert": pair[0], "--tls-key": pair[1], "--tls-ca": authority})


FAULTS, DISK_FAULTS = [], []


def fault(function):
    FAULTS.append(function)
    return function


def disk_fault(function):
    DISK_FAULTS.append(function)
    return function


@disk_fault
def slow_disk(patient):
    disk_of(patient).stall(0.4, count=10000)
    return ERROR, "disk-sync", "gives its leadership up", "--election-timeout 2s"


@disk_fault
def lying_disk(patient):
    disk_of(patient).set(skip_syncs=1)
    return ERROR, "disk-sync", "no device answers so fast", "put --data-dir elsewhere"


@disk_fault
def failing_disk(patient):
    disk_of(patient).fail_sync(3)
    return ERROR, "disk-sync", "Input/output error", "dmesg"


@disk_fault
def full_disk(patient):
    disk_of(patient).set(full=1)
    return ERROR, "disk-space", "No space left", "free some space"


@fault
def disk_without_barriers(patient):
    patient.files["proc/self/mountinfo"] = "22 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw,nobarrier\n"
    return ERROR, "disk-kind", "a sync does not make data durable", "remount without nobarrier"


@fault
def disk_of_another_machine(patient):
    patient.files["proc/self/mountinfo"] += f"30 22 0:9 / {patient.folder} rw - nfs4 host:/x rw,vers=4.2\n"
    return ERROR, "disk-kind", "lies on nfs4", "on a disk of this machine"


@fault
def disk_in_memory(patient):
    patient.files["proc/self/mountinfo"] += f"30 22 0:9 / {patient.folder} rw - tmpfs tmpfs rw\n"
    return ERROR, "disk-kind", "gone after a reboot", "on a disk of this machine"


@fault
def slow_clock_source(patient):
    patient.files[CLOCK + "current_clocksource"] = "hpet\n"
    return WARNING, "clock-source", "hpet", "echo tsc >"


@fault
def virtual_machine(patient):
    patient.files["proc/cpuinfo"] = "flags : fpu hypervisor\n"
    if os.path.exists("/dev/vmclock0"):
        patient.flags["--vm-clock"] = "off"
    return WARNING, "vm-clock", "virtual machine", "--vm-clock off" if "--vm-clock" in patient.flags else "VM clock"


@fault
def no_vm_clock(patient):
    patient.flags["--vm-clock"] = os.path.join(patient.folder, "none")
    return ERROR, "vm-clock", "serve would not start", "--vm-clock"


@fault
def few_files(patient):
    patient.before = ["prlimit", "--nofile=1024:1024"]
    return ERROR, "open-files", "at most 1024 files", "LimitNOFILE="


@fault
def few_maps(patient):
    patient.files["proc/sys/vm/max_map_count"] = "1000\n"
    return WARNING, "map-count", "vm.max_map_count is 1000", "sysctl -w vm.max_map_count="


@fault
def short_queue(patient):
    patient.files["proc/sys/net/core/somaxconn"] = "128\n"
    return WARNING, "connection-queue", "net.core.somaxconn is 128", "sysctl -w net.core.somaxconn="


@fault
def strict_memory(patient):
    patient.files["proc/sys/vm/overcommit_memory"] = "2\n"
    return WARNING, "overcommit", "vm.overcommit_memory is 2", "sysctl -w vm.overcommit_memory=0"


@fault
def huge_pages(patient):
    patient.files["sys/kernel/mm/transparent_hugepage/enabled"] = "[always] madvise never\n"
    return WARNING, "huge-pages", "always", "echo madvise >"


@fault
def swap(patient):
    patient.files["proc/swaps"] += "/dev/sda3 partition 1000000 500000 -2\n"
    return WARNING, "swap", "488.3 MiB of swap", "swapoff -a"


@fault
def small_quota(patient):
    patient.files["sys/fs/cgroup/leasehold.service/cpu.max"] = "50000 100000\n"
    return ERROR, "cpu-quota", "0.50 processors", "CPUQuota="


@fault
def small_memory(patient):
    patient.files["sys/fs/cgroup/leasehold.service/memory.max"] = f"{100 << 20}\n"
    return ERROR, "memory", "the control group allows 100.0 MiB", "--client-memory-max"


@fault
def expired_certificate(patient):
    authority, pair = certificates_of(patient)
    use(patient, authority.expired(pair), authority.path("ca.pem"))
    return ERROR, "certificates", "ended on", "leasehold cert node 1"


@fault
def ending_certificate(patient):
    authority, _ = certificates_of(patient)
    authority("node", "--id", "1", "--host", "127.0.0.1", "--days", "5", "--force")
    use(patient, authority.pair("node-1"), authority.path("ca.pem"))
    return WARNING, "certificates", "more days", "leasehold cert node 1"


@fault
def key_of_another_certificate(patient):
    authority, pair = certificates_of(patient)
    use(patient, (pair[0], authority.node(2)[1]), authority.path("ca.pem"))
    return ERROR, "certificates", "not the private key of the certificate", "leasehold cert node"


@fault
def certificate_of_another_node(patient):
    authority, _ = certificates_of(patient)
    use(patient, authority.node(2), authority.path("ca.pem"))
    return ERROR, "certificates", "is for node 2", "leasehold cert node 1"


@fault
def another_authority(patient):
    _, pair = certificates_of(patient)
    other = Authority(patient.test.binary, os.path.join(patient.folder, "other"))
    use(patient, pair, other.path("ca.pem"))
    return ERROR, "certificates", "does not follow from", "--tls-ca"


@fault
def revoked_certificate(patient):
    authority, pair = certificates_of(patient)
    use(patient, pair, authority.path("ca.pem"))
    authority("revoke", pair[0])
    patient.flags["--tls-crl"] = authority.path("crl.pem")
    return ERROR, "certificates", "certificate revoked", "make it again"


@fault
def open_certificate_key(patient):
    authority, pair = certificates_of(patient)
    os.chmod(pair[1], 0o644)
    use(patient, pair, authority.path("ca.pem"))
    return ERROR, "certificates", f"chmod 600 {pair[1]}", "repair the file"


@fault
def open_peer_key(patient):
    path = os.path.join(patient.folder, "group.key")
    subprocess.run([patient.test.binary, "cert", "key", path], check=True, stdout=subprocess.DEVNULL)
    os.chmod(path, 0o644)
    patient.flags["--peer-key"] = path
    return ERROR, "peer-key", "chmod 600", "repair the file"


@fault
def plain_peers(patient):
    patient.flags["--peers"] = f"1=0.0.0.0:{free_port()}"
    return ERROR, "peer-protection", "is beyond loopback", "leasehold cert key"


@fault
def taken_port(patient):
    door = socket.create_server(("127.0.0.1", 0))
    patient.keep = door
    port = door.getsockname()[1]
    patient.flags["--listen"] = f"127.0.0.1:{port}"
    return ERROR, "ports", f"--listen 127.0.0.1:{port} is taken", f"ss -ltnp 'sport = :{port}'"


@fault
def foreign_address(patient):
    patient.flags["--listen"] = f"192.0.2.1:{free_port()}"
    return ERROR, "ports", "no address of this machine", "ip addr"


@fault
def unknown_name(patient):
    patient.flags["--peers"] += ",2=nobody.invalid:7101"
    return ERROR, "peers", "does not resolve", "/etc/hosts"


@fault
def absent_peer(patient):
    patient.flags["--peers"] += f",2=127.0.0.1:{free_port()}"
    return WARNING, "peers", "nobody listens there", "start that node"


@fault
def absent_server(patient):
    patient.more = ["--servers", f"127.0.0.1:{free_port()}"]
    return ERROR, "servers", "does not answer", "--servers"


@fault
def directory_of_another_node(patient):
    shutil.copytree(patient.test.stopped, patient.data_dir, dirs_exist_ok=True)
    patient.flags["--id"] = "2"
    patient.flags["--peers"] = f"2=127.0.0.1:{free_port()}"
    return ERROR, "data-dir", "holds the log of node 1, and --id is 2", "--id 1"


@fault
def directory_of_another_cluster(patient):
    shutil.copytree(patient.test.stopped, patient.data_dir, dirs_exist_ok=True)
    patient.flags["--cluster"] = "another"
    return ERROR, "data-dir", "belongs to another cluster", "--cluster and --peers"


@fault
def damaged_directory(patient):
    shutil.copytree(patient.test.stopped, patient.data_dir, dirs_exist_ok=True)
    with open(os.path.join(patient.data_dir, "log", "LEASEHOLD"), "r+b") as mark:
        mark.seek(40)
        mark.write(b"\0\0\0\0")
    return ERROR, "data-dir", "LEASEHOLD", "wipe its directory"


@fault
def locked_directory(patient):
    folder = os.path.join(patient.data_dir, "log")
    os.mkdir(folder)
    patient.keep = os.open(folder, os.O_RDONLY)
    fcntl.flock(patient.keep, fcntl.LOCK_EX)
    return ERROR, "data-dir", f"process {os.getpid()} has locked", f"ps -p {os.getpid()}"


@fault
def number_that_is_taken(patient):
    patient.more = ["--servers", patient.test.servers]
    return ERROR, "servers", "node 1 runs already at", "another --id"


@fault
def other_settings(patient):
    patient.flags["--id"] = "9"
    patient.flags["--peers"] = f"9=127.0.0.1:{free_port()}"
    patient.more = ["--servers", patient.test.servers, "--lease", "3s"]
    return WARNING, "group-settings", "lease 3s and 10s", "leasehold settings set"


@fault
def other_version(patient):
    server = WrongServer()
    server.replies = {"LEASEHOLD STATUS": bulk({**STATUS, "version": "0.0.1", "id": 2}),
                      "LEASEHOLD SETTINGS": bulk(SETTINGS)}
    patient.keep = server
    patient.more = ["--servers", f"127.0.0.1:{server.port}"]
    return WARNING, "versions", "runs 0.0.1", "upgrade"


@fault
def wrong_round_trip(patient):
    patient.more = ["--max-round-trip", "1ns"]
    return WARNING, "timing", "longer than --max-round-trip 1ns", "--max-round-trip "
