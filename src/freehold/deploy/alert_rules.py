"""Alert rules for Prometheus: for each metric that exists, when its owner should be told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from freehold.deploy.scrape import ScrapedMetric
from freehold.deploy.yaml_text import YamlValue, write_yaml
from freehold.manifest import Manifest

HEAD = """\
# Written by `freehold deploy prometheus` from the manifest and the metrics that exist. Check it with: promtool check rules
"""
DAY = 86400


@dataclass(frozen=True)
class AlertRule:
    """`metrics` must all exist; without one of them the rule is left out."""

    name: str
    metrics: tuple[str, ...]
    expression: str
    lasts: str
    severity: str
    summary: str


def write_alert_rules(manifest: Manifest, metrics: Mapping[str, ScrapedMetric]) -> str:
    rules: list[YamlValue] = [
        {
            "alert": rule.name,
            "expr": rule.expression,
            "for": rule.lasts,
            "labels": {"severity": rule.severity},
            "annotations": {"summary": rule.summary},
        }
        for rule in list_alert_rules(manifest)
        if all(name in metrics for name in rule.metrics)
    ]
    return HEAD + write_yaml({"groups": [{"name": "freehold", "rules": rules}]})


def list_alert_rules(manifest: Manifest) -> Iterator[AlertRule]:
    yield from _list_health_rules()
    yield from _list_usage_rules(manifest)
    yield from _list_model_rules()
    yield from _list_backup_rules()


def _list_health_rules() -> Iterator[AlertRule]:
    yield AlertRule(
        "FreeholdDown", ("freehold_ready",), "absent(freehold_ready)", "5m", "critical", "Freehold cannot be scraped"
    )
    yield AlertRule(
        "FreeholdNotReady",
        ("freehold_ready",),
        "freehold_ready == 0",
        "5m",
        "critical",
        "Freehold is not ready: freehold status says why",
    )
    yield AlertRule(
        "FreeholdKeeperSilent",
        ("freehold_keeper_answers",),
        "freehold_keeper_answers == 0",
        "5m",
        "critical",
        "The keeper does not answer: undo may not work",
    )
    yield AlertRule(
        "FreeholdComponentFailed",
        ("freehold_component",),
        'freehold_component{state="failed"} == 1',
        "10m",
        "warning",
        "{{ $labels.name }} has failed: freehold status says why",
    )
    yield AlertRule(
        "FreeholdProgramRestarts",
        ("freehold_program_restarts_total",),
        "increase(freehold_program_restarts_total[30m]) > 3",
        "0m",
        "warning",
        "{{ $labels.program }} was started again and again: freehold logs {{ $labels.program }}",
    )
    yield AlertRule(
        "FreeholdRequestsFail",
        ("freehold_http_requests_total",),
        'sum(rate(freehold_http_requests_total{status=~"5.."}[15m])) / sum(rate(freehold_http_requests_total[15m])) > 0.05',
        "15m",
        "warning",
        "More than 5 % of all requests fail",
    )
    yield AlertRule(
        "FreeholdFewDescriptors",
        ("process_open_fds", "process_max_fds"),
        'process_open_fds{job=~"freehold.*"} / process_max_fds{job=~"freehold.*"} > 0.8',
        "15m",
        "warning",
        "The gateway has few file descriptors left",
    )


def _list_usage_rules(manifest: Manifest) -> Iterator[AlertRule]:
    limits = manifest.computer.limits
    for name, limit in (
        ("memory", limits.memory),
        ("processes", limits.processes),
        ("disk", limits.disk),
        ("inodes", limits.inodes),
    ):
        yield AlertRule(
            f"FreeholdComputer{name.capitalize()}",
            ("freehold_computer_usage",),
            f'freehold_computer_usage{{of="{name}"}} > {int(limit * 0.9)}',
            "15m",
            "warning",
            f"The computer uses more than 90 % of computer.limits.{name}",
        )


def _list_model_rules() -> Iterator[AlertRule]:
    yield AlertRule(
        "FreeholdModelsFail",
        ("freehold_model_refusals_total",),
        "increase(freehold_model_refusals_total[30m]) > 10",
        "0m",
        "warning",
        "Requests to models are refused: freehold usage, freehold models",
    )
    yield AlertRule(
        "FreeholdModelWithoutPrice",
        ("freehold_model_unpriced_requests_total",),
        "increase(freehold_model_unpriced_requests_total[1d]) > 0",
        "0m",
        "warning",
        "A model has no price, so no budget counts it",
    )


def _list_backup_rules() -> Iterator[AlertRule]:
    yield AlertRule(
        "FreeholdBackupFails",
        ("freehold_backup_failing",),
        "freehold_backup_failing == 1",
        "1h",
        "critical",
        "Backups fail: freehold backup status says why",
    )
    yield AlertRule(
        "FreeholdBackupLate",
        ("freehold_backup_pending_timestamp_seconds",),
        f"freehold_backup_pending_timestamp_seconds > 0 and time() - freehold_backup_pending_timestamp_seconds > {DAY}",
        "1h",
        "warning",
        "A change has waited for its backup for more than a day: freehold backup status says why",
    )
