"""What a run found: the rows of its table, and the same as JSON."""

import json

import goals as g
from stats import compared, compared_shares, difference, share

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def interval_json(interval):
    return dict(zip(("value", "low", "high"), interval))


class Report:
    """Rows of the table, and the same as JSON. `goals`: those of the run; rows may add theirs."""

    def __init__(self, goals=()):
        self.rows = []
        self.open_rows = []
        self.results = {}
        self.goals = list(goals)

    def series(self, name, series, floor_name=None, floor=None, goal=None):
        """`goal`: at most this ratio of the medians."""
        histogram = series.all
        p50, p90, p99, p999 = histogram.quantiles([0.5, 0.9, 0.99, 0.999])
        entry = {"unit": "ns", "count": histogram.count, "p50": p50, "p90": p90, "p99": p99,
                 "p99.9": p999, "max": max(histogram.counts), "slots": histogram.slots(),
                 "block_p50": [block.quantile(0.5) for block in series.blocks]}
        if series.cpu:
            entry["server_cpu_ns_per_operation"] = interval_json(share(series.cpu))
        ratios = {}
        if floor is not None:
            for label, q in (("p50", 0.5), ("p99", 0.99)):
                ratios[label] = compared(series.blocks, floor.blocks, q)
            if series.cpu and floor.cpu:
                ratios["cpu"] = compared_shares(series.cpu, floor.cpu)
            if series.rates and floor.rates:
                ratios["rate"] = compared_shares(series.rates, floor.rates)
            entry["floor"] = floor_name
            entry["ratio"] = {label: interval_json(ratio) for label, ratio in ratios.items()}
        if goal is not None:
            self.goals.append(g.Goal(f"{name} / {floor_name}, median", name, "p50", goal))
        self.results[name] = entry
        self.row(name, entry)

    def row(self, name, entry):
        """In the place of an earlier one of that name."""
        ratios = {label: (ratio["value"], ratio["low"], ratio["high"])
                  for label, ratio in entry.get("ratio", {}).items()}
        self.rows = [row for row in self.rows if row[0] != name]
        self.rows.append((name, entry["p50"], entry["p99"], entry.get("server_cpu_ns_per_operation"),
                          entry.get("floor"), ratios))

    def take(self, results):
        """What an earlier run found, as its JSON has it."""
        for name, entry in results.items():
            self.results[name] = entry
            if "block_p50" in entry:
                self.row(name, entry)

    def open_row(self, kind, rate, target, histogram):
        quantiles = histogram.quantiles(QUANTILES.values())
        self.open_rows.append((kind, rate, target, quantiles, ""))
        self.results[f"open loop, {kind} at {rate}/s: {target}"] = {
            "unit": "ns", "count": histogram.count,
            **dict(zip(QUANTILES, quantiles)), "slots": histogram.slots()}

    def discarded(self, kind, rate, target, reason):
        """A row of the open loop that is not quoted, because it shows the harness."""
        self.open_rows.append((kind, rate, target, (), reason))
        self.results[f"open loop, {kind} at {rate}/s: {target}"] = {"discarded": reason}

    def value(self, name, value, unit, goal=None):
        """`goal`: at most this."""
        self.results[name] = {"value": value, "unit": unit}
        if goal is not None:
            self.goals.append(g.Goal(f"{name}{', ' if unit else ''}{unit}", name, "value", goal))

    def interval(self, name, interval, unit):
        """`interval`: value, low and high."""
        self.results[name] = {**interval_json(float(f"{one:.4g}") for one in interval), "unit": unit}

    def difference(self, name, series, floor):
        """Of the medians, in microseconds."""
        value, low, high = (ns / 1000 for ns in compared(series.blocks, floor.blocks, how=difference))
        self.results[name] = {"value": round(value, 3), "low": round(low, 3), "high": round(high, 3), "unit": "us"}

    def table(self):
        def interval_text(ratio):
            return "" if ratio is None else f"{ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}]"

        def cpu_text(cpu):
            return "" if cpu is None else f"{cpu['value'] / 1e3:.1f} [{cpu['low'] / 1e3:.1f}, {cpu['high'] / 1e3:.1f}]"

        lines = [f"| {'measure':<30} | {'p50 us':>8} | {'p99 us':>8} | {'CPU us':<20} | {'against':<14} | "
                 f"{'ratio of p50':<19} | {'ratio of p99':<19} | {'ratio of CPU':<19} | {'ratio of rates':<19} |",
                 f"|{'-' * 32}|{'-' * 9}:|{'-' * 9}:|{'-' * 22}|{'-' * 16}|" + f"{'-' * 21}|" * 4]
        for name, p50, p99, cpu, floor, ratios in self.rows:
            shown = " | ".join(f"{interval_text(ratios.get(label)):<19}" for label in ("p50", "p99", "cpu", "rate"))
            lines.append(f"| {name:<30} | {p50 / 1000:8.3f} | {p99 / 1000:8.3f} | {cpu_text(cpu):<20} | "
                         f"{floor or '':<14} | {shown} |")
        lines += self.open_table()
        lines.append("")
        for name, entry in self.results.items():
            if "value" in entry:
                interval = f" [{entry['low']:g}, {entry['high']:g}]" if "low" in entry else ""
                lines.append(f"- {name}: {entry['value']:g}{interval} {entry['unit']}".rstrip())
        return "\n".join(lines)

    def measured(self):
        """The rows, for results/."""
        def text(ratio):
            return None if ratio is None else f"{ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}]"

        # An earlier run may have the row of what this one has thrown away.
        rows = [row for row in self.rows if "discarded" not in self.results[row[0]]]
        return [{"measure": name, "p50 us": round(p50 / 1000, 3), "p99 us": round(p99 / 1000, 3),
                 "CPU us": cpu and round(cpu["value"] / 1000, 1), "against": floor,
                 **{f"ratio of {label}": text(ratios.get(label)) for label in ("p50", "p99", "cpu", "rate")}}
                for name, p50, p99, cpu, floor, ratios in rows]

    def numbers(self):
        """What is one number each, for results/."""
        return [{"measure": name, "found": g.found_text((entry["value"], entry.get("low", entry["value"]),
                                                         entry.get("high", entry["value"]))), "unit": entry["unit"]}
                for name, entry in self.results.items() if "value" in entry]

    def open_table(self):
        if not self.open_rows:
            return []
        quantile_names = " | ".join(f"{name + ' us':>8}" for name in QUANTILES)
        lines = ["", "Open loop: latency from the instant at which a request was due.", "",
                 f"| {'load':<15} | {'target':<14} | {quantile_names} |",
                 f"|{'-' * 17}|{'-' * 16}|" + f"{'-' * 9}:|" * len(QUANTILES)]
        for kind, rate, target, quantiles, reason in self.open_rows:
            shown = " | ".join(f"{value / 1000:8.1f}" for value in quantiles) or f"thrown away: {reason}"
            lines.append(f"| {kind:<6} {rate:>6}/s | {target:<14} | {shown} |")
        return lines

    def verdicts(self):
        return [g.judge(goal, self.results) for goal in self.goals]

    def goals_table(self):
        return g.table(self.verdicts())

    def tell(self):
        print(f"\n{self.table()}\n\n{self.goals_table()}", flush=True)

    def conclude(self, out, about):
        """Writes everything to the file `out`, with what `about` says of the run, and says what was
        missed and by how much. Returns the exit status."""
        verdicts = self.verdicts()
        missed = [verdict.goal.what for verdict in verdicts if verdict.state == "missed"]
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({**about, "goals": [verdict.as_json() for verdict in verdicts], "misses": missed,
                                   "results": self.results}) + "\n")
        print(f"\nwritten to {out}", flush=True)
        if verdicts:
            print(g.summary(verdicts), flush=True)
        return 1 if missed else 0
