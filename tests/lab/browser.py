"""Drives chromium by its own protocol, over two pipes: no port, no network, nothing to install."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77


class BrowserError(Exception):
    pass


class Browser:
    """One tab. Everything waits for its answer, at most `patience` seconds."""

    def __init__(self, program, patience=60):
        self.folder = tempfile.mkdtemp(prefix="lease-lab-")
        self.patience = patience
        self.said, self._number, self._buffer, self._session = [], 0, b"", None
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # The protocol's descriptors are 3 and 4.
        command = ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", program]
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--hide-scrollbars", f"--user-data-dir={self.folder}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command + flags, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        os.set_blocking(self._from, False)
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            if time.monotonic() > deadline:
                raise BrowserError("the browser does not answer")
            try:
                part = os.read(self._from, 1 << 20)
                if not part:
                    raise BrowserError("the browser has ended")
                self._buffer += part
            except BlockingIOError:
                time.sleep(0.005)
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.patience
        while True:
            answer = self._receive(deadline)
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.said.append(json.dumps(answer["params"])[:600])
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {json.dumps(result['exceptionDetails'])[:600]}")
        return result["result"].get("value")

    def wait_for(self, expression):
        deadline = time.monotonic() + self.patience
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"waited in vain for {expression}")
            time.sleep(0.02)

    def key(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **extra)

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def picture(self, path):
        shot = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self.folder, ignore_errors=True)


def program_for(options):
    """The browser of `options.browser`, or the one on the path. Ends the test as skipped without one, or without
    `options.page`."""
    program = options.browser or shutil.which("chromium")
    if program is not None and os.path.exists(options.page):
        return program
    print("skipped: " + ("chromium is not installed (Debian: chromium)" if program is None else
                         "the page is not built: emscripten is not installed"))
    sys.exit(SKIPPED)
