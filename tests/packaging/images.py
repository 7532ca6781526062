#!/usr/bin/env python3
"""Looks at Dockerfile, .dockerignore and compose.yaml, without docker: what they name exists, and they agree with each
other, with the packages that the project lists and with the program.

  images.py TREE --program LEASEHOLD    look at them; one line for each finding, status 1 if there is any
  images.py TREE --self-test            plant one fault of each kind in copies, expect each found

tests/clean-room/images.py carries them out.
"""

import pathlib
import re
import shutil
import subprocess

import command
import compose
import dockerfile
from dockerfile import Wrong

# In the image of Debian's base system, or what everything there needs.
BASE_PACKAGES = {"libc6", "libgcc-s1"}
# Before there is a Makefile to install what packages.txt lists.
FIRST_PACKAGES = {"ca-certificates", "make"}
SECRET = re.compile(r"(?i)passw|secret|token|credential|_key\b|-----BEGIN|^AKIA")
LISTS = "rm -rf /var/lib/apt/lists/*"


def listed_packages(tree):
    """Those of packages.txt."""
    lines = (tree / "packages.txt").read_text(encoding="utf-8").splitlines()
    return {word for line in lines for word in line.split("#")[0].split()}


def linked_packages(program):
    """The Debian packages of the libraries that `program` is linked with. None: dpkg does not know."""
    if not shutil.which("dpkg-query") or not shutil.which("readelf"):
        return None
    dynamic = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    found = subprocess.run(["dpkg-query", "-S", *(f"*/{library}" for library in libraries)], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False).stdout
    packages = set()
    for library in libraries:
        where = r"^([^:, ]+)[^/]*/(?:usr/)?lib(?:64)?(?:/[^/]*-linux-gnu)?/" + re.escape(library) + "$"
        names = set(re.findall(where, found, re.MULTILINE))
        if not names:
            return None
        packages |= names
    return packages - BASE_PACKAGES


def installed_packages(stage):
    """What its RUNs install by apt. Each has to be one that leaves nothing behind."""
    found = set()
    for run in stage.all("RUN"):
        for command in run.text.split("&&"):
            words = command.split()
            if words[:2] != ["apt-get", "install"]:
                continue
            if "-y" not in words or "--no-install-recommends" not in words:
                raise Wrong(f"line {run.line}: apt-get install without -y and --no-install-recommends")
            if not run.text.startswith("apt-get update") or LISTS not in run.text:
                raise Wrong(f"line {run.line}: a RUN installs between `apt-get update` and `{LISTS}`")
            found |= {word for word in words[2:] if not word.startswith("-")}
    return found


def check_packages(stages, tree, program):
    build, image = stages[0], stages[-1]
    for package in sorted(installed_packages(build) - FIRST_PACKAGES - listed_packages(tree)):
        yield f"the first stage installs {package}, which packages.txt does not list"
    if not any(run.text == "make deps" for run in build.all("RUN")):
        yield "the first stage does not install what packages.txt lists, by `make deps`"
    wanted = linked_packages(program) if program else None
    if wanted is None:
        print("not looked at: the packages of the libraries that the program is linked with")
        return
    if installed_packages(image) != wanted:
        yield f"the image installs {sorted(installed_packages(image))}, the program is linked with {sorted(wanted)}"


def check_stages(stages):
    names = []
    for stage in stages:
        base, _, tag = stage.image.partition(":")
        if stage.image not in names and (base != "debian" or not tag.startswith("bookworm")):
            yield f"FROM {stage.image}: the base is a debian:bookworm*, by its tag"
        for copy in stage.all("COPY"):
            if "from" in copy.flags and copy.flags["from"] not in names:
                yield f"line {copy.line}: no earlier stage has the name {copy.flags['from']}"
        names.append(stage.name)
        for instruction in stage.instructions:
            named = instruction.name in ("ENV", "ARG") and SECRET.search(instruction.text)
            if named or "-----BEGIN" in instruction.text:
                yield f"line {instruction.line}: who has an image reads what {instruction.name} says: no secrets"


def check_image(stage):
    """What the last stage promises to those who run it."""
    for name in ("ENTRYPOINT", "CMD", "HEALTHCHECK", "VOLUME"):
        if stage.last(name).exec_form() is None:
            yield f"{name} is not in the form of a list: a shell would stand between docker and the program"
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", stage.last("USER").text):
        yield "USER is not a number, or is root: Kubernetes has to see that it is neither"
    if stage.last("STOPSIGNAL").text != "SIGTERM":
        yield "STOPSIGNAL is not SIGTERM, at which a node transfers its leadership"
    after = stage.instructions[stage.instructions.index(stage.last("USER")):]
    if any(instruction.name in ("RUN", "COPY") for instruction in after):
        yield "RUN and COPY stand in front of USER"


def check_copies(stages, tree, ignored):
    for stage in stages:
        for copy in stage.all("COPY"):
            sources = copy.words()[:-1]
            if not sources:
                yield f"line {copy.line}: COPY has no source"
            for source in sources:
                if "from" in copy.flags:
                    continue
                if not (tree / source).exists():
                    yield f"line {copy.line}: {source} does not exist"
                elif source != "." and source in ignored:
                    yield f"line {copy.line}: .dockerignore leaves {source} out"


def check_ignored(tree, ignored):
    for name in ("build", "build/dev/CMakeCache.txt", ".git", "group.key", "ca/ca-key.pem", "docs/__pycache__/x.pyc"):
        if name not in ignored:
            yield f".dockerignore does not leave {name} out"
    rooms = re.findall(r"add_subdirectory\((\w+)\)", (tree / "CMakeLists.txt").read_text(encoding="utf-8"))
    for name in ("CMakeLists.txt", "CMakePresets.json", "cmake/LeaseholdRoom.cmake", "CHANGELOG.md", "LICENSE",
                 *(f"{room}/CMakeLists.txt" for room in rooms if room != "tests")):
        if name in ignored:
            yield f".dockerignore leaves {name} out, which the build reads"


def check_build(stages, tree):
    """The presets, options and targets that the RUNs name."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in
                      (*tree.glob("CMakeLists.txt"), *tree.glob("*/CMakeLists.txt"), *tree.glob("cmake/*.cmake")))
    presets = (tree / "CMakePresets.json").read_text(encoding="utf-8")
    for run in stages[0].all("RUN"):
        words = run.text.split()
        for before, word in zip(words, words[1:]):
            if before == "--preset" and f'"name": "{word}"' not in presets:
                yield f"line {run.line}: there is no preset {word}"
            if before == "--component" and f"COMPONENT {word}" not in texts:
                yield f"line {run.line}: nothing is installed as component {word}"
        for option in re.findall(r"-D(LEASEHOLD_\w+)=", run.text):
            if not re.search(rf"(?:option\(|set\(){option}\b", texts):
                yield f"line {run.line}: there is no option {option}"
        for target in re.findall(r"--target ((?:\w+ ?)+)", run.text):
            for name in target.split():
                if not re.search(rf"add_(?:executable|library|custom_target)\({name}\b", texts):
                    yield f"line {run.line}: there is no target {name}"


def findings(tree, program):
    """What is wrong, one line each."""
    tree = pathlib.Path(tree)
    try:
        stages = dockerfile.parse((tree / "Dockerfile").read_text(encoding="utf-8"))
        ignored = dockerfile.Ignored((tree / ".dockerignore").read_text(encoding="utf-8"))
        for check, arguments in ((check_stages, (stages,)), (check_image, (stages[-1],)),
                                 (check_packages, (stages, tree, program)), (check_copies, (stages, tree, ignored)),
                                 (check_ignored, (tree, ignored)), (check_build, (stages, tree))):
            yield from (f"Dockerfile: {finding}" for finding in check(*arguments))
    except Wrong as error:
        yield f"Dockerfile: {error}"
        return
    try:
        group = compose.read(tree / "compose.yaml")
        yield from (f"compose.yaml: {finding}" for finding in compose.check(group, tree, stages[-1], program))
    except Wrong as error:
        yield f"compose.yaml: {error}"


if __name__ == "__main__":
    command.main(__doc__, findings, "images_faults", "--program", metavar="LEASEHOLD",
                 help="the program as it was built: its flags, and what it is linked with")
