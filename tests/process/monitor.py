"""A real Prometheus that watches the nodes of a test with the alert rules of docs/alerts.yml, of which only the times
are cut: a test takes seconds."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from cluster import Skipped, _die_with_parent, check, free_port, wait_for

FOR = "2s"
# Elections need a while even where they come one after the other.
WINDOWS = {"5m": "8s", "15m": "60s", "1h": "20s"}
TIME = re.compile(r"(?<=^        for: )\w+$|(?<=\[)\w+(?=\])", re.MULTILINE)
SCRAPE_SECONDS = 1
READY_SECONDS = 60


def installed(name):
    """The path of a program of Debian's package."""
    found = shutil.which(name)
    if found is None:
        raise Skipped(f"{name} is not installed (Debian: prometheus)")
    return found


def lint(words, text=None):
    """promtool with these words, and the text as its input."""
    done = subprocess.run([installed("promtool"), *words], input=text, text=True, capture_output=True, check=False,
                          timeout=60)
    check(done.returncode == 0, f"promtool {' '.join(words)}: {done.stdout}{done.stderr}")


def quickened(rules):
    """The same rules with shorter times."""
    def shorter(time_found):
        return WINDOWS[time_found[0]] if rules[time_found.start() - 1] == "[" else FOR
    return TIME.sub(shorter, rules)


def only_times_differ(rules, copy):
    """Line by line. This knows nothing of TIME."""
    masked = [[re.sub(r"^( +for: )\d+[smh]$|\[\d+[smh]\]", r"\1T", line) for line in text.splitlines()]
              for text in (rules, copy)]
    return masked[0] == masked[1]


def names(rules):
    return re.findall(r"^      - alert: (\w+)$", rules, re.MULTILINE)


class Prometheus:
    """Context manager. `targets`: the admin ports, as host and port."""

    def __init__(self, folder, rules, targets):
        self.folder = os.path.join(folder, "prometheus")
        os.makedirs(self.folder)
        self.targets = targets
        self.port = free_port()
        self.process = None
        with open(self._path("alerts.yml"), "w", encoding="utf-8") as file:
            file.write(rules)
        lint(["check", "rules", self._path("alerts.yml")])
        self._configure(SCRAPE_SECONDS)

    def __enter__(self):
        with open(self._path("log"), "wb") as log:
            self.process = subprocess.Popen(
                [installed("prometheus"), f"--config.file={self._path('config.json')}",
                 f"--storage.tsdb.path={self._path('data')}", f"--web.listen-address=127.0.0.1:{self.port}",
                 "--log.level=warn"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent)
        try:
            wait_for("Prometheus", READY_SECONDS, self._ready, pause=0.1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _configure(self, seconds):
        # JSON is YAML.
        with open(self._path("config.json"), "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": f"{seconds}s", "scrape_timeout": f"{seconds}s",
                                  "evaluation_interval": "1s"},
                       "rule_files": ["alerts.yml"],
                       "scrape_configs": [{"job_name": "leasehold", "static_configs": [{"targets": self.targets}]}]},
                      file)

    def _ready(self):
        if self.process.poll() is not None:
            with open(self._path("log"), encoding="utf-8", errors="replace") as log:
                check(False, f"Prometheus ended: {log.read()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def ask(self, what, **words):
        """The data of an answer of its API."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            check(False, f"Prometheus refuses {what} {words}: {error.read()}")

    def query(self, expression):
        """Pairs of labels and value."""
        return [(one["metric"], float(one["value"][1])) for one in self.ask("query", query=expression)["result"]]

    def alerts(self, state="firing"):
        """The labels of each."""
        return [alert["labels"] for alert in self.ask("alerts")["alerts"] if alert["state"] == state]

    def fired(self, seconds):
        """The names of those that fired at any moment of this time."""
        found = self.query(f'count_over_time(ALERTS{{alertstate="firing"}}[{max(1, round(seconds))}s])')
        return {labels["alertname"] for labels, _ in found}

    def all_up(self):
        return {labels["instance"] for labels, value in self.query("up") if value == 1} == set(self.targets)

    @contextlib.contextmanager
    def scraped_every(self, seconds):
        self._reload(seconds)
        yield
        self._reload(SCRAPE_SECONDS)

    def _reload(self, seconds):
        self._configure(seconds)
        self.process.send_signal(signal.SIGHUP)
        # It takes the new configuration at once, and hands it to those that scrape a moment later.
        wait_for("Prometheus to scrape at another pace", 30, lambda: [
            target["scrapeTimeout"] for target in self.ask("targets")["activeTargets"]] ==
            [f"{seconds}s"] * len(self.targets), pause=0.1)


def watch(prometheus, seconds, probe, judge):
    """Until probe() of the alerts that fire is true; `judge` sees each of these looks, too."""
    deadline = time.monotonic() + seconds
    while True:
        firing = prometheus.alerts()
        judge(firing)
        if probe(firing):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
