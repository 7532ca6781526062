"""The scene of page.py in which a leader stops, with and without what closes the gap."""

import os
import re

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "docs", "lab.md")


def told():
    """{(transfers, warm): ms}, of docs/lab.md."""
    with open(DOCS, encoding="utf-8") as file:
        text = file.read()
    rows = [re.search(rf"^\| {name} \| (\d+) ms \| (\d+) ms \|$", text, re.M).groups()
            for name in ("it stops", "it transfers its leadership, and stops")]
    return {(row, column): int(rows[row][column]) for row in (0, 1) for column in (0, 1)}


def closes_the_gap(page, check):
    page.open("seed=7&nodes=3&t=1500")
    before = page.get("lab.session.hash()")
    page.press("#gap-run")
    page.browser.wait_for("document.getElementById('gap-words').textContent")
    for (transfers, warm), wanted in told().items():
        for name, on in (("transfer", transfers), ("warm", warm)):
            if page.get(f"document.getElementById('cure-{name}').checked") != bool(on):
                page.press(f"#cure-{name}")
        wanted = f"{told()[0, 0]} ms without the first and the third cure, {wanted} ms with what you chose"
        page.browser.wait_for(f"document.getElementById('gap-words').textContent.includes('{wanted}')")
    check("unavailable lease" in page.words("#gap-half"), page.words("#gap-half"))
    check(page.get("lab.session.hash()") == before, "the visit itself has changed")
    # The cured visit by its link: in the page it is the same run as natively, and the leader is another one.
    address = page.get("document.querySelector('#gap-words a:last-of-type').getAttribute('href')")
    link, _, until = address[1:].rpartition("&t=")
    page.browser.evaluate("document.querySelector('#gap-words a:last-of-type').click()")
    page.browser.wait_for(f"leaseLab.now === {until} && leaseLab.session.steps.length === 2")
    check(page.get("lab.session.hash()") == page.native_hash(link, until), link)
    # Numbers with which nobody leads at the stop.
    page.open("seed=7&nodes=3&election=3000&t=0")
    page.press("#gap-run")
    page.browser.wait_for("document.getElementById('gap-words').textContent")
    check("nobody leads at 3000 ms" in page.words("#gap-words"), page.words("#gap-words"))
