"""How the tests get clients of other projects that Debian has no package of."""

import os
import shutil
import subprocess

from cluster import Skipped

HERE = os.path.dirname(os.path.abspath(__file__))
IOREDIS = "ioredis@5.11.1"
NPM_SECONDS = 60
GO_SECONDS = 90
# The newest that Go 1.18 builds.
GO_MODULE = """module go_redis

go 1.18

require github.com/redis/go-redis/v9 v9.7.0
"""


def npm_modules(folder, *packages):
    """Fetches packages. Returns the folder of modules that has them."""
    if shutil.which("npm") is None:
        raise Skipped(f"{packages[0]}: Debian has no package of it, and npm, which would fetch it, is not here")
    fetched = subprocess.run(["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit",
                              "--no-fund", *packages], capture_output=True, text=True, check=False,
                             timeout=NPM_SECONDS)
    if fetched.returncode != 0:
        raise Skipped(f"{packages[0]}: npm could not fetch it: {fetched.stderr.strip()[-300:]}")
    return f"{folder}/node_modules"


def ioredis_modules(given, folder):
    """The folder of modules that has ioredis: `given`, Debian's, or one in `folder`."""
    if given:
        return os.path.abspath(given)
    modules = "/usr/share/nodejs"
    return modules if os.path.isdir(f"{modules}/ioredis") else npm_modules(folder, IOREDIS)


def go_program(given, name, folder):
    """The program of clients/NAME.go, which uses go-redis: `given`, or one that Go builds in `folder`."""
    if given:
        return given
    if shutil.which("go") is None:
        raise Skipped(f"go-redis: Go is not here, and no flag names the program of clients/{name}.go")
    source = os.path.join(folder, name)
    os.mkdir(source)
    shutil.copy(f"{HERE}/clients/{name}.go", source)
    with open(os.path.join(source, "go.mod"), "w", encoding="utf-8") as module:
        module.write(GO_MODULE)
    made = subprocess.run(["go", "build", "-mod=mod", "-o", "client", "."], cwd=source, capture_output=True, text=True,
                          timeout=GO_SECONDS, check=False)
    if made.returncode != 0:
        raise Skipped(f"go-redis: Go could not build it: {made.stderr.strip()[-300:]}")
    return os.path.join(source, "client")
