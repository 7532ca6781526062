"""The faults that images.py has to find, each planted alone in a copy of the files that it reads."""

import shutil

import planted

FILES = ("Dockerfile", ".dockerignore", "compose.yaml", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "Makefile",
         "packages.txt")
FOLDERS = ("cmake", "packaging")

# (file, what stands there, what is planted instead, a part of the finding).
FAULTS = (
    ("Dockerfile", "FROM debian:bookworm AS", "FROM debian:latest AS", "by its tag"),
    ("Dockerfile", "FROM debian:bookworm-slim", "FROM debian", "by its tag"),
    ("Dockerfile", "RUN make deps", "RUM make deps", "RUM is no instruction"),
    ("Dockerfile", "RUN make deps\n", "", "does not install what packages.txt lists"),
    ("Dockerfile", "ca-certificates make", "ca-certificates make curl", "curl, which packages.txt does not list"),
    ("Dockerfile", "-y -q --no-install-recommends ca-cert", "-y -q ca-cert", "--no-install-recommends"),
    ("Dockerfile", "rm -rf /var/lib/apt/lists/*", "true", "installs between"),
    ("Dockerfile", "USER 7200:7200", "USER root", "USER is not a number"),
    ("Dockerfile", "USER 7200:7200\n", "", "no USER"),
    ("Dockerfile", "USER 7200:7200\n", "USER 7200:7200\nRUN true\n", "in front of USER"),
    ("Dockerfile", 'ENTRYPOINT ["leasehold"]', "ENTRYPOINT leasehold", "ENTRYPOINT is not in the form of a list"),
    ("Dockerfile", 'CMD ["leasehold-healthy"]', "CMD leasehold-healthy", "HEALTHCHECK is not in the form of a list"),
    ("Dockerfile", "STOPSIGNAL SIGTERM", "STOPSIGNAL SIGKILL", "STOPSIGNAL is not SIGTERM"),
    ("Dockerfile", "EXPOSE 7201/tcp", "EXPOSE 7202/tcp", "EXPOSE the client port 7201"),
    ("Dockerfile", " 7101/udp", "", "EXPOSE the peer port 7101"),
    ("Dockerfile", "--from=build", "--from=builder", "no earlier stage has the name builder"),
    ("Dockerfile", "COPY --chmod=0644 LICENSE", "COPY --chmod=0644 LICENCE", "LICENCE does not exist"),
    ("Dockerfile", "COPY --chmod=0644", "COPY --mod=0644", "COPY has no flag --mod"),
    ("Dockerfile", "ENV CI=true", "ENV PASSWORD=x", "no secrets"),
    ("Dockerfile", "--preset program", "--preset programs", "no preset programs"),
    ("Dockerfile", "-DLEASEHOLD_BATCHES", "-DLEASEHOLD_BATCH_ALL", "no option LEASEHOLD_BATCH_ALL"),
    ("Dockerfile", "--target leasehold", "--target leaseholds", "no target leaseholds"),
    ("Dockerfile", "--component program", "--component programs", "component programs"),
    (".dockerignore", "build\n", "", "does not leave build out"),
    (".dockerignore", "**/*.key\n", "", "does not leave group.key out"),
    (".dockerignore", "docs\n", "raft\n", "leaves raft/CMakeLists.txt out"),
    (".dockerignore", "docs\n", "packages*\n", "leaves packages.txt out"),
    ("compose.yaml", "image: leasehold:", "image: leasehold:1", "the version of the project"),
    ("compose.yaml", "  build: .\n  # Also", "  # Also", "without `build: .`"),
    ("compose.yaml", "restart: unless", "restrat: unless", "unknown keys"),
    ("compose.yaml", "restart: unless-stopped", "restart: 'no'", "not started again"),
    ("compose.yaml", "stop_grace_period: 30s", "stop_grace_period: 1s", "longer than a transfer"),
    ("compose.yaml", 'ports: ["127.0.0.1:7202:7201"]', 'ports: ["7202:7201"]', "open to everybody"),
    ("compose.yaml", 'ports: ["127.0.0.1:7202:7201"]', 'ports: ["127.0.0.1:7201:7201"]', "published more than once"),
    ("compose.yaml", '"127.0.0.1:7203"', '"127.0.0.1:7209"', "--advertise is not what is published"),
    ("compose.yaml", '--id, "2"', '--id, "3"', "which --peers calls node3"),
    ("compose.yaml", "3=node3:7101\"", "3=node3:7102\"", "does not EXPOSE the peer port 7102"),
    ("compose.yaml", "7202\",\n      --peers, \"1=node1:7101,", "7202\",\n      --peers, \"", "differs from"),
    ("compose.yaml", "--peer-key, /etc/leasehold/group.key,", "--allow-plain-peers, 'on',", "strangers own the group"),
    ("compose.yaml", '--admin, "127.0.0.1:7401"', '--admin, "0.0.0.0:7401"', "not on loopback"),
    ("compose.yaml", '--admin, "127.0.0.1:7401"', '--admin, "127.0.0.1:7402"', "asks another port"),
    ("compose.yaml", "key:/etc/leasehold:ro", "key:/etc/leasehold", "can only read"),
    ("compose.yaml", "node2:/var/lib/leasehold", "node1:/var/lib/leasehold", "nobody uses the volume node2"),
    ("compose.yaml", "  node3: {}\n", "", "the volume node3 is not declared"),
    ("compose.yaml", "leasehold cert key", "leasehold cert kye", "no service `key`"),
    ("compose.yaml", "cap_drop: [ALL]", "cap_drop: []", "cap_drop is not"),
    ("compose.yaml", "[serve, --id, \"3\"", "[sevre, --id, \"3\"", "2 services run `serve`"),
    ("compose.yaml", "name: leasehold", "name: [leasehold", "compose.yaml: "),
    ("packaging/docker/healthy", ":-127.0.0.1:7401", ":-127.0.0.1:7301", "asks another port"),
)


def copy_of(tree, folder):
    for name in FILES:
        shutil.copy(tree / name, folder / name)
    for name in FOLDERS:
        shutil.copytree(tree / name, folder / name)
    for path in tree.glob("*/CMakeLists.txt"):
        (folder / path.parent.name).mkdir(exist_ok=True)
        shutil.copy(path, folder / path.parent.name)


def judge(tree, findings):
    """What images.py gets wrong: a clean copy that is refused, a fault that is not found."""
    return planted.judge(FAULTS, lambda folder: copy_of(tree, folder), findings)
