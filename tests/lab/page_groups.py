"""The scene of page.py in which two groups share the beats of their processes."""

import re

LEADER = ("(lab.session.history.leaderAt(lab.now, lab.session.history.nodes.filter((_, place) => place %% 2 === %d)) "
          "|| {id: 0}).id")


def two_groups(page, check):
    def does(*keys):
        for key in keys:
            page.browser.key(key, key)

    def lane(number):
        return page.words(f"#gutter > :nth-child({number})")

    def sent():
        text = page.words("#groups")
        found = re.search(r"second: (\d+) of the first group, (\d+) of the second one, (\d+) between", text)
        check(found, text)
        return [int(number) for number in found.groups()]

    page.open("seed=7&nodes=3&groups=2&reads=0&writes=0&t=3000")
    check(page.get("document.getElementById('gutter').children.length") == 6, page.words("#gutter"))
    check("Node 1b" in lane(2) and "Node 3b" in lane(6), page.words("#gutter"))
    first, second = page.get(LEADER % 0), page.get(LEADER % 1)
    check(first and second and sorted(pair[0] for pair in page.lease()) == sorted([first, second]),
          f"leaders {first} {second}, leases {page.lease()}")
    # Nothing but beats, and both leases rest on them.
    check(sent()[:2] == [0, 0] and sent()[2] >= 100, page.words("#groups"))
    check(page.words("#groups").count(" by beat ") == 2, page.words("#groups"))
    # A key chooses the node, and again its other replica; hands reach the one that is chosen.
    does("2")
    check(page.get("lab.selected") == 3 and "Node 2:" in page.words("#news"), page.words("#news"))
    does("2")
    check(page.get("lab.selected") == 4 and "Node 2b:" in page.words("#news"), page.words("#news"))
    check(page.words("#hands-node") == "node 2b", page.words("#hands-node"))
    page.press(f"#gutter > :nth-child({second})")
    does("w", "l")
    check("leads in the first group. Node" in page.words("#news") and "in the second group" in page.words("#news"),
          page.words("#news"))
    page.browser.evaluate("leaseLab.moveTo(3300)")
    done = page.get(f"lab.session.history.nodes[{second - 1}].operations.map((one) => one.kind + ' ' + one.text)")
    check(done == ["write x = 1", "read x = 0"], done)
    check(sent()[0] == 0 and sent()[1] > 0, page.words("#groups"))
    check(page.get("['add', 'promote', 'remove'].every((verb) => "
                   "document.querySelector(`[data-verb=${verb}]`).disabled)"), "members can be changed")
    # A process that dies takes both replicas with it; a node that is cut off loses both leases.
    does("k")
    node = (second + 1) // 2
    check("down" in lane(2 * node - 1) and "down" in lane(2 * node), page.words("#gutter"))
    dies = page.get("lab.session.history.told.filter((one) => one.text === 'dies').length")
    check(dies == 1, f"the events say {dies} times that the node dies")
    page.browser.evaluate("leaseLab.moveTo(6000); leaseLab.saveAddress()")
    check(page.get(LEADER % 1) not in (0, second), "nobody follows in the second group")
    saved = re.sub(r"&t=\d+$", "", page.get("location.hash.slice(1)"))
    check("groups=2" in saved and f".write.{node}b~" in saved and f".kill.{node}" in saved, saved)
    check(page.native_hash(saved, 6000) == page.get("lab.session.hash()"), saved)
    page.press("#save-scenario")
    check("two groups has no scenario file" in page.words("#words"), page.words("#words"))
    # The choice in the numbers.
    page.browser.evaluate("document.querySelector('[name=groups][value=\"1\"]').click()")
    check(page.get("document.getElementById('gutter').children.length") == 3, page.words("#refused"))
    check(page.get("lab.session.steps") == [] and page.get("document.getElementById('groups').hidden"), "not one group")
    page.browser.evaluate("document.querySelector('[name=spare][value=\"1\"]').click()")
    page.browser.evaluate("document.querySelector('[name=groups][value=\"2\"]').click()")
    check("no spare node" in page.words("#refused"), page.words("#refused"))
    page.browser.evaluate("document.querySelector('[name=spare][value=\"0\"]').click()")
    page.browser.evaluate("document.querySelector('[name=groups][value=\"2\"]').click()")
    check(page.get("document.getElementById('gutter').children.length") == 6, page.words("#refused"))
    page.browser.size(390, 800, phone=True)
    page.open("seed=7&nodes=3&groups=2&t=2000")
    check(page.get("document.documentElement.scrollWidth") <= 390, "the lanes are too wide for a phone")
    page.browser.size(1400, 1000)
