#!/usr/bin/env python3
"""document.py outline FILE | part FILE HEADING | check FILE: the shape of a long Markdown document, and its slips."""

import re
import sys
from collections import defaultdict
from pathlib import Path

HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")


def read_headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """Line, depth and text. What stands in a code block is none."""
    found, fence = [], None
    for number, line in enumerate(lines, 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark:
            fence = None if fence and mark[1].startswith(fence) else fence or mark[1]
        elif fence is None and (heading := HEADING.match(line)):
            found.append((number, len(heading[1]), heading[2]))
    return found


def anchor(text: str) -> str:
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())


def outline(lines: list[str]) -> None:
    headings = read_headings(lines)
    for index, (number, depth, text) in enumerate(headings):
        end = headings[index + 1][0] - 1 if index + 1 < len(headings) else len(lines)
        words = sum(len(line.split()) for line in lines[number:end])
        print(f"{number:6} {'  ' * (depth - 1)}{text}  ({words} words)")


def part(lines: list[str], wanted: str) -> int:
    headings = read_headings(lines)
    for index, (number, depth, text) in enumerate(headings):
        if wanted.lower() in text.lower():
            ends = [line for line, other, _ in headings[index + 1 :] if other <= depth]
            print("\n".join(lines[number - 1 : (ends[0] - 1) if ends else len(lines)]))
            return 0
    print(f"There is no heading with {wanted!r}", file=sys.stderr)
    return 1


def check(lines: list[str]) -> int:
    headings, found = read_headings(lines), []
    places: dict[str, list[int]] = defaultdict(list)
    depth = 0
    for number, level, text in headings:
        places[anchor(text)].append(number)
        if level > depth + 1 and depth:
            found.append(f"{number}: the heading {text!r} skips a level")
        depth = level
    found += [
        f"{numbers[1]}: the same heading as in line {numbers[0]}" for numbers in places.values() if len(numbers) > 1
    ]
    spellings: dict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(lines, 1):
        found += [
            f"{number}: no section for the link #{one}"
            for one in re.findall(r"\]\(#([^)]+)\)", line)
            if one not in places
        ]
        found += [
            f"{number}: the word {one[0]!r} stands twice"
            for one in re.findall(r"\b(\w{2,}) (\1)\b", line, re.IGNORECASE)
        ]
        for word in re.findall(r"\b[A-Za-z][A-Za-z]+(?:[- ]?[A-Z][a-z]+)*\b", line):
            if re.search(r"[a-z][A-Z]|-", word):
                spellings[re.sub(r"[- ]", "", word).lower()].add(word)
    found += [f"several spellings: {', '.join(sorted(words))}" for words in spellings.values() if len(words) > 1]
    print("\n".join(found) or "No slips found.")
    return 1 if found else 0


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1] not in ("outline", "part", "check"):
        raise SystemExit(__doc__)
    lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    if sys.argv[1] == "outline":
        outline(lines)
        return 0
    return part(lines, sys.argv[3]) if sys.argv[1] == "part" else check(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
