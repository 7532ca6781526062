#!/usr/bin/env python3
"""The museum and the challenge of the lab's page, in a real browser. Skipped where chromium is not installed, or the
page is not built.

  page_museum.py PAGE LEASEHOLD_LAB [--browser PROGRAM]
"""

import argparse

from browser import Browser, program_for
from page import Page, check

FOUND = "lab.session.history.findings.filter((one) => one.at <= lab.now).map((one) => one.oracle)"
TWIN = "lab.twin.history.findings.length"


def wait_for_piece(page, name):
    page.browser.wait_for(f"leaseLab.piece && leaseLab.piece.mutant === '{name}' && leaseLab.twin.history && "
                          "leaseLab.twin.reach >= leaseLab.now && !leaseLab.drawing")


def choose(page, name):
    page.browser.evaluate(f"{{const pick = document.getElementById('museum-pick'); pick.value = '{name}'; "
                          "pick.dispatchEvent(new Event('change'))}")
    wait_for_piece(page, name)


def hurts_only_without_the_rule(page):
    page.open()
    page.press("#museum")
    names = page.get("LeaseLab.museum.map((piece) => piece.mutant)")
    wait_for_piece(page, names[0])
    for place, name in enumerate(names):
        if place > 0:
            page.press("#museum-next")
            wait_for_piece(page, name)
        check(page.get("lab.piece.oracle") in page.get(FOUND), f"{name}: {page.get(FOUND)}")
        check(page.get(TWIN) == 0, f"{name}: the core with the rule is hurt")
        check(name in page.words("#broken") and page.get("!document.getElementById('broken').hidden"), "no banner")
        check("no judge speaks" in page.words("#twin-words"), page.words("#twin-words"))
        check("Without the rule: " in page.words("#news") and page.get("lab.piece.title") in page.words("#news"),
              page.words("#news"))
        check(not page.get("document.getElementById('alarm').hidden"), f"{name}: no alarm")
    print(f"{len(names)} pieces")


def plays_to_where_it_hurts(page):
    page.open()
    page.press("#museum")
    name = page.get("LeaseLab.museum[0].mutant")
    wait_for_piece(page, name)
    page.browser.evaluate("document.getElementById('speed').value = '4'")
    page.press("#museum-play")
    check(page.get("lab.playing") and page.get("lab.now < lab.piece.until"), "it does not play")
    page.browser.wait_for("!leaseLab.playing")
    check(page.get("lab.now >= lab.piece.until && lab.now < lab.piece.until + 1000"), page.get("lab.now"))
    check(page.get("lab.piece.oracle") in page.get(FOUND), "it does not end where it hurts")


def links_name_the_piece(page):
    page.open()
    page.press("#museum")
    name = page.get("LeaseLab.museum[0].mutant")
    wait_for_piece(page, name)
    address = page.get("location.hash.slice(1)")
    check(f"&piece={name}&" in address, address)
    digest = page.get("lab.session.hash()")
    page.browser.call("Page.navigate", url="about:blank")
    page.browser.call("Page.navigate", url=f"{page.address}#{address}")
    page.browser.wait_for("Boolean(window.leaseLab && leaseLab.piece)")
    wait_for_piece(page, name)
    check(page.get("lab.session.hash()") == digest, "its own link replays to another hash")
    page.browser.evaluate("location.hash = '#seed=7&t=1500'")
    page.browser.wait_for("!leaseLab.piece")
    check(page.get("['broken', 'twin'].every((id) => document.getElementById(id).hidden)"), "still broken")
    check(page.get("lab.session.hash()") == page.native_hash("seed=7", 1500), "the core is not the whole one again")
    page.open("seed=7&piece=nothing&t=1500")
    check("no piece that is called nothing" in page.words("#words"), page.words("#words"))
    check(page.get("lab.piece === null"), "a piece that does not exist")


def the_tour_is_whole(page):
    page.open()
    page.press("#museum")
    wait_for_piece(page, page.get("LeaseLab.museum[0].mutant"))
    page.press("#tour")
    check(page.get("lab.piece === null && document.getElementById('museum-card').hidden"), "the tour has a broken core")
    check(not page.get(FOUND), page.get(FOUND))


def challenges(page):
    page.open()
    page.press("#museum")
    wait_for_piece(page, page.get("LeaseLab.museum[0].mutant"))
    choose(page, "no_promise")
    steps = page.get("lab.session.steps")
    until = page.get("lab.piece.until")
    page.press("#museum-challenge")
    check(page.get("lab.session.steps.length") == 0 and not page.get(FOUND), "it begins with steps")
    page.browser.wait_for("document.getElementById('challenge-count').textContent")
    begin = f"0 steps used; the fewest known: {len(steps)}."
    check(begin == page.words("#challenge-count"), page.words("#challenge-count"))
    check(page.get("document.getElementById('museum-facts').hidden"), "the solution stands there")
    page.browser.evaluate("leaseLab.act('write.1')")
    for step in steps:
        at, _, words = step.partition(".")
        page.browser.evaluate(f"leaseLab.moveTo({at}); leaseLab.act('{words}')")
    page.browser.evaluate(f"leaseLab.moveTo({until})")
    wanted = f"Found in {len(steps) + 1} steps. It can be done in {len(steps)}."
    page.browser.wait_for(f"document.getElementById('challenge-count').textContent === '{wanted}'")
    check(page.words("#news") == wanted, page.words("#news"))
    # Clocks that are worse than rho hurt every core.
    page.press("#museum-challenge")
    for words in ("drift.1.900000", "drift.2.900000", "drift.3.-900000", "alone.3"):
        page.browser.evaluate(f"leaseLab.act('{words}')")
    for words in ("write.1", "write.2"):
        page.browser.evaluate(f"leaseLab.moveTo(3500); leaseLab.act('{words}')")
    page.browser.evaluate("leaseLab.moveTo(4500)")
    page.browser.wait_for("/does not count/.test(document.getElementById('challenge-count').textContent)")
    page.press("#challenge-show")
    page.browser.wait_for("!leaseLab.challenged && document.getElementById('challenge').hidden")
    check(page.get("lab.session.steps") == steps, "that is not the schedule of the piece")


def on_a_phone(page):
    page.browser.size(390, 800, phone=True)
    page.open()
    page.press("#museum")
    wait_for_piece(page, page.get("LeaseLab.museum[0].mutant"))
    wide = page.get("document.documentElement.scrollWidth")
    check(wide <= 390, f"the page is {wide} wide")
    page.browser.size(1400, 1000)


def by_name(page):
    page.open()
    page.press("#museum")
    wait_for_piece(page, page.get("LeaseLab.museum[0].mutant"))
    unnamed = page.get("[...document.querySelectorAll('button, input, select, canvas, output')].filter((one) => "
                       "!(one.textContent.trim() || one.getAttribute('aria-label') || one.labels && one.labels.length))"
                       ".map((one) => one.outerHTML.slice(0, 80))")
    check(not unnamed, f"without a name: {unnamed}")
    page.press("#museum-end")
    check(page.get("lab.piece === null && document.activeElement.id") == "museum", "the focus is lost")
    check(not page.browser.said, f"the page says: {page.browser.said}")


def outlives_a_core_that_stops(page):
    page.open()
    page.press("#museum")
    wait_for_piece(page, page.get("LeaseLab.museum[0].mutant"))
    # As an assertion of the core does.
    page.browser.evaluate("leaseLab.session.calls.add = () => { throw new WebAssembly.RuntimeError('unreachable'); }")
    page.press('[data-verb="write"]')
    check("one of its own checks" in page.words("#words"), page.words("#words"))
    check(page.get("lab.piece === null"), "the core that has stopped is still there")
    page.press('[data-verb="write"]')
    check(page.get("lab.session.steps.length") == 1, "the core with all rules does not run")


SCENES = [hurts_only_without_the_rule, plays_to_where_it_hurts, links_name_the_piece, the_tour_is_whole, challenges,
          outlives_a_core_that_stops, on_a_phone, by_name]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page")
    parser.add_argument("native")
    parser.add_argument("--browser", help="the program, if it is not chromium on the path")
    options = parser.parse_args()
    browser = Browser(program_for(options))
    try:
        browser.size(1400, 1000)
        page = Page(browser, options.page, options.native)
        for scene in SCENES:
            scene(page)
            print(f"ok: {scene.__name__}", flush=True)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
