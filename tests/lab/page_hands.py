"""The scenes of page.py in which the visitor handles one message, and breaks an inequality."""

import os
import re
import subprocess

LINK = "seed=7&nodes=3"
# What the page can name at the present instant: [sender, receiver, type, number].
FLIGHTS = "lab.session.history.flightsAt(lab.now).map((one) => [one.from, one.to, one.what, one.number])"


def under_way(page, check, what, start):
    """Goes to the first whole millisecond from `start` on at which a message of this type is under way."""
    for at in range(start, start + 200):
        page.browser.evaluate(f"leaseLab.moveTo({at})")
        found = [one for one in page.get(FLIGHTS) if one[2] == what]
        if found:
            return at, found[0]
    check(False, f"no {what} is under way")


def saved(page):
    page.browser.evaluate("leaseLab.saveAddress()")
    return re.sub(r"&t=\d+$", "", page.get("location.hash.slice(1)"))


def handles_messages(page, check):
    by_keyboard(page, check)
    by_pointer(page, check)
    refuses_messages(page, check)


def by_keyboard(page, check):
    def does(*keys):
        for key in keys:
            page.browser.key(key, key)

    page.open(LINK + "&t=1500")
    at, _ = under_way(page, check, "append", 1500)
    check(page.get("document.querySelector('[data-message=drop]').disabled"), "nothing is chosen")
    does("d")
    check(page.get("lab.session.steps.length") == 0, "nothing was chosen, and it was dropped")
    does("m")
    check(re.search(r"Chosen: append 3 → \d, sent .* ms ago: .*A round of the leader", page.words("#news")),
          page.words("#news"))
    chosen = page.get("[lab.flight().from, lab.flight().to, lab.flight().number]")
    check(page.get("document.querySelectorAll('#flights [aria-pressed=true]').length") == 1, page.words("#flights"))
    check(page.get("lab.painter.chosen === lab.flight()") is not None, "it is not drawn as chosen")
    does("d")
    step = f"{at}.drop.{chosen[0]}.{chosen[2]}"
    check(page.get("lab.session.steps") == [step], page.get("lab.session.steps"))
    check(f"its append to node {chosen[1]} is lost, by your hand" in page.words("#events"), page.words("#events"))
    lost = ("lab.session.history.messages.filter((one) => "
            f"one.lost && one.number === {chosen[2]} && one.end === {at}).length")
    check(page.get(lost) == 1, "no arrow is lost")
    page.browser.evaluate("leaseLab.moveTo(2500)")
    digest = page.get("lab.session.hash()")
    check(page.native_hash(saved(page), 2500) == digest, "natively the drop is another run")
    # U goes back in time, and the message arrives.
    does("u")
    check(page.get("lab.session.steps") == [], page.get("lab.session.steps"))
    check("Taken back: drop" in page.words("#news"), page.words("#news"))
    page.browser.evaluate("leaseLab.moveTo(2500)")
    check(page.get("lab.session.hash()") != digest, "the drop is still there")
    check(page.get(lost) == 0, "it is still lost")


def by_pointer(page, check):
    page.open(LINK + "&t=1500")
    at, message = under_way(page, check, "append", 1500)
    page.browser.evaluate("leaseLab.zoom(0.1)")
    middle = ("(() => { const p = leaseLab.painter; "
              "const m = leaseLab.session.history.flightsAt(leaseLab.now).find((one) => "
              f"one.number === {message[3]} && one.from === {message[0]}); const share = 0.5; "
              "const x0 = p.x(m.at), x1 = p.x(leaseLab.now), y0 = p.rail(m.from), y1 = p.rail(m.to); "
              "return [x0 + (x1 - x0) * share, y0 + (y1 - y0) * share]; })()")
    page.browser.evaluate("leaseLab.paint()")
    x, y = page.browser.evaluate(middle)
    check(page.get(f"lab.chooseMessageAt({x}, {y}, 16)"), "no message is under the pointer")
    check(page.get("Boolean(lab.flight())"), "none is chosen")
    page.browser.evaluate("document.getElementById('flight-by').value = '1000'")
    chosen = page.get("[lab.flight().from, lab.flight().to, lab.flight().number]")
    arrival = ("lab.session.history.messages.find((one) => "
               f"one.number === {chosen[2]} && one.from === {chosen[0]}).end")
    # When it would arrive; and back, to before that.
    page.browser.evaluate(f"leaseLab.moveTo({at + 100})")
    plain = page.get(arrival)
    page.browser.evaluate(f"leaseLab.moveTo({at})")
    page.press("[data-message=delay]")
    check(page.get("lab.session.steps") == [f"{at}.delay.{chosen[0]}.{chosen[2]}.1000"], page.get("lab.session.steps"))
    check("arrives only at" in page.words("#events"), page.words("#events"))
    page.browser.evaluate("leaseLab.moveTo(4000)")
    check(abs(page.get(arrival) - plain - 1000) < 0.001, "it does not arrive a second later")
    check(page.native_hash(saved(page), 4000) == page.get("lab.session.hash()"), "natively the delay is another run")
    # Twice: the copy is an arrow of its own.
    page.open(LINK + "&t=1500")
    under_way(page, check, "append_reply", 1500)
    page.browser.key("m", "m")
    page.press("[data-message=twice]")
    page.browser.evaluate("leaseLab.moveTo(3000)")
    copies = page.get("lab.session.history.messages.filter((one) => one.copy).map((one) => one.end)")
    check(len(copies) == 1 and copies[0] < 3000, f"copies: {copies}")
    check("arrives twice" in page.words("#events") or page.get("lab.session.history.told.some((one) => "
          "one.text.includes('arrives twice'))"), page.words("#events"))
    check(page.get("lab.session.history.findings.length") == 0, page.words("#alarm"))
    check(page.native_hash(saved(page), 3000) == page.get("lab.session.hash()"), "natively the copy is another run")
    # With other numbers other messages are sent.
    page.browser.evaluate("const input = document.getElementById('s-delay'); input.value = 20; "
                          "input.dispatchEvent(new Event('input'))")
    check(page.get("lab.session.steps") == [] and "are forgotten" in page.words("#words"), page.words("#words"))


def refuses_messages(page, check):
    page.open(LINK + "&steps=1500.drop.3.999&t=1600")
    says = "message 999 of node 3 is not under way"
    check(f"cannot be replayed: the step 1500.drop.3.999: {says}" in page.words("#words"), page.words("#words"))
    done = subprocess.run([page.native, "hash", LINK + "&steps=1500.drop.3.999", "1600"], capture_output=True,
                          text=True, check=False)
    check(done.returncode == 2 and says in done.stderr, done.stderr)
    page.open(LINK + "&t=1500")
    page.browser.evaluate("leaseLab.act('drop.3.1')")
    check("it has arrived" in page.words("#words") and page.get("lab.session.steps") == [], page.words("#words"))
    page.browser.evaluate("leaseLab.moveTo(0)")
    page.browser.key("m", "m")
    check("No message is under way" in page.words("#words"), page.words("#words"))


# ---- Inequalities ----

def breaks_an_inequality(page, check):
    def slide(name, value):
        page.browser.evaluate(f"(() => {{ const input = document.getElementById('s-{name}'); input.value = {value}; "
                              "input.dispatchEvent(new Event('input')); })()")

    page.open(LINK + "&t=1500")
    slide("heartbeat", 500)
    check("Refused" in page.words("#refused"), page.words("#refused"))
    slide("heartbeat", 100)
    before = page.get("lab.session.hash()")
    page.browser.evaluate("document.getElementById('unchecked').click()")
    page.browser.wait_for("leaseLab.uncheckedRuns() && leaseLab.session.settings.unchecked === 1")
    check(page.get("lab.session.hash()") == before, "without its check, the core is another one")
    check("Both inequalities hold" in page.words("#consequences"), page.words("#consequences"))
    check(not page.get("document.getElementById('unchecked-runs').hidden"), "it is not said that another core runs")
    slide("heartbeat", 500)
    check(page.words("#refused") == "" and page.get("lab.session.settings.heartbeat") == 500, page.words("#refused"))
    check("R + rtt + R is 241.8 ms above what it may be" in page.words("#consequences"), page.words("#consequences"))
    slide("heartbeat", 100)
    slide("lease", 500)
    slide("margin", 500)
    check("Safety is broken by 90.9 ms: nothing of a promise is left" in page.words("#consequences"),
          page.words("#consequences"))
    page.browser.evaluate("leaseLab.moveTo(4000)")
    check(not page.lease() and page.leader() > 0, f"leases: {page.lease()}")
    page.press("#reset")
    slide("margin", -150)
    check("Safety is broken by 150 ms: the leader counts on 968.2 ms" in page.words("#consequences"),
          page.words("#consequences"))
    check("more of a promise than is sure" in page.words("#safety"), page.words("#safety"))
    link = saved(page)
    check("unchecked=1" in link and "margin=-150" in link, link)
    check(page.native_hash(link, 4000, unchecked_of(page)) == page.get("lab.session.hash()"), "another run natively")
    slide("margin", -400)
    check("sigma is at least -181 ms" in page.words("#refused"), page.words("#refused"))
    page.press("#save-scenario")
    check("no scenario takes numbers that break" in page.words("#words"), page.words("#words"))
    # Back to the core that checks: with these numbers it cannot be.
    page.browser.evaluate("document.getElementById('unchecked').click()")
    check("refuses these numbers: margin is -150 ms" in page.words("#words") and page.get("lab.uncheckedRuns()"),
          page.words("#words"))
    page.press("#reset")
    page.browser.evaluate("document.getElementById('unchecked').click()")
    check(not page.get("lab.uncheckedRuns()") and "unchecked" not in saved(page), saved(page))
    compares_with_the_kept(page, check)


def compares_with_the_kept(page, check):
    page.open()
    link = page.get("LeaseLab.tour[LeaseLab.tour.length - 1].link")
    page.open(link + "&compare=1&t=3640")
    page.browser.wait_for("leaseLab.uncheckedRuns() && leaseLab.other && leaseLab.now === 3640 && "
                          "document.getElementById('silence').textContent")
    check("a reader gets an old value" in page.words("#silence").split(". With")[0], page.words("#silence"))
    check("With the inequalities kept: no judge speaks" in page.words("#silence"), page.words("#silence"))
    check(page.get("lab.other.settings.margin") == 0, page.get("lab.otherLink"))
    check("inequality of safety is broken" in page.words("#alarm"), page.words("#alarm"))
    # A link that is wrong, and one that needs no such core.
    page.open("unchecked=1&margin=-900")
    page.browser.wait_for("leaseLab.session.history && "
                          "document.getElementById('words').textContent.includes('replayed')")
    check("sigma is at least -181 ms" in page.words("#words"), page.words("#words"))
    page.open(LINK + "&t=1500")
    check(not page.get("lab.uncheckedRuns()") and page.leader() > 0, page.words("#words"))


def unchecked_of(page):
    return os.path.join(os.path.dirname(page.native), "leasehold_lab_unchecked")
