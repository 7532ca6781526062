"""What docker would make of a Dockerfile and run of a compose file, by chroot and namespaces: enough of it for ours.
Needs root, debootstrap and iproute2. Network namespaces are those of the tests with real processes."""

import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(SOURCE / "tests" / name) for name in ("packaging", "process")]
import dockerfile  # noqa: E402
from cluster import check, wait_for  # noqa: E402

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
END_SECONDS_MAX = 30
# Mounts and processes in namespaces of their own, so that none of them survives.
APART = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--propagation", "private"]


def run(command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, check=False, **options)
    check(done.returncode == 0, f"{shlex.join(str(word) for word in command)} ended with status {done.returncode}: "
          f"{done.stdout[-4000:]}")
    return done.stdout


class Image:
    """The stages of a Dockerfile, each in a folder of its own. `root` is that of the last one."""

    def __init__(self, tree, folder, base):
        """`base(root)`: makes a fresh Debian there."""
        self.tree = tree
        self.stages = dockerfile.parse((tree / "Dockerfile").read_text(encoding="utf-8"))
        self.ignored = dockerfile.Ignored((tree / ".dockerignore").read_text(encoding="utf-8"))
        self.root = None
        self._roots = {}
        for number, stage in enumerate(self.stages):
            self.root = folder / f"stage{number}"
            self.root.mkdir()
            base(self.root)
            self._make(stage)
            self._roots[stage.name] = self.root

    def _make(self, stage):
        environment = {"PATH": PATH}
        here = "/"
        for instruction in stage.instructions:
            started = time.monotonic()
            if instruction.name == "ENV":
                environment.update(word.split("=", 1) for word in instruction.words())
            elif instruction.name == "WORKDIR":
                here = instruction.text
                (self.root / here.lstrip("/")).mkdir(parents=True, exist_ok=True)
            elif instruction.name == "RUN":
                self._run(instruction.text, environment, here)
            elif instruction.name == "COPY":
                self._copy(instruction, here)
            else:
                continue
            print(f"{time.monotonic() - started:6.1f} s  {instruction.name} {instruction.text[:90]}", flush=True)

    def _run(self, text, environment, here):
        mounts = 'mount -t proc proc "$1/proc"; exec chroot "$1" sh -c "cd \\"\\$1\\" && \\$2" sh "$2" "$3"'
        script = mounts.replace("&& \\$2", '&& eval \\"\\$2\\"')
        run([*APART, "sh", "-ec", script, "sh", self.root, here, text], env=environment)

    def _copy(self, copy, here):
        *sources, target = copy.words()
        target = self.root / os.path.join(here, target).lstrip("/")
        into_folder = copy.words()[-1].endswith("/") or copy.words()[-1] == "." or len(sources) > 1
        for source in sources:
            if "from" in copy.flags:
                run(["cp", "-a", "--no-preserve=ownership", f"{self._roots[copy.flags['from']]}{source}/.", target])
                continue
            check(self._copy_file(copy, source.rstrip("/"), target, into_folder),
                  f"line {copy.line}: {source} is nowhere")

    def _copy_file(self, copy, source, target, into_folder):
        """The file of that name, or what is in the folder. Whether there was anything."""
        found = False
        for name in dockerfile.context_files(self.tree, self.ignored):
            if str(name) == source:
                place = target / name.name if into_folder else target
            elif source == "." or name.is_relative_to(source):
                place = target / name.relative_to(source)
            else:
                continue
            found = True
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.tree / name, place, follow_symlinks=False)
            os.chown(place, 0, 0, follow_symlinks=False)
            if "chmod" in copy.flags:
                place.chmod(int(copy.flags["chmod"], 8))
        return found


class Container:
    """One service, from its start to its end."""

    def __init__(self, image, service, volumes, hosts, namespace=None):
        """`volumes`: the folder of all volumes. `hosts`: a file. `namespace`: a descriptor; None: of its own, empty."""
        self.name = service.name
        self._image = image
        self._user = image.stages[-1].last("USER").text.split(":")
        entry = service.keys.get("entrypoint") or image.stages[-1].last("ENTRYPOINT").exec_form()
        mounts = [f"mount --bind {hosts} $1/etc/hosts"]
        for volume, where, read_only in service.mounts:
            self._make_volume(volumes / volume, where)
            mounts.append(f"mount --bind{' -o ro' if read_only else ''} {volumes / volume} $1{where}")
        check(service.keys["read_only"], f"{self.name} is not read-only")
        script = " && ".join(["mount --bind $1 $1", "mount -t proc proc $1/proc", *mounts,
                              "mount -o remount,bind,ro $1", 'root=$1 && shift && exec chroot $root "$@"'])
        network = [f"--net=/proc/{os.getpid()}/fd/{namespace}"] if namespace else []
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [*(["nsenter", *network] if network else ["unshare", "--net"]), *APART, "sh", "-ec", script, "sh",
             str(image.root), "setpriv", "--reuid", self._user[0], "--regid", self._user[1], "--clear-groups",
             "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--", *entry, *service.command],
            env={"PATH": PATH}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(volumes.parent / f"{self.name}.log", "ab"))  # pylint: disable=consider-using-with

    def _make_volume(self, folder, where):
        """An empty one begins with what the image has there, and with its owner and mode."""
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            run(["cp", "-a", f"{self._image.root}{where}", folder])

    @property
    def first(self):
        """The number, in this test's own namespace, of the container's first process."""
        def child():
            path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
            return pathlib.Path(path).read_text(encoding="ascii").split()
        return int(wait_for(f"the first process of {self.name}", 10, child)[0])

    def health(self):
        """Whether the image's HEALTHCHECK finds it well."""
        probe = self._image.stages[-1].last("HEALTHCHECK").exec_form()
        inside = ["nsenter", "--target", str(self.first), "--mount", "--net", "--pid", "--root", "--wd",
                  "--setuid", self._user[0], "--setgid", self._user[1], "--"]
        return subprocess.run([*inside, *probe], env={"PATH": PATH}, stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30).returncode == 0

    def wait(self):
        return self.process.wait(END_SECONDS_MAX)

    def stop(self):
        """As docker stop does. The exit status, and the seconds that it took."""
        started = time.monotonic()
        os.kill(self.first, signal.SIGTERM)
        return self.wait(), time.monotonic() - started

    def kill(self):
        os.kill(self.first, signal.SIGKILL)
        self.wait()
