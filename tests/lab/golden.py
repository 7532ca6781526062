#!/usr/bin/env python3
"""Compares pictures of the lab's lanes with those in golden/. Skipped where chromium is not installed, or the page is
not built.

  golden.py PAGE [--browser PROGRAM] [--rewrite]     look at the new pictures before you believe them
  golden.py PAGE --still FILE [--browser PROGRAM]    the picture of README.md

Letters look different on every machine, so pictures are small and are compared in coarse blocks of brightness. That
this still sees a lane, a lease or a mark that is missing is part of the test: it takes them away, one at a time.
"""

import argparse
import base64
import os
import struct
import sys
import zlib

from browser import Browser, program_for

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
BYTES_MAX = 60_000
STILL_BYTES_MAX = 150_000
# Of the width of the page: what a picture has.
SCALE = 0.5
# Pixels of a picture in a block, on each side; the brightness has 256 steps.
BLOCK = 4
# Two blocks differ by more than letters explain.
STEPS = 24
# Of the blocks. Letters of another family change 0.001 of them, and letters of one width 0.005; a lane that is missing
# changes 0.025.
DIFFERENT_MAX = 0.006

# Name, stop of the tour or None, theme, width and height of the window.
PICTURES = [
    ("tour-1-light", "Why not a plain lock?", "light", 1400, 1000),
    ("tour-1-dark", "Why not a plain lock?", "dark", 1400, 1000),
    ("tour-4-light", "t3: the leader sends", "light", 1400, 1000),
    ("tour-4-dark", "t3: the leader sends", "dark", 1400, 1000),
    ("stale-light", "Without the rule: an old value", "light", 1400, 1000),
    ("stale-dark", "Without the rule: an old value", "dark", 1400, 1000),
    ("stale-phone", "Without the rule: an old value", "light", 390, 800),
]
# What a picture must not lack: each is drawn away, and the comparison has to see it.
WITHOUT = [
    ("tour-1-light", "a lane", "drawLane", "if (node.id === 2) return;"),
    ("tour-1-dark", "a lane", "drawLane", "if (node.id === 2) return;"),
    ("tour-1-light", "the promises", "drawPromises", "return;"),
    ("tour-1-dark", "the leases", "drawLease", "return;"),
    ("stale-phone", "a lane", "drawLane", "if (node.id === 2) return;"),
    ("stale-light", "the messages", "drawMessages", "return;"),
    ("tour-4-light", "the roles", "drawRoles", "return;"),
]


def check(holds, what):
    if not holds:
        sys.exit(f"golden.py: {what}")


def pixels_of(png):
    """Rows of brightness, 0 to 255, of a PNG as chromium writes it: 8 bits a channel, not interlaced."""
    check(png[:8] == b"\x89PNG\r\n\x1a\n", "this is no PNG")
    place, packed = 8, b""
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place:place + 8])
        body = png[place + 8:place + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            check(depth == 8 and colours in (2, 6) and not interlaced, "a PNG of another form")
        packed += body if kind == b"IDAT" else b""
        place += 12 + length
    size = 3 if colours == 2 else 4
    raw, rows, before = zlib.decompress(packed), [], bytearray(width * size)
    for y in range(height):
        begin = y * (width * size + 1)
        before = unfiltered(raw[begin], bytearray(raw[begin + 1:begin + 1 + width * size]), before, size)
        rows.append([(299 * before[x] + 587 * before[x + 1] + 114 * before[x + 2]) // 1000
                     for x in range(0, width * size, size)])
    return rows


def unfiltered(kind, line, before, size):
    for x in range(len(line) if kind else 0):
        left = line[x - size] if x >= size else 0
        above, corner = before[x], before[x - size] if x >= size else 0
        guess = (0, left, above, (left + above) // 2, 0)[kind]
        if kind == 4:
            far = left + above - corner
            guess = min((left, above, corner), key=lambda one: abs(far - one))
        line[x] = (line[x] + guess) & 255
    return line


def blocks_of(rows):
    """The mean brightness of each block."""
    blocks = []
    for y in range(0, len(rows) - BLOCK + 1, BLOCK):
        for x in range(0, len(rows[0]) - BLOCK + 1, BLOCK):
            blocks.append(sum(sum(row[x:x + BLOCK]) for row in rows[y:y + BLOCK]) / BLOCK ** 2)
    return blocks


def difference(one, other):
    """The share of blocks that differ; 1 for pictures of two sizes."""
    if len(one) != len(other) or len(one[0]) != len(other[0]):
        return 1.0
    pairs = list(zip(blocks_of(one), blocks_of(other)))
    return sum(abs(a - b) > STEPS for a, b in pairs) / len(pairs)


class Studio:
    def __init__(self, browser, page):
        self.browser = browser
        self.address = "file://" + os.path.abspath(page)

    def open(self, title, theme, width, height, link=""):
        self.browser.size(width, height, phone=width < 600)
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.call("Page.navigate", url=self.address + "#" + link)
        self.browser.wait_for("Boolean(window.leaseLab && document.getElementById('gutter').children.length)")
        if title:
            self.browser.evaluate(f"leaseLab.visitTour(LeaseLab.tour.findIndex((one) => one.title === '{title}'))")
        self.browser.evaluate(f"leaseLab.theme({'true' if theme == 'dark' else 'false'}); window.scrollTo(0, 0)")

    def shot(self, element, scale, without=None):
        if without:
            method, body = without
            self.browser.evaluate(
                f"(() => {{ const drawn = LeaseLab.Painter.prototype.{method};"
                f"leaseLab.painter.{method} = function (node) {{ {body} drawn.call(this, node); }}; }})()")
        self.browser.evaluate("leaseLab.paint()")
        box = self.browser.evaluate(
            f"(() => {{ const box = document.querySelector('{element}').getBoundingClientRect();"
            "return [box.x, box.y + scrollY, box.width, box.height]; })()")
        clip = dict(zip(("x", "y", "width", "height"), box), scale=scale)
        # With something above the lanes it may lie below the window.
        answer = self.browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(answer["data"])


def compare(studio, rewrite):
    for name, title, theme, width, height in PICTURES:
        studio.open(title, theme, width, height)
        taken = studio.shot(".lanes", SCALE)
        path = os.path.join(FOLDER, name + ".png")
        if rewrite:
            os.makedirs(FOLDER, exist_ok=True)
            with open(path, "wb") as file:
                file.write(taken)
        with open(path, "rb") as file:
            golden = file.read()
        check(len(golden) <= BYTES_MAX, f"{name}.png has {len(golden)} bytes, more than {BYTES_MAX}")
        expected = pixels_of(golden)
        far = difference(pixels_of(taken), expected)
        print(f"{name}: {far * 100:.2f} % of the blocks differ")
        if far > DIFFERENT_MAX:
            seen = os.path.join(os.getcwd(), name + ".seen.png")
            with open(seen, "wb") as file:
                file.write(taken)
            check(False, f"{name} looks different: compare {seen} with {path}; if it is meant, --rewrite")
        for _, what, method, body in [one for one in WITHOUT if one[0] == name]:
            studio.open(title, theme, width, height)
            lacking = difference(pixels_of(studio.shot(".lanes", SCALE, (method, body))), expected)
            print(f"{name} without {what}: {lacking * 100:.2f} %")
            check(lacking > DIFFERENT_MAX, f"{name} without {what} looks the same")


def still(studio, path):
    studio.open("Why not a plain lock?", "light", 1240, 900)
    taken = studio.shot(".lanes", 1)
    check(len(taken) <= STILL_BYTES_MAX, f"the still has {len(taken)} bytes, more than {STILL_BYTES_MAX}")
    with open(path, "wb") as file:
        file.write(taken)
    print(f"{path}: {len(taken)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page")
    parser.add_argument("--browser", help="the program, if it is not chromium on the path")
    parser.add_argument("--rewrite", action="store_true", help="take what is seen now as golden")
    parser.add_argument("--still", help="write this picture, and compare nothing")
    options = parser.parse_args()
    browser = Browser(program_for(options))
    try:
        studio = Studio(browser, options.page)
        if options.still:
            still(studio, options.still)
        else:
            compare(studio, options.rewrite)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
