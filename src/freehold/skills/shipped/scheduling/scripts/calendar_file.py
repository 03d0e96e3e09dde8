#!/usr/bin/env python3
"""calendar_file.py list|free|make: reads and writes calendar files (iCalendar)."""

import argparse
import re
import sys
import uuid
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
MAX_REPEATED = 2000


def read_lines(path: Path) -> list[str]:
    """Long lines are folded: what begins with a space goes on."""
    return re.sub(r"\r?\n[ \t]", "", path.read_text(encoding="utf-8", errors="replace")).splitlines()


def read_moment(name: str, value: str, zone: ZoneInfo) -> datetime:
    named = re.search(r"TZID=\"?([^;:\"]+)", name)
    if re.fullmatch(r"\d{8}", value):
        return datetime.strptime(value, "%Y%m%d").replace(tzinfo=zone)
    found = datetime.strptime(value.rstrip("Z"), "%Y%m%dT%H%M%S")
    if value.endswith("Z"):
        return found.replace(tzinfo=UTC)
    try:
        return found.replace(tzinfo=ZoneInfo(named[1]) if named else zone)
    except (ZoneInfoNotFoundError, ValueError):
        print(f"The time zone {named[1]} is not known; {zone.key} is used", file=sys.stderr)
        return found.replace(tzinfo=zone)


def read_length(text: str) -> timedelta:
    found = re.fullmatch(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", text)
    weeks, days, hours, minutes, seconds = (int(one or 0) for one in found.groups()) if found else (0, 0, 1, 0, 0)
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def repeat(start: datetime, rule: dict[str, str], last: datetime, title: str) -> list[datetime]:
    simple = {"FREQ", "COUNT", "UNTIL", "INTERVAL", "BYDAY", "WKST"}
    if (
        rule.get("FREQ") not in ("DAILY", "WEEKLY")
        or set(rule) - simple
        or (rule["FREQ"] == "DAILY" and "BYDAY" in rule)
    ):
        print(f"Not expanded, only its first time is known: {title}", file=sys.stderr)
        return [start]
    days = rule["BYDAY"].split(",") if "BYDAY" in rule else [DAYS[start.weekday()]]
    if rule["FREQ"] == "WEEKLY" and not set(days) <= set(DAYS):
        print(f"Not expanded, only its first time is known: {title}", file=sys.stderr)
        return [start]
    step, most = int(rule.get("INTERVAL", 1)), int(rule.get("COUNT", MAX_REPEATED))
    until = read_moment("", rule["UNTIL"], start.tzinfo) if "UNTIL" in rule else last
    found: list[datetime] = []
    week = start.date() - timedelta(days=start.weekday())
    for number in range(MAX_REPEATED):
        if rule["FREQ"] == "DAILY":
            dates = [start.date() + timedelta(days=number * step)]
        else:
            dates = sorted(week + timedelta(weeks=number * step, days=DAYS.index(day)) for day in days)
        for one in dates:
            moment = datetime.combine(one, start.time(), start.tzinfo)
            if moment < start:
                continue
            if moment > min(until, last) or len(found) >= min(most, MAX_REPEATED):
                return found
            found.append(moment)
    return found


def read_events(path: Path, zone: ZoneInfo, last: datetime) -> list[tuple[datetime, datetime, str]]:
    found, event = [], None
    for line in read_lines(path):
        name, _, value = line.partition(":")
        key = name.split(";")[0].upper()
        if line == "BEGIN:VEVENT":
            event = {}
        elif line == "END:VEVENT" and event is not None:
            if (
                "DTSTART" in event
                and event.get("STATUS", ("", ""))[1] != "CANCELLED"
                and event.get("TRANSP", ("", ""))[1] != "TRANSPARENT"
            ):
                found += expand(event, zone, last)
            event = None
        elif event is not None:
            event.setdefault(key, (name, value))
    return sorted(found)


def expand(event: dict[str, tuple[str, str]], zone: ZoneInfo, last: datetime) -> list[tuple[datetime, datetime, str]]:
    start = read_moment(*event["DTSTART"], zone)
    title = re.sub(r"\\(.)", r"\1", event.get("SUMMARY", ("", "(no title)"))[1])
    if "DTEND" in event:
        length = read_moment(*event["DTEND"], zone) - start
    elif "DURATION" in event:
        length = read_length(event["DURATION"][1])
    else:
        length = timedelta(days=1) if re.fullmatch(r"\d{8}", event["DTSTART"][1]) else timedelta()
    rule = dict(one.split("=", 1) for one in event["RRULE"][1].split(";") if "=" in one) if "RRULE" in event else None
    starts = [start] if rule is None else repeat(start, rule, last, title)
    left_out = (
        {read_moment(event["EXDATE"][0], one, zone) for one in event["EXDATE"][1].split(",")}
        if "EXDATE" in event
        else set()
    )
    return [(one, one + length, title) for one in starts if one not in left_out]


def find_free(
    events: list[tuple[datetime, datetime, str]], day: date, zone: ZoneInfo, hours: tuple[int, int], minutes: int
) -> list[tuple[datetime, datetime]]:
    at, end = datetime.combine(day, time(hours[0]), zone), datetime.combine(day, time(hours[1] % 24), zone)
    if hours[1] == 24:
        end += timedelta(days=1)
    free = []
    for start, stop, _ in events:
        if stop <= at or start >= end:
            continue
        if start - at >= timedelta(minutes=minutes):
            free.append((at, start))
        at = max(at, stop)
    if end - at >= timedelta(minutes=minutes):
        free.append((at, end))
    return free


def make(given: argparse.Namespace, zone: ZoneInfo) -> None:
    start = datetime.fromisoformat(given.start).replace(tzinfo=zone).astimezone(UTC)
    end = start + timedelta(minutes=given.minutes)
    title = re.sub(r"([\\;,])", r"\\\1", given.title).replace("\n", " ")
    lines = [
        *("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Freehold//skills//EN", "BEGIN:VEVENT", f"UID:{uuid.uuid4()}"),
        *(
            f"DTSTAMP:{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
            f"DTSTART:{start:%Y%m%dT%H%M%SZ}",
            f"DTEND:{end:%Y%m%dT%H%M%SZ}",
        ),
        *(f"SUMMARY:{title}", "END:VEVENT", "END:VCALENDAR", ""),
    ]
    given.out.write_text("\r\n".join(lines), newline="")
    print(
        f"Wrote {given.out}: {given.title}, {start.astimezone(zone):%A %Y-%m-%d %H:%M} {zone.key}, {given.minutes} minutes"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    acts = parser.add_subparsers(dest="act", required=True)
    for name in ("list", "free"):
        one = acts.add_parser(name)
        one.add_argument("files", type=Path, nargs="+")
        one.add_argument("--from", dest="first", type=date.fromisoformat, required=True)
        one.add_argument("--days", type=int, default=7)
        one.add_argument("--zone", default="UTC")
        one.add_argument("--hours", default="9-17")
        one.add_argument("--minutes", type=int, default=30)
    new = acts.add_parser("make")
    new.add_argument("title")
    new.add_argument("start")
    new.add_argument("minutes", type=int)
    new.add_argument("--zone", default="UTC")
    new.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    try:
        zone = ZoneInfo(given.zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise SystemExit(f"There is no time zone {given.zone!r}. Such as Europe/Berlin.") from None
    if given.act == "make":
        make(given, zone)
        return 0
    begin = datetime.combine(given.first, time(), zone)
    last = begin + timedelta(days=given.days)
    events = sorted(one for file in given.files for one in read_events(file, zone, last))
    if given.act == "list":
        for start, stop, title in events:
            if stop > begin and start < last:
                print(f"{start.astimezone(zone):%a %Y-%m-%d %H:%M}-{stop.astimezone(zone):%H:%M} {title}")
        return 0
    first, _, second = given.hours.partition("-")
    for number in range(given.days):
        day = given.first + timedelta(days=number)
        for start, stop in find_free(events, day, zone, (int(first), int(second)), given.minutes):
            print(f"{start.astimezone(zone):%a %Y-%m-%d %H:%M}-{stop.astimezone(zone):%H:%M}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
