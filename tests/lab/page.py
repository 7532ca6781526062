#!/usr/bin/env python3
"""The page of the lab in a real browser (Debian: chromium, headless), by hand and by keyboard. Skipped where chromium
is not installed, or the page is not built.

  page.py PAGE LEASEHOLD_LAB [--browser PROGRAM] [--only SCENE]
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.parse

import page_gap
import page_groups
import page_hands
import page_members
from browser import Browser, program_for

BYTES_MAX = 3_000_000
# On a machine that does other things beside; the figures that a quiet one shows are in docs/lab.md.
FRAME_MS_MAX = 100


def check(holds, what):
    if not holds:
        raise AssertionError(what)


class Page:
    def __init__(self, browser, path, native):
        self.browser, self.path, self.native = browser, path, native
        self.address = "file://" + urllib.parse.quote(os.path.abspath(path))

    def open(self, link=""):
        # The same page with another # would not be loaded.
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.call("Page.navigate", url=f"{self.address}#{link}")
        self.browser.wait_for("Boolean(window.leaseLab && document.getElementById('gutter').children.length)")

    def get(self, expression):
        return self.browser.evaluate(f"(() => {{ const lab = leaseLab; return {expression}; }})()")

    def press(self, selector):
        check(self.get(f"Boolean(document.querySelector('{selector}')) && "
                       f"!document.querySelector('{selector}').disabled"), f"{selector} cannot be pressed")
        self.browser.evaluate(f"document.querySelector('{selector}').click()")

    def leader(self):
        return self.get("(lab.session.history.leaderAt(lab.now) || {id: 0}).id")

    def lease(self):
        """Who shows a lease now, and how long it lasts, in ms."""
        return self.get("lab.session.history.nodes.map((node) => "
                        "[node.id, lab.session.history.windowAt(node.leases, lab.now)])"
                        ".filter((pair) => pair[1]).map((pair) => [pair[0], pair[1].edge.until - lab.now])")

    def words(self, selector):
        return self.get(f"document.querySelector('{selector}').textContent")

    def native_hash(self, link, milliseconds, program=None):
        done = subprocess.run([program or self.native, "hash", link, str(milliseconds)], capture_output=True, text=True,
                              check=True)
        return done.stdout.strip()


def loads(page):
    begin = time.monotonic()
    page.open()
    taken = time.monotonic() - begin
    check(page.leader() > 0, "nobody leads in the first picture")
    check([pair[0] for pair in page.lease()] == [page.leader()], f"leases: {page.lease()}")
    check("leader" in page.words(f"#gutter > :nth-child({page.leader()})"), page.words("#gutter"))
    print(f"loads: {taken * 1000:.0f} ms to the first picture")


def plays(page):
    before = page.get("lab.now")
    page.press("#play")
    page.browser.wait_for(f"leaseLab.now > {before} + 60 && leaseLab.frames.count > 20")
    page.press("#play")
    now = page.get("lab.now")
    time.sleep(0.1)
    check(page.get("lab.now") == now, "it plays on after stop")
    mean = page.get("lab.frames.total / lab.frames.count")
    print(f"plays: {mean:.1f} ms a frame, {page.get('lab.frames.longest'):.1f} ms the longest")
    check(mean < FRAME_MS_MAX, f"a frame takes {mean} ms")


def leader_dies(page):
    page.open("seed=7&nodes=3&t=2000")
    first = page.leader()
    page.press(f"#gutter > :nth-child({first})")
    page.press('[data-verb="kill"]')
    check("down" in page.words(f"#gutter > :nth-child({first})"), "it is not shown as dead")
    check(page.leader() == 0, "somebody leads")
    page.browser.evaluate("leaseLab.moveTo(leaseLab.now + 2500)")
    second = page.leader()
    check(second not in (0, first), f"node {second} leads after node {first}")
    check([pair[0] for pair in page.lease()] == [second], f"leases: {page.lease()}")
    check(f"node {second} leads term" in page.words("#events"), page.words("#events"))
    # Back in time, everything is as it was; a step there forgets what was ahead.
    page.browser.evaluate("leaseLab.moveTo(1900)")
    check(page.leader() == first, "back in time another node leads")
    page.press('[data-verb="write"]')
    check(len(page.get("lab.session.steps")) == 1, page.get("lab.session.steps"))
    page.browser.evaluate("leaseLab.moveTo(4000)")
    check(page.leader() == first, "it died although that was taken back")


def ties_the_lease(page):
    page.open("seed=7&nodes=3&t=2000")
    tied = page.get("lab.session.history.nodes.map((node) => node.leases.map((one) => "
                    "one.edges.filter((edge) => edge.arrow && edge.arrow.to === node.id && "
                    "edge.arrow.end === edge.at).length)).flat().reduce((a, b) => a + b, 0)")
    check(tied > 8, f"{tied} edges of leases have their acknowledgement")
    check(re.search(r"lease \d+ ms", page.words("#gutter")), page.words("#gutter"))
    check(abs(page.get("lab.session.usable") - 808.181818) < 0.001, "U of the page is not the core's")


def by_keyboard(page):
    page.open("seed=7&nodes=5&t=1500")
    for key in "2", "w":
        page.browser.key(key, key)
    check(page.get("lab.selected") == 2, "2 does not choose node 2")
    page.browser.key("ArrowRight")
    check(page.get("lab.now") > 1500, "an arrow does not step on")
    at = page.get("lab.now")
    page.browser.key("ArrowLeft")
    check(page.get("lab.now") < at, "an arrow does not step back")
    page.browser.key("ArrowRight")
    for key in "c", "k", "r":
        page.browser.key(key, key)
    steps = page.get("lab.session.steps")
    verbs = [step.split(".")[1:3] for step in steps]
    check(verbs == [["write", "2"], ["alone", "2"], ["kill", "2"], ["restart", "2"]], steps)
    page.browser.key("u", "u")
    check(len(page.get("lab.session.steps")) == 3, "U takes nothing back")
    check("Taken back" in page.words("#news"), page.words("#news"))
    page.browser.key(" ", " ")
    check(page.get("lab.playing"), "space does not play")
    page.browser.key(" ", " ")
    check(not page.get("lab.playing"), "space does not stop")
    page.browser.key("Home")
    check(page.get("lab.now") == 0, "Home does not go to the start")
    # Keys that are typed into a field are no commands.
    page.browser.evaluate("document.getElementById('seed').focus()")
    page.browser.key("k", "k")
    check(len(page.get("lab.session.steps")) == 3, "a key in a field is a command")


def changes_members(page):
    page_members.changes_members(page, check)


def handles_messages(page):
    page_hands.handles_messages(page, check)


def breaks_an_inequality(page):
    page_hands.breaks_an_inequality(page, check)


def two_groups(page):
    page_groups.two_groups(page, check)


def closes_the_gap(page):
    page_gap.closes_the_gap(page, check)


def speaks(page):
    page.open("seed=7&nodes=3&t=1500")
    unnamed = page.get("[...document.querySelectorAll('button, input, select, canvas, output')].filter((one) => "
                       "!(one.textContent.trim() || one.getAttribute('aria-label') || one.labels && one.labels.length))"
                       ".map((one) => one.outerHTML.slice(0, 80))")
    check(not unnamed, f"without a name: {unnamed}")
    page.press("#step")
    check(re.search(r"milliseconds\. .*Node \d leads", page.words("#news")), page.words("#news"))


def refuses(page):
    page.open("seed=7&nodes=3&t=1500")
    slide = ("const input = document.getElementById('s-%s'); input.value = %d; "
             "input.dispatchEvent(new Event('input'))")
    before = page.get("lab.session.hash()")
    page.browser.evaluate("{" + slide % ("heartbeat", 500) + "}")
    check("Refused: unavailable lease" in page.words("#refused"), page.words("#refused"))
    check(page.get("document.getElementById('availability').classList.contains('broken')"), "not shown as broken")
    check(page.get("lab.session.settings.heartbeat") == 100, "it was taken")
    check(page.get("lab.session.hash()") == before, "the refused number changed the run")
    page.browser.evaluate("{" + slide % ("heartbeat", 50) + "}")
    check(page.words("#refused") == "" and page.get("lab.session.settings.heartbeat") == 50, page.words("#refused"))
    check(page.get("lab.session.hash()") != before, "another R is the same run")


def links_replay(page):
    link = ("seed=11&nodes=5&lease=2000&heartbeat=150&steps=1200.drift.2.-80000~2000.alone.3~2600.read.3.lease~"
            "3000.reunite.3~3100.transfer.1.2~3500.power.4~3900.restart.4")
    page.open(link + "&t=5000")
    check(page.get("Math.ceil(lab.now)") == 5000, "it does not begin at its instant")
    check(page.get("lab.session.hash()") == page.native_hash(link, 5000), "the hash in the browser is another one")
    page.browser.evaluate("leaseLab.act('kill.2'); leaseLab.moveTo(6000); leaseLab.saveAddress()")
    saved = page.get("location.hash.slice(1)")
    digest = page.get("lab.session.hash()")
    page.open(saved)
    check(page.get("lab.session.hash()") == digest, "its own link replays to another hash")
    without = re.sub(r"&t=\d+$", "", saved)
    check(page.native_hash(without, 6000) == digest, "natively, its own link has another hash")
    page.open("seed=1&nodes=4")
    check("cannot be replayed: nodes is 3, 5 or 7" in page.words("#words"), page.words("#words"))
    page.open("seed=1&steps=%3Cscript%3E")
    check("cannot be replayed" in page.words("#words"), page.words("#words"))


def bears_long_links(page):
    page.open("seed=1&nodes=7&heartbeat=5&rtt=10&reads=5&writes=5&t=600000")
    check("This visit is long" in page.words("#words"), page.words("#words"))
    check(0 < page.get("lab.now") < 600000, page.get("lab.now"))


def breaks_its_bounds(page):
    page.open("seed=7&nodes=3&t=1500")
    leader = page.leader()
    for node in (1, 2, 3):
        page.browser.evaluate(f"leaseLab.act('drift.{node}.{-900000 if node == leader else 900000}')")
    page.browser.evaluate(f"leaseLab.act('alone.{leader}'); leaseLab.moveTo(4000)")
    check("lease" in page.words("#alarm") and not page.get("document.getElementById('alarm').hidden"),
          page.words("#alarm"))
    page.browser.evaluate("leaseLab.moveTo(1500)")
    check(page.get("document.getElementById('alarm').hidden"), "before it happened, it is shown")


# What each stop of the tour says, as it can be seen there.
SEEN = [
    "lab.leaderAt === 1 && lab.stopped(3) && !lab.lease(3) && lab.lease(1)",
    "/candidate/.test(lab.role(3)) && !lab.promise(1) && !lab.promise(2) && !lab.lease(3)",
    "lab.said('votes for node 3') === 2 && !lab.promise(1) && !lab.promise(2) && lab.role(3) === 'candidate'",
    "lab.role(3) === 'leader' && !lab.lease(3) && !lab.promise(1) && !lab.promise(2)",
    "lab.promise(1) && lab.promise(2) && lab.role(3) === 'leader' && !lab.lease(3)",
    "lab.lease(3).edge.arrow && lab.lease(3).edge.began < lab.promise(1).window.at && "
    "lab.lease(3).edge.until < lab.promise(1).edge.until && lab.lease(3).edge.until < lab.promise(2).edge.until",
    "lab.lease(3).window.edges.length > 8",
    "['off_thread', 'quorum', 'leader', 'log'].every((basis) => lab.bases.includes(basis))",
    "lab.leaderAt === 1 && lab.gap > 1000",
    "lab.said('learns that a process of node 3 has ended') === 2 && lab.leaderAt === 1 && lab.gap < 800",
    "!lab.lease(3) && lab.promise(1) && lab.promise(2) && lab.role(3) === 'leader' && !lab.found.length",
    "lab.leaderAt === 1 && lab.lease(1) && lab.gap < 150",
    "lab.found.includes('stale_read') && lab.found.includes('two_leases') && lab.failures.includes('stale')",
    "lab.leaderAt === 2 && lab.found.includes('stale_read') && lab.failures.includes('stale')",
]
SIGHT = """(() => {
  const app = leaseLab, all = app.session.history, now = app.now, node = (id) => all.nodes[id - 1];
  const reads = all.nodes.flatMap((one) => one.operations).filter((one) => one.kind === "read" && one.end <= now);
  const ends = reads.filter((one) => !one.failure).map((one) => one.end).sort((a, b) => a - b);
  const lab = {
    leaderAt: (all.leaderAt(now) || {id: 0}).id, role: (id) => all.roleAt(node(id), now).role,
    lease: (id) => all.windowAt(node(id).leases, now), promise: (id) => all.windowAt(node(id).promises, now),
    stopped: (id) => all.stopAt(node(id), now), bases: reads.map((one) => one.basis),
    said: (text) => all.told.filter((one) => one.at <= now && one.text === text).length,
    gap: Math.max(0, ...ends.slice(1).map((end, place) => end - ends[place])),
    found: all.findings.filter((one) => one.at <= now).map((one) => one.oracle),
    failures: reads.map((one) => one.failure),
  };
  return Boolean(%s);
})()"""


def guides(page):
    page.open("")
    page.press("#tour")
    check(page.get("LeaseLab.tour.length") == len(SEEN), "another number of stops")
    for number, seen in enumerate(SEEN):
        # The last one waits for its core.
        page.browser.wait_for(f"leaseLab.tourStop === {number}")
        title = page.words("#tour-title")
        check(title.startswith(f"{number + 1} of {len(SEEN)}: "), title)
        check(page.words("#tour-text")[:40] in page.words("#news"), "the stop is not said")
        check(page.browser.evaluate(SIGHT % seen), f"{title}: {seen}")
        page.press("#tour-next")
    check(page.get("document.getElementById('tour-card').hidden"), "the tour does not end")


def on_a_phone(page):
    page.browser.size(390, 800, phone=True)
    for nodes in (3, 7):
        page.open(f"seed=7&nodes={nodes}&t=2000")
        wide = page.get("document.documentElement.scrollWidth")
        check(wide <= 390, f"with {nodes} nodes the page is {wide} wide")
        check(page.get("lab.painter.width") > 200, "the lanes have no room")
    page.browser.size(1400, 1000)


def recording(page, text, folder):
    """A copy of the page that holds a trace, as `leasehold lab` writes it."""
    place = '<script id="recording" type="application/x-ndjson" data-version="1">'
    with open(page.path, encoding="utf-8") as file:
        before, behind = file.read().split(place)
    path = os.path.join(folder, "recorded.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + place + text.replace("<", "\\u003c") + behind)
    return Page(page.browser, path, page.native)


def shows_traces(page):
    link = "seed=7&nodes=3&steps=1500.kill.3"
    text = subprocess.run([page.native, "records", link, "4000"], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        shown = recording(page, text, folder)
        shown.open("t=1400")
        check(shown.get("lab.now") == 1400 and shown.leader() == 3, "the trace is not shown at its instant")
        check([pair[0] for pair in shown.lease()] == [3], f"leases: {shown.lease()}")
        check(shown.get("lab.session.recorded"), "a visit is shown")
        for panel in "hands-panel", "settings-panel", "tour", "undo", "link":
            check(shown.get(f"getComputedStyle(document.getElementById('{panel}')).display") == "none",
                  f"{panel} is there")
        check("cannot be changed" in shown.words("#readonly"), shown.words("#readonly"))
        shown.browser.key("k", "k")
        check("not changed" in shown.words("#words") and shown.get("lab.now") == 1400, shown.words("#words"))
        shown.browser.evaluate("leaseLab.moveTo(1600)")
        check(shown.leader() == 0 and "dies" in shown.words("#events"), shown.words("#events"))
        before = shown.get("lab.now")
        shown.press("#step")
        check(shown.get("lab.now") > before, "it cannot be stepped")
        shown.press("#play")
        shown.browser.wait_for(f"leaseLab.now > {before} + 40")
        shown.press("#play")
        shown.press("#leave")
        check(not shown.get("Boolean(lab.session.recorded)") and shown.leader() > 0, "no way back to the lab")
        shows_a_running_group(page, folder)
        refuses_traces(page, text, folder)
        page.browser.size(1400, 1000)


def shows_a_running_group(page, folder):
    """What `leasehold lab --trace` makes of a file of `leasehold trace`."""
    lines = ["""{"at":0,"kind":"run","v":1,"what":"cluster","text":"a running group: 2 nodes"}""",
             """{"at":0,"kind":"mark","text":"MISSING c:1: refused"}"""]
    for node in 1, 2:
        lines += [f'{{"at":0,"kind":"start","node":{node},"number":4,"why":"recorded"}}',
                  f'{{"at":0,"kind":"clock","node":{node},"holder_ppm":0,"promise_ppm":0}}']
    lines += ['{"at":1000000,"kind":"role","node":1,"term":3,"what":"leader","why":"recorded"}',
              '{"at":2000000,"kind":"sent","node":1,"peer":2,"term":3,"round":1,"what":"append","text":"x"}',
              '{"at":3000000,"kind":"delivered","node":2,"peer":1,"term":3,"round":1,"from":2000000,"what":"append",'
              '"text":"x"}',
              '{"at":4000000,"kind":"lease","node":1,"term":3,"from":2000000,"until":900000000,"why":"gained"}',
              '{"at":500000000,"kind":"mark","node":1,"what":"unseen","text":"from here on nothing is recorded: x"}',
              '{"at":900000000,"kind":"mark","node":2,"what":"durable","index":7}']
    shown = recording(page, "\n".join(lines) + "\n", folder)
    shown.open("t=400")
    check(shown.leader() == 1 and [pair[0] for pair in shown.lease()] == [1], "node 1 does not lead")
    words = shown.words("#readonly")
    check("nobody saw true time" in words and "MISSING c:1: refused" in words, words)
    check("starts again" not in shown.words("#events"), "a node that runs is said to start")
    check(shown.get("lab.session.history.messages.map((one) => one.end)") == [3],
          "the message does not arrive")
    shown.browser.evaluate("leaseLab.moveTo(600)")
    check(shown.leader() == 0 and shown.lease() == [], "node 1 leads where nothing is known of it")
    shown = recording(page, '{"kind":"cluster_trace","v":1}\n', folder)
    shown.open()
    check("`leasehold lab --trace` makes a page of it" in shown.words("#words"), shown.words("#words"))


def refuses_traces(page, text, folder):
    first, rest = text.split("\n", 1)
    evil = '{"at":9000000000,"kind":"%s","node":1,"what":"%s","why":"%s","text":"%s"}'
    html = "<img src=x onerror='document.title=1'>"
    lines = "\n".join(evil % (kind, html, html, html) for kind in (
        "role", "vote", "refusal", "pause", "disk", "settings", "members", "transfer", "read", "write", "mark", "sent",
        "delivered", "lease", "promise", "clock", "leader", "round", "constructor", "unpromised", "cut", "join"))
    shown = recording(page, text + lines, folder)
    shown.open("t=9000")
    check(shown.get("lab.session.recorded"), shown.words("#words"))
    check(shown.get("document.querySelectorAll('img').length") == 0 and shown.get("document.title") == "Lease Lab",
          "a text of a trace became an element")
    for wrong, says in ((rest, "line 1: a trace begins"), (first[:-1], "line 1: this is no record"),
                        (first.replace('"v":1', '"v":2'), "of version 2; the page reads version 1"),
                        (text + '{"at":"1","kind":"crash"}', "`at` is no number"), (first, ""),
                        ("[]", "no record"), (text + "".join('{"at":9000000000,"kind":"crash","node":%d}\n' % node
                                                             for node in range(20)), "more than 16 replicas")):
        shown = recording(page, wrong, folder)
        shown.open()
        seen = shown.words("#words")
        check((says in seen and "cannot be shown" in seen) if says else shown.get("lab.session.recorded"), seen)


def compares(page):
    page.open("seed=7&steps=1500.kill.3&compare=1&t=3200")
    page.browser.wait_for("Boolean(leaseLab.other) && !document.getElementById('other').hidden")
    said = re.search(r"to now: (\d+) ms where the end is not known, (\d+) ms where it is\.", page.words("#silence"))
    check(said and 1000 < int(said.group(1)) < 1700 and 100 < int(said.group(2)) < 800, page.words("#silence"))
    leads = "(lab.other.history.leaderAt(lab.now) || {id: 0}).id"
    check(page.words("#other-name").endswith("is known to the others") and page.get(leads) > 0, page.words("#other"))
    check(page.get("document.getElementById('other-canvas').getBoundingClientRect().height") > 300, "no second lanes")
    # Both go back and on together, and take the same steps.
    page.browser.evaluate("leaseLab.moveTo(1900)")
    check(page.leader() == 0, "somebody leads where the end is not known")
    page.browser.evaluate("leaseLab.act('write.1'); leaseLab.moveTo(2600)")
    check(page.get("lab.other.steps.length") == 2, page.get("lab.otherLink"))
    check(page.get("lab.other.settings.known") == 1, page.get("lab.otherLink"))
    check("compare=1" in page.get("location.hash"), page.get("location.hash"))
    page.press("#known")
    check(page.get("lab.other.settings.known") == 0, page.get("lab.otherLink"))
    check(page.get("lab.session.settings.known") == 1, page.get("lab.session.link()"))
    page.press("#compare")
    check(page.get("document.getElementById('other').hidden"), "the second lanes are still there")


SCENARIO = """# A leader dies

Source: a test.

> nodes 3 delay=10ms
> run 1500ms
> crash %s
> expect 1 term 7
> run 2s
%s
"""


def opens_files(page):
    def take(name, text):
        page.browser.evaluate(f"leaseLab.takeFile(new File([{json.dumps(text)}], {json.dumps(name)}))")

    page.open()
    take("a.scenario", SCENARIO % (3, "> restart 3\n> run 500ms"))
    check(page.get("lab.session.steps") == ["1500.kill.3", "3500.restart.3"], page.get("lab.session.steps"))
    check(page.get("lab.now") == 4000 and page.get("lab.session.settings.delay") == 10, page.get("lab.now"))
    notes = page.words("#notes")
    check("is now a visit" in notes and "line 8 `expect 1 term 7`" in notes, notes)
    check("1500.kill.3" in page.get("location.hash"), page.get("location.hash"))
    # One with words that the lab has not is shown as it ran; the first expectation that fails ends it.
    take("b.scenario", SCENARIO.replace("> expect 1 term 7\n", "") % (2, "> settle\n> campaign 1"))
    check(page.get("lab.session.recorded"), page.words("#words"))
    notes = page.words("#notes")
    check("as it ran" in notes and "line 9 `settle`: in the lab messages take" in notes and "line 10" in notes, notes)
    take("c.scenario", SCENARIO % (9, ""))
    check("does not run" in page.words("#words") and ":7:" in page.words("#words"), page.words("#words"))
    for text, says in (("#", "does not run"), ("", "it is empty"), ("<b>", "line 1"), ("x" * 300000, "line 1"),
                       ("# " + "x" * 300000, "at most 200000")):
        take("d", text)
        check(says in page.words("#words"), page.words("#words"))
    # Two groups on the same beats: a story of the docs, with a lane for each replica.
    page.open("story=shared-groups&t=1150")
    check(page.get("lab.session.recorded && lab.session.history.names.join()") == "1,1b,2,2b,3,3b",
          page.words("#words"))
    check("Node 2b" in page.words("#gutter") and page.get("lab.now") == 1150, page.words("#gutter"))
    check(page.get("document.querySelectorAll('#stories option').length") > 25, "stories are missing")
    for name in page.get("Object.keys(lab.stories)"):
        page.browser.evaluate(f"leaseLab.openStory('{name}')")
        check(page.get("lab.session.recorded") and "A story of" in page.words("#words"), page.words("#words"))
        page.press("#leave")
    page.browser.evaluate("leaseLab.openStory('constructor')")
    check("no story" in page.words("#words"), page.words("#words"))
    # A scenario that the page writes runs as it says, natively; and comes back as the same steps.
    link = "seed=7&nodes=3&steps=1500.kill.3~3000.restart.3~3200.write.1"
    page.open(link + "&t=4000")
    text = page.get("lab.scenarioText()")
    done = subprocess.run([page.native, "scenario", link, "4000"], capture_output=True, text=True, check=True)
    check(done.stdout == text, "natively the visit is another scenario")
    take("visit.scenario", text)
    check(page.get("lab.session.steps") == ["1500.kill.3", "3000.restart.3", "3200.write.1"],
          page.get("lab.session.steps"))
    page.press("#save-scenario")
    check("leasehold scenario visit.scenario runs it" in page.words("#words"), page.words("#words"))
    page.open("seed=7&steps=1500.jump.3.300&t=2000")
    page.press("#save-scenario")
    check("cannot be a scenario: the step 1500.jump.3.300" in page.words("#words"), page.words("#words"))


def nothing_from_outside(page):
    loaded = page.get("performance.getEntriesByType('resource').map((one) => one.name)"
                      ".filter((name) => !name.startsWith('data:'))")
    check(not loaded, f"it loads {loaded}")
    check(not page.browser.said, f"the page says: {page.browser.said}")


SCENES = [loads, plays, leader_dies, ties_the_lease, by_keyboard, changes_members, handles_messages,
          breaks_an_inequality, two_groups, closes_the_gap, speaks, refuses, links_replay, bears_long_links,
          breaks_its_bounds, guides, on_a_phone, shows_traces, opens_files, compares, nothing_from_outside]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page")
    parser.add_argument("native")
    parser.add_argument("--browser", help="the program, if it is not chromium on the path")
    parser.add_argument("--only", help="the name of one scene")
    options = parser.parse_args()
    program = program_for(options)
    size = os.path.getsize(options.page)
    check(size < BYTES_MAX, f"the page has {size} bytes")
    browser = Browser(program)
    try:
        browser.size(1400, 1000)
        page = Page(browser, options.page, options.native)
        for scene in SCENES:
            if options.only not in (None, scene.__name__):
                continue
            scene(page)
            print(f"ok: {scene.__name__}")
    finally:
        browser.close()


if __name__ == "__main__":
    main()
