#!/usr/bin/env python3
"""Makes a site of the pages in docs/ and beside the rooms, for a browser without a network: docs/site.py OUT

Each page is Markdown, which cmark-gfm (Debian) makes HTML of. A link to a page, a heading or a file that is not there
is an error. With OUT/html of `make docs` beside it, the site has the pages of the headers, too."""

import argparse
import html
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
# What a reader looks for, in this order: (title, pages).
SECTIONS = (
    ("Start", ("README.md", "docs/coordination.md", "docs/comparison.md", "docs/questions.md")),
    ("Link it", ("docs/embedding.md", "docs/sqlite.md", "docs/api.md", "docs/versions.md")),
    ("Run it", ("docs/install.md", "docs/operations.md", "docs/doctor.md", "docs/security.md", "docs/metrics.md",
                "docs/spans.md", "docs/fleet.md")),
    ("Use it", ("docs/resp.md", "docs/leases.md", "docs/watch.md")),
    ("Understand it", ("docs/study.md", "docs/lab.md", "lease/README.md", "docs/hazards.md", "docs/architecture.md",
                       "docs/wire.md")),
    ("Believe it", ("docs/testing.md", "docs/simulation.md", "tests/process/README.md",
                    "docs/performance.md", "bench/README.md")),
    ("Formats", tuple(f"docs/formats/{name}.md" for name in
                      ("log", "kv", "snapshot", "backup", "sessions", "history", "trace", "cluster-trace"))),
)
# Pages that others link to, without a place in the list.
FURTHER = ("docs/scenarios/README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
STYLE = """
:root { color-scheme: light dark; --line: #d5d9de; --soft: #f3f5f7; --link: #1a56b0; --text: #1c2430; --back: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --line: #333b45; --soft: #1a2028; --link: #7fb2ff; --text: #dfe5ec; --back: #11161c; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--back); display: flex; }
nav { width: 15.5rem; flex: none; padding: 1.2rem 1rem; border-right: 1px solid var(--line); height: 100vh;
  position: sticky; top: 0; overflow-y: auto; font-size: .92rem; }
nav h2 { font-size: .78rem; text-transform: uppercase; letter-spacing: .05em; margin: 1.1rem 0 .3rem; opacity: .75; }
nav a { display: block; padding: .12rem .4rem; border-radius: 4px; color: inherit; text-decoration: none; }
nav a:hover, nav a[aria-current] { background: var(--soft); }
nav a[aria-current] { font-weight: 600; }
main { min-width: 0; max-width: 58rem; padding: 1.2rem 2rem 4rem; }
a { color: var(--link); }
h1 { line-height: 1.2; }
h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
pre, code { font: .9em/1.45 ui-monospace, monospace; background: var(--soft); border-radius: 4px; }
code { padding: .1em .25em; overflow-wrap: anywhere; }
pre { padding: .8rem 1rem; overflow-x: auto; }
pre code { padding: 0; background: none; overflow-wrap: normal; }
table { border-collapse: collapse; display: block; overflow-x: auto; max-width: 100%; font-size: .94rem; }
th, td { border: 1px solid var(--line); padding: .35rem .55rem; text-align: left; vertical-align: top; }
th { background: var(--soft); }
img { max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
@media (max-width: 50rem) {
  body { display: block; }
  nav { width: auto; height: auto; position: static; columns: 2; border: 0; border-bottom: 1px solid var(--line); }
  nav section { break-inside: avoid; }
  main { padding: 1rem; } }
"""


def place_of(page):
    """Where the page stands in the site."""
    if page == "README.md":
        return "index.html"
    return re.sub(r"(README)?\.md$", "", page).strip("/").replace("/", "-") + ".html"


def title_of(page):
    first = (SOURCE / page).read_text(encoding="utf-8").split("\n", 1)[0]
    return first.lstrip("# ").strip()


def slug_of(heading):
    """As GitHub names a heading, which the links in the pages follow."""
    text = html.unescape(re.sub(r"<[^>]+>", "", heading)).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


class Page:
    def __init__(self, path):
        self.path = path
        text = (SOURCE / path).read_text(encoding="utf-8")
        command = ["cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink"]
        self.body = subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout
        self.anchors = set()
        self.body = re.sub(r"<h([1-6])>(.*?)</h\1>", self.named, self.body, flags=re.S)

    def named(self, heading):
        slug = slug_of(heading[2])
        number = 0
        while (name := slug if number == 0 else f"{slug}-{number}") in self.anchors:
            number += 1
        self.anchors.add(name)
        return f'<h{heading[1]} id="{name}">{heading[2]}</h{heading[1]}>'


class Site:
    def __init__(self, out, listed):
        self.out = out
        self.listed = listed
        decisions = sorted(f"docs/decisions/{file.name}" for file in (SOURCE / "docs/decisions").glob("*.md"))
        listed_pages = [page for _, pages in SECTIONS for page in pages]
        self.pages = {page: Page(page) for page in (*listed_pages, *FURTHER, *decisions)}
        self.faults = []

    def target(self, page, link):
        """What a link of the page is in the site."""
        if re.match(r"[a-z]+:", link):
            return link
        path, _, anchor = link.partition("#")
        named = page.path
        if path:
            named = str((SOURCE / page.path).parent.joinpath(path).resolve().relative_to(SOURCE))
        if named in self.pages:
            if anchor and anchor not in self.pages[named].anchors:
                self.faults.append(f"{page.path}: {link}: no such heading")
            return (place_of(named) if path else "") + (f"#{anchor}" if anchor else "")
        source = SOURCE / named
        if not source.exists():
            self.faults.append(f"{page.path}: {link}: no such file")
            return link
        if named.endswith(".md"):
            self.faults.append(f"{page.path}: {link}: no page of the site: give it a place in SECTIONS")
        if source.is_dir():
            return None  # a folder of the source: no page shows it
        file = self.out / "files" / named
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, file)
        return f"files/{named}"

    def write(self, page):
        def link(found):
            target = self.target(page, html.unescape(found[2]))
            return "<a" if target is None else f'<{found[1]}="{html.escape(target)}"'

        body = re.sub(r'<((?:a|img)\b[^>]*?\b(?:href|src))="([^"]*)"', link, page.body)
        lines = []
        for title, pages in SECTIONS:
            lines.append(f"<section><h2>{title}</h2>")
            for one in pages:
                here = ' aria-current="page"' if one == page.path else ""
                lines.append(f'<a href="{place_of(one)}"{here}>{html.escape(title_of(one))}</a>')
            if title == "Link it" and self.listed:
                lines.append('<a href="api/index.html">The headers</a>')
            lines.append("</section>")
        title = html.escape(title_of(page.path))
        (self.out / place_of(page.path)).write_text(
            '<!doctype html>\n<html lang="en"><meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<title>{title} - Leasehold</title>\n<link rel="stylesheet" href="style.css">\n'
            f'<nav aria-label="Pages">{"".join(lines)}</nav>\n<main>\n{body}</main></html>\n', encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, metavar="OUT", help="the folder OUT/site is made, or replaced")
    options = parser.parse_args()
    out = options.out / "site"
    if shutil.which("cmark-gfm") is None:
        sys.exit("site.py: cmark-gfm is not installed: apt-get install cmark-gfm")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    headers = options.out / "html"
    site = Site(out, headers.is_dir())
    for page in site.pages.values():
        site.write(page)
    (out / "style.css").write_text(STYLE, encoding="utf-8")
    if site.listed:
        shutil.copytree(headers, out / "api")
    for fault in site.faults:
        print(fault)
    print(f"{len(site.pages)} pages, {len(site.faults)} faults: {out}/index.html")
    return 1 if site.faults else 0


if __name__ == "__main__":
    sys.exit(main())
