#!/usr/bin/env python3
"""The numbers that the lab's page tells are those of the code and the docs.

  numbers.py TREE
"""

import os
import re
import sys


def check(holds, what):
    if not holds:
        sys.exit(f"numbers.py: {what}")


def main():
    tree = sys.argv[1]

    def read(*path):
        with open(os.path.join(tree, *path), encoding="utf-8") as file:
            return file.read()

    def found(pattern, text, where):
        match = re.search(pattern, text)
        check(match, f"{where} does not say {pattern!r}")
        return match.group(1)

    timing = read("lease", "timing.h")
    settings, tour = read("lab", "page", "settings.js"), read("lab", "page", "tour.js")
    # A text in the source is cut into lines.
    told = re.sub(r'" \+\s*"', "", tour)
    defaults = {
        "lease": found(r"lease = std::chrono::milliseconds\((\d+)\)", timing, "timing.h"),
        "heartbeat": found(r"heartbeat = std::chrono::milliseconds\((\d+)\)", timing, "timing.h"),
        "rtt": found(r"max_round_trip = std::chrono::milliseconds\((\d+)\)", timing, "timing.h"),
        "margin": found(r"margin = std::chrono::milliseconds\((\d+)\)", timing, "timing.h"),
        "election": found(r"election_timeout = std::chrono::milliseconds\((\d+)\)", timing, "timing.h"),
        "drift": found(r"max_clock_drift_ppm = ([\d']+)", timing, "timing.h").replace("'", ""),
    }
    for name, value in defaults.items():
        shown = found(rf"\b{name}: (\d+)", settings, "settings.js")
        check(shown == value, f"the page's default of {name} is {shown}, and the code's is {value}")
    numbers = {name: int(value) for name, value in defaults.items()}
    percent = numbers["drift"] // 10_000

    # What the tour says.
    check(found(r"D = (\d+) ms", told, "the tour") == defaults["lease"], "the tour tells another D")
    check(found(r"R = (\d+) ms", told, "the tour") == defaults["heartbeat"], "the tour tells another R")
    check(found(r"ρ = (\d+) %", told, "the tour") == str(percent), "the tour tells another rho")
    check(found(r"ρ says (\d+)", told, "the tour") == str(percent), "the tour tells another rho")
    rates = [abs(int(rate)) for rate in re.findall(r"\.drift\.\d\.(-?\d+)", told)]
    check(set(rates) == {numbers["drift"], 400_000}, f"the clocks of the tour run at {sorted(set(rates))} ppm")
    check("wrong by 40 %" in told, "the tour does not say by how much its clocks are wrong")

    # U, in the tour, in the code, and in the docs.
    plain = {"·": " * ", "ρ": "rho", "−": " - ", "σ": "sigma"}
    formula = found(r"U = (D·\(1−ρ\)/\(1\+ρ\) − σ)", told, "the tour")
    for sign, word in plain.items():
        formula = formula.replace(sign, word)
    formula = re.sub(r"\s+", "", formula)
    own = re.sub(r"\s+", "", found(r"safety:\s+U = (.*) > 0", timing, "timing.h"))
    check(formula == own, f"the tour says U = {formula}, and the code {own}")
    usable = numbers["lease"] * (1_000_000 - numbers["drift"]) / (1_000_000 + numbers["drift"]) - numbers["margin"]
    story = found(r"U\(D\) = (\d+\.\d+)ms", read("docs", "scenarios", "leader-lease.scenario"), "leader-lease.scenario")
    check(abs(float(story) - usable) < 0.001, f"the story says U = {story}, and the numbers give {usable:.3f}")
    check(f"every clock is wrong by {percent} %" in read("README.md"), "README.md tells another rho")

    # The docs of the lab.
    words = ["", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve",
             "Thirteen", "Fourteen", "Fifteen", "Sixteen"]
    stops = len(re.findall(r"^    title: ", tour, re.M))
    lab = read("docs", "lab.md")
    check(f"{words[stops]} stops" in lab, f"docs/lab.md does not say that the tour has {stops} stops")
    rules = read("lease", "README.md")
    first, last = re.search(r"rules (\d+)\s+to (\d+)", lab).groups()
    check(f"**{first}. " in rules and f"**{last}. " in rules, "docs/lab.md names rules that are not there")
    for name, places in (("recording.h", r"kRecordingRecordsMax = ([\d']+)"), ("recording.js", r"records: (\d+)")):
        text = read("lab", name) if name.endswith(".h") else read("lab", "page", name)
        check(found(places, text, name).replace("'", "") == "250000", f"{name} takes another number of records")
    # Of real processes: leases.md, by tests/process/leader_gap.py.
    gap = re.sub(r"\s+", " ", read("lab", "page", "gap.html"))
    measured = read("docs", "leases.md")
    for pattern, where in ((r"\| dies \| ([\d.]+ s)", "if it dies"),
                           (r"and drains \| ([\d.]+ s)", "if it gives the lock up"),
                           (r"warms up for 1 s \| ([\d.]+ s)", "if then the next one is cold")):
        figure = found(pattern, measured, "docs/leases.md")
        check(f"{figure} {where}" in gap, f"gap.html does not say {figure} {where}")
    check("1 s from its lease on" in gap and "warmup: 1000" in read("lab", "page", "gap.js"), "another warm-up")
    check("250,000 records, 48 MB and 16 replicas" in lab, "docs/lab.md tells other bounds of a trace")


if __name__ == "__main__":
    main()
