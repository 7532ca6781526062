#!/usr/bin/env python3
"""A hundred hosts with a hundred thousand groups, on virtual time: what they cost at rest, and how soon all groups have
a lease again after a host, a zone or a disk is lost.

The program `fleet` runs real cores and the real promises between processes; networks, disks and processors are numbers.
Each event runs with beats of processes, and the loss of a host also with a heartbeat for each group."""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import results  # noqa: E402  pylint: disable=wrong-import-position

RUNS = [("shared", "host", "a host is lost"), ("shared", "death", "a process ends, and that is known"),
        ("shared", "zone", "a zone is lost"), ("shared", "slow", "a host has a fiftieth of its processor"),
        ("shared", "rolling", "hosts restart, one after the other"), ("own", "host", "a host is lost")]
BEATS = {"shared": "of processes", "own": "of each group"}
COLOURS = ["#1b6ca8", "#d1495b", "#2e7d32", "#b8860b"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 300, 70, 20, 36, 46


def run(options, beats, event):
    words = [str(options.program), "--hosts", str(options.hosts), "--groups", str(options.groups), "--beats", beats,
             "--event", event, "--rolled", str(options.rolled)]
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def row_of(found, title):
    after = found["after"]
    worst = max(range(len(after)), key=lambda i: after[i]["elected"])
    again = found.get("leased_again_s")
    led = found.get("led_there")
    if "restarts" in found:
        again = max(one["leased_again_s"] for one in found["restarts"])
        led = max(one["led"] for one in found["restarts"])
    return {"event": title, "beats": BEATS[found["beats"]], "groups led there": led,
            "all leased again after s": round(again, 2), "elected": sum(one["elected"] for one in after),
            "elected in the worst 50 ms": after[worst]["elected"],
            "MB sent in the worst 50 ms": round(max(one["bytes"] for one in after) / 1e6, 2)}


def rest_row(found):
    rest = found["at_rest"]
    return {"beats": BEATS[found["beats"]], "hosts": found["hosts"], "groups": found["groups"],
            "messages a second": round(rest["messages"]), "frames a second": round(rest["frames"]),
            "MB a second": round(rest["bytes"] / 1e6, 2),
            "messages a second and host": round(rest["messages"] / found["hosts"]),
            "all leased after the start, s": round(found["start_s"], 2)}


def ticks(most):
    step = 10 ** len(str(int(most))) / 10 if most >= 1 else 0.1
    for part in (1, 2, 5, 10):
        if most / (step * part / 10) <= 6:
            step = step * part / 10
            break
    count = int(most / step + 1e-9)
    return [i * step for i in range(count + 1)]


def plot(path, title, curves, unit):
    """`curves`: [(name, [(seconds, value)])]."""
    last = max(points[-1][0] for _, points in curves)
    most = max(value for _, points in curves for _, value in points) or 1
    inner, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(second, value):
        return f"{LEFT + inner * second / last:.1f},{TOP + tall * (1 - value / most):.1f}"

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12"><title>{title}</title><rect width="100%" height="100%" fill="white"/>']
    for value in ticks(most):
        y = TOP + tall * (1 - value / most)
        out.append(f'<path d="M{LEFT} {y:.1f}h{inner}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
    for second in ticks(last):
        x = LEFT + inner * second / last
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - 26}" text-anchor="middle">{second:g}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">seconds</text>'
               f'<text x="12" y="{TOP + tall / 2}" transform="rotate(-90 12 {TOP + tall / 2})" '
               f'text-anchor="middle">{unit}</text>')
    for i, (name, points) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(place(*point) for point in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
                   f'<text x="{LEFT + inner * i / len(curves):.0f}" y="20" fill="{colour}">{name}</text>')
    out.append("</svg>")
    path.write_text("\n".join(out) + "\n", encoding="utf-8")


def figures(options, found):
    def without(beats, event):
        one = found[beats, event]
        return [(at["s"], one["groups"] - at["leased"]) for at in one["after"]]

    def megabytes(beats, event):
        return [(at["s"], at["bytes"] * 20e-6) for at in found[beats, event]["after"]]

    folder = options.figures
    plot(folder / "fleet-host.svg", "Groups without a lease, after the loss of a host",
         [("beats of processes", without("shared", "host")),
          ("a heartbeat for each group", without("own", "host")),
          ("the end is known", without("shared", "death"))], "groups without a lease")
    plot(folder / "fleet-zone.svg", "Groups without a lease, after the loss of a zone",
         [("beats of processes", without("shared", "zone"))], "groups without a lease")
    if ("shared", "rolling") in found:
        plot(folder / "fleet-rolling.svg", "Groups without a lease, while hosts restart",
             [("beats of processes", without("shared", "rolling"))], "groups without a lease")
    plot(folder / "fleet-bytes.svg", "Bytes, around the loss of a host",
         [("beats of processes", megabytes("shared", "host")),
          ("a heartbeat for each group", megabytes("own", "host"))], "MB a second")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bench" / "bench" / "fleet")
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--rolled", type=int, default=10, help="hosts that are restarted")
    parser.add_argument("--results", type=pathlib.Path, help="write the tables as JSON, as results/fleet.json is")
    parser.add_argument("--figures", type=pathlib.Path, help="write the plots to this folder")
    parser.add_argument("--quick", action="store_true", help="without the slow host and the rolling restart")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder of runs: those in it are not run again")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    found, events, rest = {}, [], {}
    for beats, event, title in RUNS:
        if options.quick and event in ("slow", "rolling"):
            continue
        kept = options.keep / f"{beats}-{event}.json" if options.keep else None
        if kept and kept.exists():
            found[beats, event] = json.loads(kept.read_text(encoding="utf-8"))
        else:
            found[beats, event] = run(options, beats, event)
            if kept:
                kept.write_text(json.dumps(found[beats, event]), encoding="utf-8")
        events.append(row_of(found[beats, event], title))
        rest[beats] = rest_row(found[beats, event])
        print(json.dumps(events[-1]), flush=True)
    for row in rest.values():
        print(json.dumps(row))
    if options.results:
        command = "python3 bench/fleet.py --results results/fleet.json" + (" --quick" if options.quick else "")
        results.write(str(options.results), "many hosts with many groups, on virtual time, with real cores",
                      datetime.date.today().isoformat(), command,
                      ["D 1 s, heartbeat 100 ms, election timeout 300 ms, clocks that may be off by 10 %",
                       "a frame takes 0.5 ms, a sync 1 ms; a host needs 10 us for a frame and 3 us for a message",
                       *([] if options.quick else [f"hosts that restart one after the other: {options.rolled}"])],
                      [("At rest", list(rest.values())), ("When something happens", events)])
    if options.figures:
        os.makedirs(options.figures, exist_ok=True)
        figures(options, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
