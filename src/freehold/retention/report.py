"""Reads the rules from the manifest, and from the home what they have done so far. Blocking; changes nothing."""

from dataclasses import dataclass
from pathlib import Path

from freehold.egress.models.usage_rollup import find_last_sum
from freehold.history.set_aside import measure_set_aside
from freehold.history.settings import HistorySettings
from freehold.home import Home
from freehold.keeper.settings import LogLimits
from freehold.manifest import Manifest
from freehold.strict_json import IsoTime
from freehold.timeline import Timeline
from freehold.timeline.archive import archive_folder
from freehold.timeline.archiver import MIN_LIVE

DAY = 86_400


@dataclass(frozen=True)
class RetentionRule:
    """One kind of record. `name` is fixed; the rest is for the owner.

    `kept` says how long, `now` what there is (empty when nothing is measured). `last_archived` is when old records
    were last moved to an archive, in UTC; null when that never happened. `setting` is the name in freehold.toml that
    changes the rule; null when nothing does.
    """

    name: str
    title: str
    kept: str
    now: str
    last_archived: IsoTime | None
    where: tuple[str, ...]
    setting: str | None


@dataclass(frozen=True)
class RetentionReport:
    rules: tuple[RetentionRule, ...]


def read_retention(home: Home, manifest: Manifest, timeline: Timeline) -> RetentionReport:
    return RetentionReport(
        (
            _describe_timeline(home, manifest, timeline),
            _describe_usage(home, manifest, timeline),
            _describe_history(home, manifest),
            _describe_set_aside(home),
            _describe_conversations(home),
            _describe_logs(home),
        )
    )


def _describe_timeline(home: Home, manifest: Manifest, timeline: Timeline) -> RetentionRule:
    size = timeline.measure()
    moved = timeline.tail(1, ("timeline.events_archived",))
    folder = archive_folder(home.timeline)
    return RetentionRule(
        "timeline",
        "Timeline",
        f"For ever. Events older than {format_days(manifest.retention.timeline)} move to compressed files, where they "
        f"can be read and verified as before. The newest {MIN_LIVE:,} events stay",
        f"{size.events:,} events, {size.archived:,} of them archived "
        f"({format_size(size.database_bytes)} and {format_size(size.archive_bytes)})",
        moved[0].at if moved else None,
        (str(home.timeline), str(folder)),
        "retention.timeline",
    )


def _describe_usage(home: Home, manifest: Manifest, timeline: Timeline) -> RetentionRule:
    last = find_last_sum(timeline)
    return RetentionRule(
        "usage",
        "Model usage",
        f"For ever. Requests older than {format_days(manifest.retention.usage)} become sums by day, provider, model "
        "and session",
        f"Sums up to {last}, then each request" if last is not None else "Each request",
        None,
        (str(home.timeline),),
        "retention.usage",
    )


def _describe_history(home: Home, manifest: Manifest) -> RetentionRule:
    quota = HistorySettings(quota=manifest.history.quota).quota_for(home.root)
    return RetentionRule(
        "history",
        "History of the files",
        "Every state of the last day, then one an hour for a week, then one a day. Above "
        f"{format_size(quota)} the oldest are deleted",
        "",
        None,
        (str(home.history),),
        "history.quota",
    )


def _describe_set_aside(home: Home) -> RetentionRule:
    folder = home.history / "set-aside"
    return RetentionRule(
        "set-aside",
        "Files that an undo moved aside",
        "Until you delete them",
        format_size(measure_set_aside(folder)),
        None,
        (str(folder),),
        None,
    )


def _describe_conversations(home: Home) -> RetentionRule:
    return RetentionRule(
        "conversations",
        "Conversations, with approvals and images",
        "Until you delete them",
        "",
        None,
        (str(home.timeline),),
        None,
    )


def _describe_logs(home: Home) -> RetentionRule:
    limits = LogLimits()
    return RetentionRule(
        "logs",
        "Logs",
        f"The last {format_size(limits.files * limits.file_bytes)} of each program; older lines are deleted",
        format_size(_measure_files(home.logs)),
        None,
        (str(home.logs),),
        None,
    )


def _measure_files(folder: Path) -> int:
    total = 0
    for file in folder.glob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:  # it was rotated just now
            continue
    return total


def format_days(seconds: float) -> str:
    """A duration of the manifest in words."""
    for length, word in ((DAY, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length and seconds % length == 0:
            count = int(seconds // length)
            return f"{count:,} {word}{'' if count == 1 else 's'}"
    return f"{seconds:,} seconds"


def format_size(amount: int) -> str:
    value = float(amount)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
