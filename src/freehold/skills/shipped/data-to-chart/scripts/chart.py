#!/usr/bin/env python3
"""chart.py DATA --x COLUMN --y COLUMN... [--kind line|bar|scatter] [--title TEXT] --out FILE: draws a chart as SVG."""

import argparse
import csv
import json
import math
import sys
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 20, 50, 70
COLOURS = ("#3b6fd4", "#d4713b", "#2f9e63", "#a04bc4", "#c23b5c", "#7a7a2a")


def read_rows(path: Path) -> list[dict[str, object]]:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".json":
        rows = json.loads(text)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise SystemExit(f"{path} is not a list of objects")
        return rows
    return list(csv.DictReader(text.splitlines()))


def to_number(value: object) -> float | None:
    try:
        number = float(str(value).replace(",", "").replace("%", "").strip())
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def make_ticks(low: float, high: float) -> list[float]:
    span = (high - low) or 1.0
    step = 10 ** math.floor(math.log10(span / 5))
    for factor in (1, 2, 5, 10):
        if span / (step * factor) <= 6:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def draw(rows: list[dict[str, object]], x: str, ys: list[str], kind: str, title: str) -> tuple[str, int]:
    points = [(row.get(x), [to_number(row.get(name)) for name in ys]) for row in rows]
    kept = [(label, values) for label, values in points if any(value is not None for value in values)]
    if not kept:
        raise SystemExit(f"No row has a number in {', '.join(ys)}")
    numbers = [value for _, values in kept for value in values if value is not None]
    low, high = min(numbers), max(numbers)
    if kind == "bar" or (low > 0 and low < high / 3):
        low = min(low, 0.0)
    high = high if high > low else low + 1
    places = [to_number(label) for label, _ in kept]
    by_value = kind == "scatter" and all(place is not None for place in places)
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def across(index: int) -> float:
        if by_value:
            first, last = min(places), max(places)
            return LEFT + wide * ((places[index] - first) / ((last - first) or 1))
        return LEFT + wide * (index + 0.5) / len(kept)

    def up(value: float) -> float:
        return TOP + tall * (1 - (value - low) / (high - low))

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title><desc>{escape(f'{kind} chart of {len(kept)} rows: {x} and ' + ', '.join(ys))}</desc>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="17" font-weight="600" fill="#222">{escape(title)}</text>',
    ]
    for tick in make_ticks(low, high):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end" fill="#444">{tick:g}</text>')
    for number, _ in enumerate(ys):
        colour = COLOURS[number % len(COLOURS)]
        seen = [(index, values[number]) for index, (_, values) in enumerate(kept) if values[number] is not None]
        if kind == "bar":
            width = wide / len(kept) * 0.8 / len(ys)
            for index, value in seen:
                left = across(index) - width * len(ys) / 2 + width * number
                top, bottom = sorted((up(value), up(max(low, 0.0))))
                out.append(
                    f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{max(bottom - top, 0.5):.1f}" fill="{colour}"/>'
                )
        elif kind == "line":
            path = " ".join(f"{across(index):.1f},{up(value):.1f}" for index, value in seen)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        else:
            out += [f'<circle cx="{across(i):.1f}" cy="{up(v):.1f}" r="3.5" fill="{colour}"/>' for i, v in seen]
        out.append(f'<rect x="{LEFT + number * 120}" y="{HEIGHT - 18}" width="12" height="12" fill="{colour}"/>')
        out.append(
            f'<text x="{LEFT + 18 + number * 120}" y="{HEIGHT - 8}" fill="#222">{escape(ys[number][:16])}</text>'
        )
    every = max(1, math.ceil(len(kept) / 10))
    for index in range(0, len(kept), every):
        label = escape(str(kept[index][0])[:14])
        out.append(
            f'<text x="{across(index):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#444">{label}</text>'
        )
    out.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 30}" text-anchor="end" fill="#666">{escape(x)}</text></svg>')
    return "\n".join(out) + "\n", len(rows) - len(kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--x", required=True)
    parser.add_argument("--y", action="append", required=True)
    parser.add_argument("--kind", choices=("line", "bar", "scatter"), default="line")
    parser.add_argument("--title")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = read_rows(given.data)
    known = sorted({name for row in rows for name in row})
    for name in (given.x, *given.y):
        if name not in known:
            raise SystemExit(f"There is no column {name!r}. The columns are: {', '.join(known)}")
    text, left_out = draw(rows, given.x, given.y, given.kind, given.title or f"{', '.join(given.y)} by {given.x}")
    given.out.write_text(text)
    print(f"Wrote {given.out}: {len(rows) - left_out} rows, {left_out} left out because they have no number.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
