"""What happened in a chaos run, and a picture of it: one band a round, one line a node, with who
led, who held the lease, and which faults were at work."""

import html
import time

PIXELS_A_SECOND = 28
LEFT = 70
LINE = 26
BAND_HEAD = 24
BAND_GAP = 22
LEGEND = 46
STATES = {None: "away", "follower": "follower", "pre_candidate": "asks", "candidate": "asks",
          "leader": "leads"}
STYLE = """
  svg { background: #ffffff; color: #222222; font: 11px sans-serif; }
  text { fill: currentColor; } .head { font-weight: bold; }
  .away { fill: #d9d9d9; } .follower { fill: #e3edf7; } .asks { fill: #f0c36d; }
  .leads { fill: #8fc7a2; } .leased { fill: #2f8f55; } .unseen { fill: none; }
  .kill { fill: #b22222; } .power { fill: #7b1fa2; } .pause { fill: #1565c0; }
  .starve { fill: #00838f; } .disk { fill: #6d4c41; } .partition { fill: #e65100; }
  .proxy { fill: #c2185b; } .drift { fill: #9e9d24; } .jump { fill: #455a64; }
  .transfer { fill: #2e7d32; } .replace { fill: #4e342e; } .slots { fill: #5c6bc0; }
  .violation { stroke: #ff0000; stroke-width: 3; }
  .heal { stroke: currentColor; stroke-dasharray: 3 3; }
  @media (prefers-color-scheme: dark) {
    svg { background: #16181c; color: #dddddd; }
    .follower { fill: #26323f; } .away { fill: #3a3a3a; } .leads { fill: #3c6b4c; }
  }
"""


class Entry:
    """One fault that has begun."""

    def __init__(self, fault, nodes, begun):
        self.kind = fault.kind
        self.text = str(fault)
        self.nodes = [node.place for node in nodes]
        self.begun = begun
        self.ended = None


class Round:
    def __init__(self, number, classes, begun):
        self.number = number
        self.classes = classes
        self.begun = begun
        self.healed = None
        self.ended = None
        self.violation = None
        self.entries = []
        self.states = {}  # place: list of (when, style, term)


class Story:
    """Collects; instants are those of time.monotonic()."""

    def __init__(self, title):
        self.title = title
        self.rounds = []

    def new_round(self, number, classes):
        self.rounds.append(Round(number, classes, time.monotonic()))

    def begin(self, fault, nodes):
        entry = Entry(fault, nodes, time.monotonic())
        self.rounds[-1].entries.append(entry)
        return entry

    @staticmethod
    def end(entry):
        entry.ended = time.monotonic()

    def healed(self):
        self.rounds[-1].healed = time.monotonic()

    def end_round(self):
        self.rounds[-1].ended = time.monotonic()

    def violation(self, text):
        if self.rounds:
            self.rounds[-1].violation = (time.monotonic(), text)

    def state(self, place, when, role, term, leased=False):
        """What the node there said last, or None that it did not answer."""
        if not self.rounds:
            return
        style = "leased" if leased else STATES.get(role, "away")
        states = self.rounds[-1].states.setdefault(place, [])
        if not states or states[-1][1:] != (style, term):
            states.append((when, style, term))


class Picture:
    """SVG, as text."""

    def __init__(self, story, places):
        self._places = places
        self._parts = []
        self._y = 34
        self._width = 400
        self._text(10, 20, story.title, "head")
        self._legend()
        for one in story.rounds:
            self._band(one)

    def finish(self):
        size = f'width="{self._width:.0f}" height="{self._y:.0f}"'
        return (f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>\n' +
                "\n".join(self._parts) + "\n</svg>\n")

    def _text(self, x, y, words, style=""):
        self._parts.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{html.escape(words)}'
                           "</text>")

    def _bar(self, style, x, y, width, height, title=""):
        self._parts.append(f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" '
                           f'width="{max(width, 1.5):.1f}" height="{height}">'
                           f"<title>{html.escape(title)}</title></rect>")

    def _line(self, style, x, top, bottom, title):
        self._parts.append(f'<line class="{style}" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" '
                           f'y2="{bottom:.1f}"><title>{html.escape(title)}</title></line>')

    def _legend(self):
        x = 10
        names = (("leased", "leads with a lease"), ("leads", "leads"), ("asks", "candidate"),
                 ("follower", "follower"), ("away", "no answer"), *((kind, kind) for kind in (
                     "kill", "pause", "starve", "power", "disk", "partition", "proxy", "drift",
                     "jump", "transfer", "replace", "slots")))
        for style, words in names:
            self._bar(style, x, self._y, 10, 10)
            self._text(x + 14, self._y + 9, words)
            x += 26 + 6.2 * len(words)
        self._width = max(self._width, x)
        self._y += LEGEND - 20

    def _band(self, one):
        end = one.ended or (one.violation[0] if one.violation else time.monotonic())

        def at(when):
            return LEFT + (min(max(when, one.begun), end) - one.begun) * PIXELS_A_SECOND
        top = self._y
        verdict = "" if one.violation is None else f": VIOLATION: {one.violation[1]}"
        self._text(10, top + 14, f"round {one.number}: {', '.join(one.classes)}{verdict}", "head")
        for row, place in enumerate(self._places):
            y = top + BAND_HEAD + row * LINE
            self._text(10, y + 14, f"node {place}")
            states = one.states.get(place, [])
            for index, (when, style, term) in enumerate(states):
                until = states[index + 1][0] if index + 1 < len(states) else end
                self._bar(style, at(when), y + 9, at(until) - at(when), 13,
                          f"node {place}: {style}, term {term}")
                if style in ("leads", "leased") and at(until) - at(when) > 30 and (
                        index == 0 or states[index - 1][2] != term):
                    self._text(at(when) + 2, y + 19, f"term {term}")
            for entry in one.entries:
                if place in entry.nodes:
                    self._fault(entry, at, y + 2, end)
        y = top + BAND_HEAD + len(self._places) * LINE
        self._text(10, y + 9, "everywhere")
        lanes = []
        for entry in one.entries:
            if not entry.nodes:
                lane = next((i for i, free in enumerate(lanes) if free <= entry.begun), len(lanes))
                lanes[lane:lane + 1] = [entry.ended or end]
                self._fault(entry, at, y + 2 + 7 * lane, end)
        bottom = y + 12 + 7 * max(len(lanes), 1)
        if one.healed:
            self._line("heal", at(one.healed), top + BAND_HEAD, bottom, "all faults have ended")
        if one.violation:
            self._line("violation", at(one.violation[0]), top + BAND_HEAD, bottom, verdict)
        self._width = max(self._width, at(end) + 20)
        self._y = bottom + BAND_GAP

    def _fault(self, entry, at, y, end):
        until = entry.ended or end
        self._bar(entry.kind, at(entry.begun), y, at(until) - at(entry.begun), 6, entry.text)


def draw(story, places, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(Picture(story, places).finish())
