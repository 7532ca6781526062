"""The goals of goals.toml, and what a run says of each: met, missed and by how much, or not measured."""

import dataclasses
import pathlib
import tomllib

FILE = pathlib.Path(__file__).resolve().parent / "goals.toml"
QUANTITIES = ("p50", "p99", "cpu", "rate", "value")


@dataclasses.dataclass
class Goal:
    what: str
    result: str
    quantity: str
    limit: float
    at_most: bool = True
    number: str = ""
    needs: str = ""

    @staticmethod
    def of(entry):
        """From a table of the file."""
        limits = [name for name in ("at_most", "at_least") if name in entry]
        if len(limits) != 1 or entry["quantity"] not in QUANTITIES:
            raise ValueError(f"{FILE.name}: {entry['what']}: give one of at_most and at_least, and a quantity of "
                             f"{', '.join(QUANTITIES)}")
        known = {"what", "result", "quantity", "number", "needs", *limits}
        if set(entry) - known:
            raise ValueError(f"{FILE.name}: {entry['what']}: {', '.join(set(entry) - known)} has no meaning")
        return Goal(entry["what"], entry["result"], entry["quantity"], entry[limits[0]], limits[0] == "at_most",
                    entry.get("number", ""), entry.get("needs", ""))


@dataclasses.dataclass
class Verdict:
    """`interval`: value, low and high; None: the run did not measure it."""
    goal: Goal
    interval: tuple | None

    @property
    def bad_end(self):
        return None if self.interval is None else self.interval[2 if self.goal.at_most else 1]

    @property
    def state(self):
        if self.interval is None:
            return "not measured"
        met = self.bad_end <= self.goal.limit if self.goal.at_most else self.bad_end >= self.goal.limit
        return "met" if met else "missed"

    @property
    def missed_by(self):
        """As a share of the limit; 0.25: the bad end lies a quarter of the limit on its wrong side. Infinite: the
        limit is 0."""
        if self.state != "missed":
            return 0.0
        return abs(self.bad_end - self.goal.limit) / self.goal.limit if self.goal.limit else float("inf")

    def text(self):
        if self.state == "not measured":
            return f"not measured: it needs {self.goal.needs}" if self.goal.needs else "not measured"
        if self.state == "met":
            return "met"
        if not self.goal.limit:
            return f"MISSED by {self.bad_end:g}"
        return f"MISSED by {100 * self.missed_by:.{0 if self.missed_by >= 0.1 else 1}f} %"

    def as_json(self):
        goal = self.goal
        found = dict(zip(("value", "low", "high"), self.interval or ()))
        return {"number": goal.number, "what": goal.what, "result": goal.result, "quantity": goal.quantity,
                "at_most" if goal.at_most else "at_least": goal.limit, **found, "state": self.state,
                "missed_by": self.missed_by if self.missed_by != float("inf") else None}


def load(section, file=FILE):
    """The goals of one of the lists."""
    return [Goal.of(entry) for entry in tomllib.loads(file.read_text())[section]]


def limits(section, file=FILE):
    """The numbers of one of the tables, by their names."""
    return tomllib.loads(file.read_text())[section]


def judge(goal, results):
    """`results`: as report.py writes them."""
    entry = results.get(goal.result)
    if entry is None:
        return Verdict(goal, None)
    if goal.quantity == "value":
        value = entry.get("value")
        if value is None:
            return Verdict(goal, None)  # thrown away
        return Verdict(goal, (value, entry.get("low", value), entry.get("high", value)))
    ratio = entry.get("ratio", {}).get(goal.quantity)
    return Verdict(goal, None if ratio is None else (ratio["value"], ratio["low"], ratio["high"]))


def table(verdicts):
    lines = [f"| {'':<3} | {'goal':<62} | {'limit':>9} | {'found':<25} | {'':<20} |",
             f"|{'-' * 5}|{'-' * 64}|{'-' * 10}:|{'-' * 27}|{'-' * 22}|"]
    for verdict in verdicts:
        goal, found = verdict.goal, found_text(verdict.interval)
        limit = ("<= " if goal.at_most else ">= ") + f"{goal.limit:.4g}"
        lines.append(f"| {goal.number:<3} | {goal.what:<62} | {limit:>9} | {found:<25} | {verdict.text():<20} |")
    return "\n".join(lines)


def found_text(interval):
    if interval is None:
        return ""
    low, high = interval[1:]
    return f"{interval[0]:.4g}" if low == high else f"{interval[0]:.4g} [{low:.4g}, {high:.4g}]"


def rows(verdicts):
    """For results/: an object for each goal."""
    found = []
    for verdict in verdicts:
        limit = ("<= " if verdict.goal.at_most else ">= ") + f"{verdict.goal.limit:.4g}"
        found.append({"measure": verdict.goal.what, "goal": limit, "found": found_text(verdict.interval),
                      "verdict": verdict.text()})
    return found


def summary(verdicts):
    """One line for people: how many are met, and each that is not."""
    counts = {state: [v for v in verdicts if v.state == state] for state in ("met", "missed", "not measured")}
    text = "goals: " + ", ".join(f"{len(those)} {state}" for state, those in counts.items())
    for verdict in counts["missed"]:
        text += f"\n  {verdict.text()}: {verdict.goal.what}"
    return text
