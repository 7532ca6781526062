"""compose.yaml as a group of nodes, and whether they agree with each other, with the image and with the program."""

import collections
import dataclasses
import re
import subprocess

import yaml
from dockerfile import Wrong

TOP_KEYS = {"name", "networks", "services", "volumes"}
SERVICE_KEYS = {"build", "cap_drop", "command", "depends_on", "entrypoint", "image", "network_mode", "networks",
                "ports", "read_only", "restart", "security_opt", "stop_grace_period", "volumes"}
HARDENED = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
LOOPBACK = "127.0.0.1"


@dataclasses.dataclass
class Service:
    name: str
    keys: dict

    @property
    def command(self):
        return [str(word) for word in self.keys.get("command", [])]

    @property
    def flags(self):
        """The flags of its command and their values."""
        words = self.command
        return {word: value for word, value in zip(words, [*words[1:], ""]) if word.startswith("--")}

    @property
    def is_node(self):
        return self.command[:1] == ["serve"]

    @property
    def mounts(self):
        """(volume, where, whether it is for reading only)."""
        return [(*mount.split(":")[:2], mount.endswith(":ro")) for mount in self.keys.get("volumes", [])]

    def published(self):
        """(address, port there, port in the container)."""
        for port in self.keys.get("ports", []):
            match = re.fullmatch(r"([\d.]+):(\d+):(\d+)", str(port))
            if not match:
                raise Wrong(f"{self.name}: the port {port} is not ADDRESS:PORT:PORT; without an address it is open to "
                            "everybody")
            yield match[1], int(match[2]), int(match[3])


@dataclasses.dataclass
class Group:
    services: list
    volumes: dict
    networks: dict

    @property
    def nodes(self):
        return [service for service in self.services if service.is_node]

    @property
    def peers(self):
        """{number: (host, port)} of the first node; check() sees that all have the same."""
        return dict(_peer(entry) for entry in self.nodes[0].flags["--peers"].split(","))


def _peer(entry):
    match = re.fullmatch(r"(\d+)=([^:]+):(\d+)", entry)
    if not match:
        raise Wrong(f"{entry} is no peer ID=HOST:PORT")
    return int(match[1]), (match[2], int(match[3]))


def read(path):
    """The group. Wrong: it is no compose file, or has what is not used here."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise Wrong(str(error)) from error
    unknown = {key for key in found if key not in TOP_KEYS and not key.startswith("x-")}
    if unknown:
        raise Wrong(f"unknown keys: {sorted(unknown)}")
    services = []
    for name, keys in found["services"].items():
        if set(keys) - SERVICE_KEYS:
            raise Wrong(f"{name}: unknown keys: {sorted(set(keys) - SERVICE_KEYS)}")
        services.append(Service(name, keys))
    group = Group(services, found.get("volumes", {}), found.get("networks", {}))
    if len(group.nodes) != 3:
        raise Wrong(f"{len(group.nodes)} services run `serve`, and not three")
    return group


def flags_of_serve(program):
    text = subprocess.run([program, "serve", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(re.findall(r"^\s+(--[\w-]+)", text, re.MULTILINE))


def check_services(group, tree):
    project = (tree / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.search(r"project\(leasehold VERSION ([\d.]+)", project)[1]
    for service in group.services:
        keys = service.keys
        if keys.get("image") != f"leasehold:{version}":
            yield f"{service.name}: the image is not leasehold:{version}, the version of the project"
        if keys.get("build") != ".":
            yield f"{service.name}: without `build: .` docker would look for an image of that name elsewhere"
        for key, value in HARDENED.items():
            if keys.get(key) != value:
                yield f"{service.name}: {key} is not {value}"
        for volume, _, _ in service.mounts:
            if volume not in group.volumes:
                yield f"{service.name}: the volume {volume} is not declared"
        for network in keys.get("networks", []):
            if network not in group.networks:
                yield f"{service.name}: the network {network} is not declared"
        for other in keys.get("depends_on", {}):
            if other not in [service.name for service in group.services]:
                yield f"{service.name}: it depends on {other}, which is no service"
    for name in group.volumes:
        if not any(name == volume for service in group.services for volume, _, _ in service.mounts):
            yield f"nobody uses the volume {name}"


def check_members(group, exposed):
    """Each node's number, peers and ports."""
    expected = group.peers
    for node in group.nodes:
        flags = node.flags
        if dict(_peer(entry) for entry in flags.get("--peers", "").split(",")) != expected:
            yield f"{node.name}: --peers differs from that of {group.nodes[0].name}"
        host, port = expected.get(int(flags.get("--id", 0)), ("nobody", 0))
        if host != node.name:
            yield f"{node.name}: it is node {flags.get('--id')}, which --peers calls {host}"
        if not {f"{port}/tcp", f"{port}/udp"} <= exposed:
            yield f"{node.name}: the image does not EXPOSE the peer port {port}, by tcp and udp"
        listen = flags.get("--listen", "").rpartition(":")[2]
        if f"{listen}/tcp" not in exposed:
            yield f"{node.name}: the image does not EXPOSE the client port {listen}"
        published = list(node.published())
        if len(published) != 1 or any(address != LOOPBACK or str(inside) != listen for address, _, inside in published):
            yield f"{node.name}: its client port, and nothing else, is published on {LOOPBACK}"
        elif flags.get("--advertise") != f"{LOOPBACK}:{published[0][1]}":
            yield f"{node.name}: --advertise is not what is published"
        if node.keys.get("network_mode"):
            yield f"{node.name}: network_mode would take it away from its peers"
    ports = collections.Counter(port for node in group.nodes for _, port, _ in node.published())
    yield from (f"port {port} is published more than once" for port, count in ports.items() if count > 1)


def check_protection(group):
    key = group.nodes[0].flags.get("--peer-key", "")
    for node in group.nodes:
        flags = node.flags
        if not key or flags.get("--peer-key") != key:
            yield f"{node.name}: nodes that reach each other over a network have the same --peer-key"
        if "--allow-plain-peers" in flags:
            yield f"{node.name}: --allow-plain-peers lets strangers own the group"
        if not flags.get("--admin", LOOPBACK).startswith(LOOPBACK + ":") or "--admin-open" in flags:
            yield f"{node.name}: the admin port is not on loopback"
        if not any(key.startswith(where + "/") and read_only for _, where, read_only in node.mounts):
            yield f"{node.name}: {key or 'the key'} is not in a volume that it can only read"
        if not any(where == flags.get("--data-dir") and not read_only for _, where, read_only in node.mounts):
            yield f"{node.name}: its data is in no volume"
        if node.keys.get("depends_on") != {"key": {"condition": "service_completed_successfully"}}:
            yield f"{node.name}: it does not wait for the key"
    mounts = [mount for node in group.nodes for mount in node.mounts]
    volumes = collections.Counter(volume for volume, _, read_only in mounts if not read_only)
    yield from (f"{volume} is the volume of more than one node" for volume, count in volumes.items() if count > 1)
    makers = [service for service in group.services
              if f"leasehold cert key {key}" in " ".join(service.keys.get("entrypoint", []))]
    if len(makers) != 1 or makers[0].name != "key" or "ports" in makers[0].keys:
        yield "there is no service `key` that makes the key"


def check_life(group, healthy):
    for node in group.nodes:
        if node.keys.get("restart") != "unless-stopped":
            yield f"{node.name}: it is not started again: restart is not unless-stopped"
        grace = re.fullmatch(r"(\d+)s", str(node.keys.get("stop_grace_period", "10s")))
        if not grace or int(grace[1]) < 15:
            yield f"{node.name}: stop_grace_period has to be longer than a transfer of the leadership (--drain-timeout)"
        if node.flags.get("--admin") and f":-{node.flags['--admin']}}}" not in healthy:
            yield f"{node.name}: packaging/docker/healthy asks another port than {node.flags['--admin']}"
        if "--admin" not in node.flags:
            yield f"{node.name}: without --admin nobody knows of its health"


def check(group, tree, image, program):
    """Findings. `image`: the last stage of the Dockerfile; `program`: None if its flags cannot be asked for."""
    exposed = set(image.last("EXPOSE").words())
    yield from check_services(group, tree)
    yield from check_members(group, exposed)
    yield from check_protection(group)
    yield from check_life(group, (tree / "packaging/docker/healthy").read_text(encoding="utf-8"))
    volumes = image.last("VOLUME").exec_form() or []
    known = flags_of_serve(program) if program else None
    for node in group.nodes:
        if node.flags.get("--data-dir") not in volumes:
            yield f"{node.name}: its --data-dir is no VOLUME of the image"
        for flag in sorted(set(node.flags) - known) if known else ():
            yield f"{node.name}: leasehold serve has no flag {flag}"
