"""The scene of page.py in which members of the group change."""

import re


def changes_members(page, check):
    """Node 4 is added and promoted by keyboard, and is needed then; the leader is removed."""
    def does(*keys):
        for key in keys:
            page.browser.key(key, key)

    def node(number):
        return page.words(f"#gutter > :nth-child({number})")

    page.open("seed=7&nodes=3&spare=1&t=1500")
    check(page.get("document.getElementById('gutter').children.length") == 4, "the spare node has no lane")
    check("not a member" in node(4) and "member" not in node(1), page.words("#gutter"))
    does("4")
    check("Node 4: not a member" in page.words("#news"), page.words("#news"))
    pressed = ("['add', 'promote', 'remove'].filter((verb) => "
               "!document.querySelector(`[data-verb=${verb}]`).disabled).join()")
    check(page.get(pressed) == "add", page.get(pressed))
    does("v", "a", "v")
    check("learner" in node(4) and "vote; learners: 4" in page.words("#events"), page.words("#events"))
    # The leader has not committed the first change, and the core says so.
    check("Node 4 refused: promote 4: an earlier change" in page.words("#news"), page.words("#news"))
    page.browser.evaluate("leaseLab.moveTo(2000)")
    check(page.get(pressed) == "promote,remove", page.get(pressed))
    does("v")
    check("joint with 1 2 3: both halves count" in page.words("#events"), page.words("#events"))
    check(page.get("lab.session.history.groupAt(lab.now).outgoing.join()") == "1,2,3", "it is not joint")
    page.browser.evaluate("leaseLab.moveTo(2500)")
    check("follower" in node(4) and page.get("lab.session.history.groupAt(lab.now).outgoing.length") == 0, node(4))
    check(page.get("lab.session.history.nodes[3].members.map((one) => one.committed).join()").endswith("true"),
          "no mark of a commit")
    check(page.get("lab.session.steps") == ["1500.add.4", "1500.promote.4", "2000.promote.4"],
          page.get("lab.session.steps"))
    leader = page.leader()
    does(str(leader), "x")
    page.browser.evaluate("leaseLab.moveTo(4000); leaseLab.saveAddress()")
    check("removed" in node(leader) and page.leader() not in (0, leader), page.words("#gutter"))
    saved = re.sub(r"&t=\d+$", "", page.get("location.hash.slice(1)"))
    check("spare=1" in saved and page.native_hash(saved, 4000) == page.get("lab.session.hash()"), saved)
    # Other numbers of nodes: the steps were said of other nodes.
    page.browser.evaluate("document.querySelector('[name=spare][value=\"2\"]').click()")
    check(page.get("document.getElementById('gutter').children.length") == 5, "the choice gives no lane")
    check(len(page.get("lab.session.steps")) == 4, page.get("lab.session.steps"))
    page.browser.evaluate("document.querySelector('[name=spare][value=\"0\"]').click()")
    check(page.get("document.getElementById('gutter').children.length") == 3, page.words("#refused"))
    check(page.get("lab.session.steps") == [], page.get("lab.session.steps"))
    page.browser.size(390, 800, phone=True)
    page.open("seed=7&nodes=7&spare=2&steps=1500.add.9&t=2000")
    check(page.get("document.documentElement.scrollWidth") <= 390, "the lanes are too wide for a phone")
    page.browser.size(1400, 1000)
