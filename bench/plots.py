"""Draws the growth curves of results/growth.json as SVG. One file serves a light and a dark page: its style asks which
it is on. Both axes are logarithmic: a cost that does not grow with what it is drawn over is a level line."""

import html
import math

# By file: the table, its column of x and the name of that axis, the axis of y, and the columns that are lines.
PLOTS = {
    "growth-connections": ("Connections", "connections", "connections", "reads a second",
                           ("lease reads a second", "Redis, reads a second")),
    "growth-writers": ("Writers", "writers", "writes under way", "writes a second",
                       ("writes a second", "without consensus, writes a second")),
    "growth-members": ("Members", "members", "members", "microseconds, median",
                       ("lease read us", "write us", "write of 64 us")),
    "growth-values": ("Values", "bytes", "bytes of a value", "microseconds, median",
                      ("lease read us", "write us", "Redis, read us", "without consensus, write us")),
    "growth-keys": ("Keys", "keys", "keys", "microseconds, median", ("lease read us", "write us")),
    "growth-behind": ("Entries behind", "entries", "entries that a restarted follower lacks",
                      "seconds until it has all", ("seconds",)),
    "growth-leases": ("Leases", "leases", "leases, each renewed in every third of its time to live", "% of a core",
                      ("leader, % of a core", "follower, % of a core")),
}
TITLES = {
    "growth-connections": "Lease reads a second, by connections",
    "growth-writers": "Writes a second, by how many are under way",
    "growth-members": "One read and one write, by the members of the group",
    "growth-values": "One read and one write, by the size of the value",
    "growth-keys": "One read and one write, by the keys in the store",
    "growth-behind": "A follower that comes back, by the entries that it lacks",
    "growth-leases": "Renewals of leases, by how many leases there are",
}

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, ROW = 760, 380, 76, 24, 40, 50, 20
# Of the paper, the text, the grid, and the lines.
LIGHT = ("#ffffff", "#24292f", "#d8dee4", "#1b6ca8", "#d1495b", "#2e7d32", "#8a6100")
DARK = ("#0d1117", "#e6edf3", "#30363d", "#6cb6ff", "#ff8a94", "#7ee787", "#e3b341")


def rules(colours):
    """Without variables, which not all that draw SVG know."""
    paper, ink, grid, *lines = colours
    return (f".paper{{fill:{paper}}}text{{fill:{ink}}}.grid{{stroke:{grid}}}"
            + "".join(f".s{i}{{stroke:{line}}}.f{i}{{fill:{line}}}" for i, line in enumerate(lines)))


STYLE = f"""<style>
text{{font:13px sans-serif}}.title{{font:bold 15px sans-serif}}.line{{fill:none;stroke-width:2}}
{rules(LIGHT)}
@media (prefers-color-scheme:dark){{{rules(DARK)}}}
</style>"""


def short(value):
    """1,500 as 1.5k: a tick has little room."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit and value * 10 % unit == 0:
            return f"{value / unit:g}{name}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def size(value):
    """Bytes: 131,072 as 128 KiB."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit and value % unit == 0:
            return f"{value // unit} {name}"
    return f"{value} B"


def steps(low, high):
    """Round numbers from the one at or below `low` to the one at or above `high`: 1, 2, 5 of each power of ten; the
    powers alone where there would be many."""
    parts = (1, 2, 5) if high / low < 1000 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = [part * 10.0 ** power for power in range(first, last + 1) for part in parts]
    begin = max((i for i, mark in enumerate(marks) if mark <= low * 1.0001), default=0)
    end = min((i for i, mark in enumerate(marks) if mark >= high * 0.9999), default=len(marks) - 1)
    if begin == end:
        begin, end = max(begin - 1, 0), min(end + 1, len(marks) - 1)
    return [float(f"{mark:.6g}") for mark in marks[begin:end + 1]]


def points_of(rows, x_name, column):
    return [(row[x_name], row[column]) for row in rows if row.get(column)]


def drawing(name, rows):
    """The SVG of one plot, from the rows of its table."""
    _, x_name, x_text, y_text, columns = PLOTS[name]
    curves = [(column, points_of(rows, x_name, column)) for column in columns]
    curves = [(column, points) for column, points in curves if points]
    xs = sorted({x for _, points in curves for x, _ in points})
    values = [y for _, points in curves for _, y in points]
    marks = steps(min(values), max(values))
    bottom = HEIGHT - BOTTOM
    tall = HEIGHT + ROW * len(curves)

    def x_of(x):
        if len(xs) == 1:
            return (LEFT + WIDTH - RIGHT) / 2
        return LEFT + 16 + (WIDTH - RIGHT - LEFT - 32) * math.log(x / xs[0]) / math.log(xs[-1] / xs[0])

    def y_of(y):
        return bottom - (bottom - TOP) * math.log(y / marks[0]) / math.log(marks[-1] / marks[0])

    title = html.escape(TITLES[name])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" role="img"><title>{title}</title>',
           STYLE,
           f'<rect class="paper" width="{WIDTH}" height="{tall}"/><text class="title" x="{LEFT}" y="22">{title}</text>']
    for mark in marks:
        out.append(f'<path class="grid" d="M{LEFT} {y_of(mark):.1f}H{WIDTH - RIGHT}"/>'
                   f'<text x="{LEFT - 8}" y="{y_of(mark) + 4:.1f}" text-anchor="end">{short(mark)}</text>')
    for x in xs:
        out.append(f'<path class="grid" d="M{x_of(x):.1f} {TOP}V{bottom}"/>'
                   f'<text x="{x_of(x):.1f}" y="{bottom + 18}" text-anchor="middle">'
                   f"{size(x) if x_name == 'bytes' else short(x)}</text>")
    middle = (TOP + bottom) / 2
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{bottom + 38}" text-anchor="middle">'
               f"{html.escape(x_text)}</text>"
               f'<text x="18" y="{middle:.0f}" transform="rotate(-90 18 {middle:.0f})" text-anchor="middle">'
               f"{html.escape(y_text)}</text>")
    for i, (column, points) in enumerate(curves):
        places = [(x_of(x), y_of(y)) for x, y in points]
        out.append(f'<polyline class="line s{i}" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in places) + '"/>'
                   + "".join(f'<circle class="f{i}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places))
        row = HEIGHT + ROW * i + 4
        out.append(f'<rect class="f{i}" x="{LEFT}" y="{row - 9}" width="16" height="8"/>'
                   f'<text x="{LEFT + 24}" y="{row}">{html.escape(column)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def drawings(found):
    """By name of the file: the SVG of each plot of results/growth.json whose table is there."""
    tables = {table["title"]: table["rows"] for table in found["tables"]}
    return {name: drawing(name, tables[plot[0]]) for name, plot in PLOTS.items() if plot[0] in tables}
