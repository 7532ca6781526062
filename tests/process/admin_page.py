#!/usr/bin/env python3
"""The page of the admin port in a real browser (Debian: chromium, headless): it asks all three nodes, shows the lease
and the promises, follows a death of the leader, and breaks none of its own rules. Skipped where chromium is not
installed."""

import html.parser
import os
import re
import shutil
import subprocess

from cluster import Cluster, Skipped, check, main, wait_for
from ports import free_port

# Of the page's own clock, which stands still while it waits for an answer.
PAGE_MS = 4000


def arguments(parser):
    parser.add_argument("--browser", help="the program, if it is not chromium on the path")
    parser.add_argument("--screenshots", metavar="FOLDER", help="keep pictures of the page there")


class Page(html.parser.HTMLParser):
    """What a browser has made of the page: its title, the text of elements by their id, cells and bars."""

    def __init__(self, document):
        super().__init__()
        self.text, self.cells, self.bars = {}, {}, []
        self._ids, self._cell, self.title, self._in_title = [], None, "", False
        self._table = None
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if attributes.get("id"):
            self._ids.append((tag, attributes["id"]))
            self.text.setdefault(attributes["id"], "")
        if tag == "table":
            self._table = attributes.get("id")
            self.cells[self._table] = []
        if tag == "tr":
            self.cells[self._table].append([])
        if tag in ("td", "th"):
            self.cells[self._table][-1].append("")
            self._cell = self.cells[self._table][-1]
        if tag == "rect":
            self.bars.append(attributes["class"].split()[0])
        self._in_title = self._in_title or tag == "title"

    def handle_endtag(self, tag):
        if self._ids and self._ids[-1][0] == tag:
            self._ids.pop()
        if tag in ("td", "th"):
            self._cell = None
        if tag == "title":
            self._in_title = False

    def handle_data(self, data):
        if self._in_title:
            self.title += data
        for _, name in self._ids:
            self.text[name] += data
        if self._cell is not None:
            self._cell[-1] += data


class Browser:
    def __init__(self, program, folder, screenshots):
        self.program, self.folder, self.screenshots = program, folder, screenshots
        self.shots = 0

    def _run(self, *flags, url):
        done = subprocess.run(
            [self.program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars",
             f"--user-data-dir={os.path.join(self.folder, 'browser')}", "--enable-logging=stderr",
             f"--virtual-time-budget={PAGE_MS}", *flags, url],
            capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
        check(done.returncode == 0, f"the browser ended with {done.returncode}: {done.stderr[-500:]}")
        # What the page says to the console: its rules that it breaks, and errors of its script.
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return done.stdout, said

    def look(self, url):
        document, said = self._run("--dump-dom", "--window-size=1200,900", url=url)
        if self.screenshots:
            os.makedirs(self.screenshots, exist_ok=True)
            self.shots += 1
            for name, flags in (("wide", ["--window-size=1200,1000"]), ("phone", ["--window-size=500,1000"]),
                                ("dark", ["--window-size=1200,1000", "--blink-settings=preferredColorScheme=0"])):
                path = os.path.abspath(os.path.join(self.screenshots, f"{self.shots}-{name}.png"))
                self._run(f"--screenshot={path}", *flags, url=url)
        return Page(document), said


def run(options):
    program = options.browser or shutil.which("chromium")
    if program is None:
        raise Skipped("chromium is not installed (Debian: chromium)")
    with Cluster(options.binary, keep=options.keep) as cluster:
        ports = {node.id: free_port() for node in cluster.nodes}
        addresses = ",".join(f"{node}=127.0.0.1:{port}" for node, port in ports.items())
        for node in cluster.nodes:
            node.flags += ["--admin", f"127.0.0.1:{ports[node.id]}", "--admin-addresses", addresses]
        leader = cluster.start()
        browser = Browser(program, cluster.folder, options.screenshots)

        follower = cluster.others(leader)[0]
        page, said = browser.look(f"http://127.0.0.1:{ports[follower.id]}/")
        check(not said, f"the page says: {said}")
        check(page.title == f"node {follower.id}: follower", page.title)
        check(page.text["ready"] == "ready", page.text["ready"])
        check(f"node {leader.id} leads" in page.text["about"], page.text["about"])
        check(page.text["missing"] == "", page.text["missing"])
        rows = page.cells["members"][1:]
        roles = {int(row[0]): row[1] for row in rows}
        check(roles == {node.id: "leader" if node is leader else "follower" for node in cluster.nodes}, roles)
        for row in rows:
            leads = int(row[0]) == leader.id
            check(bool(re.fullmatch(r"[\d.]+ ms", row[5])) == leads, f"lease: {row}")
            check(row[6].endswith(f" ms to {leader.id}") != leads, f"promise: {row}")
            check(row[4].isdigit(), f"behind: {row}")
        check(page.bars.count("lease") >= 1 and page.bars.count("promise") >= 2, f"bars: {page.bars}")
        check(any(f"node {leader.id} leads" in row for row in page.cells["events"]), page.cells["events"])

        leader.kill()
        following = cluster.wait_leader(among=cluster.others(leader))
        wait_for("the page to show the next leader", 30, lambda: browser.look(
            f"http://127.0.0.1:{ports[follower.id]}/")[0].text["about"].endswith(f"node {following.id} leads"))
        page, _ = browser.look(f"http://127.0.0.1:{ports[follower.id]}/")
        gone = next(row for row in page.cells["members"][1:] if int(row[0]) == leader.id)
        check(gone[1] == "does not answer", gone)
        # Another name for this machine is not on the list: its page may not read the others.
        page, _ = browser.look(f"http://localhost:{ports[follower.id]}/")
        others = [row for row in page.cells["members"][1:] if int(row[0]) != follower.id]
        check(all(row[1] == "does not answer" for row in others), f"read from a page that is not on the list: {others}")


if __name__ == "__main__":
    main(__doc__, run, arguments)
