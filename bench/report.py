"""What a run found: the rows of its table, and the same as JSON."""

import json

from stats import compared, difference

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


class Report:
    """Rows of the table, and the same as JSON."""

    def __init__(self):
        self.rows = []
        self.open_rows = []
        self.results = {}

    def series(self, name, series, floor_name=None, floor=None, goal=None):
        histogram = series.all
        p50, p90, p99, p999 = histogram.quantiles([0.5, 0.9, 0.99, 0.999])
        entry = {"unit": "ns", "count": histogram.count, "p50": p50, "p90": p90, "p99": p99,
                 "p99.9": p999, "max": max(histogram.counts), "slots": histogram.slots(),
                 "block_p50": [block.quantile(0.5) for block in series.blocks]}
        if series.operations:
            entry["server_cpu_ns_per_operation"] = series.cpu_ns // series.operations
        ratios = {}
        if floor is not None:
            for label, q in (("p50", 0.5), ("p99", 0.99)):
                ratios[label] = compared(series.blocks, floor.blocks, q)
            entry["floor"] = floor_name
            entry["ratio"] = {label: dict(zip(("value", "low", "high"), ratio))
                              for label, ratio in ratios.items()}
        verdict = None
        if goal is not None:
            entry["goal_p50"] = goal
            verdict = ratios["p50"][2] <= goal
            entry["met"] = verdict
        self.results[name] = entry
        self.rows.append((name, p50, p99, entry.get("server_cpu_ns_per_operation"), floor_name,
                          ratios.get("p50"), ratios.get("p99"), goal, verdict))

    def open_row(self, kind, rate, target, histogram):
        quantiles = histogram.quantiles(QUANTILES.values())
        self.open_rows.append((kind, rate, target, quantiles))
        self.results[f"open loop, {kind} at {rate}/s: {target}"] = {
            "unit": "ns", "count": histogram.count,
            **dict(zip(QUANTILES, quantiles)), "slots": histogram.slots()}

    def value(self, name, value, unit, goal=None):
        entry = {"value": value, "unit": unit}
        if goal is not None:
            entry["goal"] = goal
            entry["met"] = value <= goal
        self.results[name] = entry

    def difference(self, name, series, floor, goal_us=None):
        """Of the medians, in microseconds."""
        value, low, high = (ns / 1000 for ns in compared(series.blocks, floor.blocks, how=difference))
        entry = {"value": round(value, 3), "low": round(low, 3), "high": round(high, 3), "unit": "us"}
        if goal_us is not None:
            entry.update(goal=goal_us, met=high <= goal_us)
        self.results[name] = entry

    def table(self):
        def ratio_text(ratio):
            return "" if ratio is None else f"{ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}]"

        lines = [f"| {'measure':<30} | {'p50 us':>8} | {'p99 us':>8} | {'CPU us':>6} | "
                 f"{'against':<14} | {'ratio of p50':<19} | {'ratio of p99':<19} | goal |      |",
                 f"|{'-' * 32}|{'-' * 9}:|{'-' * 9}:|{'-' * 7}:|{'-' * 16}|{'-' * 21}|{'-' * 21}|"
                 f"-----:|------|"]
        for name, p50, p99, cpu, floor, of_p50, of_p99, goal, verdict in self.rows:
            goal_text = "" if goal is None else f"{goal:.3g}"
            met = {None: "", True: "met", False: "MISS"}[verdict]
            cpu_text = "" if cpu is None else f"{cpu / 1000:.1f}"
            lines.append(f"| {name:<30} | {p50 / 1000:8.3f} | {p99 / 1000:8.3f} | {cpu_text:>6} | "
                         f"{floor or '':<14} | {ratio_text(of_p50):<19} | {ratio_text(of_p99):<19} "
                         f"| {goal_text:>4} | {met:<4} |")
        if self.open_rows:
            quantile_names = " | ".join(f"{name + ' us':>8}" for name in QUANTILES)
            lines += ["", "Open loop: latency from the instant at which a request was due.", "",
                      f"| {'load':<15} | {'target':<14} | {quantile_names} |",
                      f"|{'-' * 17}|{'-' * 16}|" + f"{'-' * 9}:|" * len(QUANTILES)]
        for kind, rate, target, quantiles in self.open_rows:
            shown = " | ".join(f"{value / 1000:8.1f}" for value in quantiles)
            lines.append(f"| {kind:<6} {rate:>6}/s | {target:<14} | {shown} |")
        lines.append("")
        for name, entry in self.results.items():
            if "value" in entry:
                goal = ""
                if "goal" in entry:
                    goal = f"  (goal {entry['goal']:g}: {'met' if entry['met'] else 'MISS'})"
                interval = f" [{entry['low']:g}, {entry['high']:g}]" if "low" in entry else ""
                lines.append(f"- {name}: {entry['value']:g}{interval} {entry['unit']}{goal}")
        return "\n".join(lines)

    def goals(self):
        """What a goal was set for, with the bad end of its interval where there is one."""
        lines = [f"| {'goal':<62} | {'found':>8} | {'at most':>8} |      |",
                 f"|{'-' * 64}|{'-' * 9}:|{'-' * 9}:|------|"]
        for name, entry in self.results.items():
            if "met" not in entry:
                continue
            found = entry.get("high", entry["value"]) if "value" in entry else entry["ratio"]["p50"]["high"]
            goal = entry["goal"] if "goal" in entry else entry["goal_p50"]
            what = name if "value" in entry else f"{name} / {entry['floor']}, median"
            lines.append(f"| {what:<62} | {found:>8.4g} | {goal:>8.4g} | {'met' if entry['met'] else 'MISS':<4} |")
        return "\n".join(lines)

    def misses(self):
        return [name for name, entry in self.results.items() if entry.get("met") is False]

    def conclude(self, out, about):
        """Writes everything to the file `out`, with what `about` says of the run, and says what was
        missed. Returns the exit status."""
        misses = self.misses()
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({**about, "misses": misses, "results": self.results}) + "\n")
        print(f"\nwritten to {out}", flush=True)
        if misses:
            print("missed: " + ", ".join(misses), flush=True)
        return 1 if misses else 0
