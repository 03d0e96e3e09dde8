"""Alert rules and the dashboard: made of metrics that a running Freehold has, and right for the program that reads them."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.freehold import FreeholdHarness

from freehold.deploy.alert_rules import list_alert_rules, write_alert_rules
from freehold.deploy.dashboard import list_queries, write_dashboard
from freehold.deploy.scrape import ScrapedMetric, read_scrape
from freehold.manifest import load_manifest

pytestmark = pytest.mark.shared_processes
SCRAPE = """\
# HELP freehold_ready 1 when sealed.
# TYPE freehold_ready gauge
freehold_ready 1.0
# HELP freehold_http_requests_total Requests answered, by route.
# TYPE freehold_http_requests_total counter
freehold_http_requests_total{method="GET",route="/a b{c}",status="200"} 4.0
# HELP freehold_http_request_seconds How long requests took, by route.
# TYPE freehold_http_request_seconds histogram
freehold_http_request_seconds_bucket{route="/x",le="0.5"} 1.0
freehold_http_request_seconds_sum{route="/x"} 0.2
freehold_http_request_seconds_count{route="/x"} 1.0
"""


def test_a_scrape_is_read_with_kinds_and_labels() -> None:
    found = read_scrape(SCRAPE)
    assert [(one.name, one.kind, one.labels) for one in found.values()] == [
        ("freehold_ready", "gauge", ()),
        ("freehold_http_requests_total", "counter", ("method", "route", "status")),
        ("freehold_http_request_seconds", "histogram", ("route",)),
    ]
    queries = [query for one in found.values() for query, _ in list_queries(one)]
    assert queries == [
        "freehold_ready",
        "sum by (method, route, status) (rate(freehold_http_requests_total[5m]))",
        "histogram_quantile(0.5, sum by (le, route) (rate(freehold_http_request_seconds_bucket[5m])))",
        "histogram_quantile(0.99, sum by (le, route) (rate(freehold_http_request_seconds_bucket[5m])))",
    ]


def test_a_rule_without_its_metric_is_left_out(tmp_path: Path) -> None:
    manifest = load_manifest(tmp_path / "freehold.toml", {}).manifest
    text = write_alert_rules(manifest, read_scrape(SCRAPE))
    assert "FreeholdNotReady" in text
    assert "FreeholdBackupFails" not in text


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeholdHarness]:
    harness = FreeholdHarness(tmp_path_factory.mktemp("home"))
    started = harness.run("up", "-d")
    assert started.returncode == 0, started.stderr
    yield harness
    harness.run("down")


def test_prometheus_accepts_the_rules_of_a_running_freehold(harness: FreeholdHarness, tmp_path: Path) -> None:
    """Every rule that Freehold knows is there, so each of its metrics exists."""
    done = harness.run("deploy", "prometheus")
    assert done.returncode == 0, done.stderr
    manifest = load_manifest(tmp_path / "freehold.toml", {}).manifest
    missing = [rule.name for rule in list_alert_rules(manifest) if f"alert: {rule.name}\n" not in done.stdout]
    assert missing == []
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: the rules were not checked")
    (tmp_path / "rules.yml").write_text(done.stdout)
    checked = subprocess.run(
        ["promtool", "check", "rules", tmp_path / "rules.yml"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_running_freehold_has_the_labels_that_the_rules_select(harness: FreeholdHarness, tmp_path: Path) -> None:
    """A rule that selects a label or value that does not exist would never fire. Prometheus itself adds `job`."""
    scrape = harness.run("health", "--scrape").stdout
    samples = [(line.partition("{")[0], set(_LABELS.findall(line))) for line in scrape.splitlines()]
    selected = [
        (name, label, how, value)
        for rule in list_alert_rules(load_manifest(tmp_path / "freehold.toml", {}).manifest)
        for name, inner in re.findall(r"(\w+)\{([^}]*)\}", rule.expression)
        for label, how, value in re.findall(r'(\w+)(=~?)"([^"]*)"', inner)
        if label != "job"
    ]
    assert {value for _, label, _, value in selected if label == "of"} == {"memory", "processes", "disk", "inodes"}
    for name, label, how, value in selected:
        values = {
            found for seen, labels in samples if seen == name for found_label, found in labels if found_label == label
        }
        assert values, f"{name} has no label {label}"
        assert how == "=~" or value in values, f"{name} has no {label} {value}"


_LABELS = re.compile(r'(\w+)="([^"]*)"')
JOB = 'job="freehold"'
ILL: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "FreeholdDown": ({}, {}),
    "FreeholdNotReady": ({"freehold_ready{}": "0x200"}, {}),
    "FreeholdKeeperSilent": ({"freehold_keeper_answers{}": "0x200"}, {}),
    "FreeholdComponentFailed": (
        {'freehold_component{name="slots",state="failed"}': "1x200"},
        {"name": "slots", "state": "failed"},
    ),
    "FreeholdProgramRestarts": (
        {'freehold_program_restarts_total{program="gateway"}': "0+1x200"},
        {"program": "gateway"},
    ),
    "FreeholdRequestsFail": (
        {
            'freehold_http_requests_total{route="/x",status="500"}': "0+1x200",
            'freehold_http_requests_total{route="/x",status="200"}': "0+9x200",
        },
        {},
    ),
    "FreeholdFewDescriptors": (
        {f"process_open_fds{{{JOB}}}": "900x200", f"process_max_fds{{{JOB}}}": "1000x200"},
        {"job": "freehold"},
    ),
    **{
        f"FreeholdComputer{name.capitalize()}": (
            {f'freehold_computer_usage{{of="{name}"}}': "1000000000000x200"},
            {"of": name},
        )
        for name in ("memory", "processes", "disk", "inodes")
    },
    "FreeholdModelsFail": (
        {'freehold_model_refusals_total{provider="openai",code="models.no-key"}': "0+1x200"},
        {"provider": "openai", "code": "models.no-key"},
    ),
    "FreeholdModelWithoutPrice": (
        {'freehold_model_unpriced_requests_total{provider="openai"}': "0+1x200"},
        {"provider": "openai"},
    ),
    "FreeholdBackupFails": ({"freehold_backup_failing{}": "1x200"}, {}),
    "FreeholdBackupLate": ({"freehold_backup_pending_timestamp_seconds{}": "60x200"}, {}),
}
"""What Prometheus has read, minute by minute, when an alert must fire, and the labels of the alert."""
WELL = {
    "freehold_ready{}": "1x200",
    "freehold_keeper_answers{}": "1x200",
    'freehold_component{name="slots",state="failed"}': "0x200",
    'freehold_component{name="slots",state="ok"}': "1x200",
    'freehold_program_restarts_total{program="gateway"}': "3x200",
    'freehold_http_requests_total{route="/x",status="500"}': "1x200",
    'freehold_http_requests_total{route="/x",status="200"}': "0+9x200",
    f"process_open_fds{{{JOB}}}": "90x200",
    f"process_max_fds{{{JOB}}}": "1000x200",
    **{f'freehold_computer_usage{{of="{name}"}}': "1x200" for name in ("memory", "processes", "disk", "inodes")},
    'freehold_model_refusals_total{provider="openai",code="models.no-key"}': "2x200",
    'freehold_model_unpriced_requests_total{provider="openai"}': "0x200",
    "freehold_backup_failing{}": "0x200",
    "freehold_backup_pending_timestamp_seconds{}": "0x200",
}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_each_alert_fires_when_it_must_and_none_when_all_is_well(tmp_path: Path) -> None:
    """By the program that Prometheus brings for it, with made-up values."""
    rules = list(list_alert_rules(load_manifest(tmp_path / "freehold.toml", {}).manifest))
    metrics = {name: ScrapedMetric(name, "gauge", "", ()) for rule in rules for name in rule.metrics}
    written = write_alert_rules(load_manifest(tmp_path / "freehold.toml", {}).manifest, metrics)
    (tmp_path / "rules.yml").write_text(written)
    assert {rule.name for rule in rules} == ILL.keys()
    tests: list[AlertTest] = [AlertTest(WELL, {rule.name: None for rule in rules})]
    for rule in rules:
        series, labels = ILL[rule.name]
        summary = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found, labels=labels: labels[found[1]], rule.summary)  # type: ignore[misc]
        fired = {"exp_labels": {"severity": rule.severity, **labels}, "exp_annotations": {"summary": summary}}
        tests.append(AlertTest(series, {rule.name: fired}, "30m" if rule.name == "FreeholdBackupLate" else "1m"))
    for step in ("1m", "30m"):
        plan = {
            "rule_files": [str(tmp_path / "rules.yml")],
            "evaluation_interval": step,
            "tests": [one.describe() for one in tests if one.step == step],
        }
        file = tmp_path / f"{step}.yml"
        file.write_text(json.dumps(plan))
        command = ["promtool", "test", "rules", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class AlertTest:
    """What each of these alerts is after 150 steps; None when it must not fire. A late backup needs more than a day."""

    series: Mapping[str, str]
    alerts: Mapping[str, object]
    step: str = "1m"

    def describe(self) -> dict[str, object]:
        end = {"1m": "150m", "30m": "75h"}[self.step]
        return {
            "interval": self.step,
            "input_series": [{"series": name, "values": values} for name, values in self.series.items()],
            "alert_rule_test": [
                {"eval_time": end, "alertname": name, "exp_alerts": [] if fired is None else [fired]}
                for name, fired in self.alerts.items()
            ],
        }


def test_the_dashboard_has_a_panel_for_every_metric(harness: FreeholdHarness, tmp_path: Path) -> None:
    done = harness.run("deploy", "grafana")
    assert done.returncode == 0, done.stderr
    panels = json.loads(done.stdout)["panels"]
    shown = {one["description"] for one in panels}
    assert {"freehold_ready", "freehold_component", "freehold_program_restarts_total", "freehold_info"} <= shown
    assert len(shown) == len(panels)
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels]
    assert len(set(places)) == len(places)
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: the queries were not checked")
    rules = [
        {"record": f"a:{number}", "expr": target["expr"]}
        for number, target in enumerate(target for one in panels for target in one["targets"])
    ]
    (tmp_path / "queries.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = subprocess.run(
        ["promtool", "check", "rules", tmp_path / "queries.yml"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_chain_from_the_manifest_to_the_scrape(harness: FreeholdHarness) -> None:
    """The checksum of the manifest is the one of the metrics, whose address `/v1/meta` tells."""
    token = harness.run("token", "create", "chain", "--scope", "read").stdout.split()[-1]
    asked = ["curl", "-sf", "-H", f"Authorization: Bearer {token}", f"{harness.url}/v1/meta"]
    meta = json.loads(subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout)
    scrape = harness.run("health", "--scrape").stdout
    told = subprocess.run(
        ["curl", "-sf", meta["metrics"]], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    found = re.search(r'freehold_info\{version="([^"]+)",manifest="([^"]+)"\} 1', scrape)
    assert found is not None
    assert (found[1], found[2]) == (meta["version"], meta["manifest_checksum"])
    assert found[0] in told, "the same at the address that it tells"
    assert harness.run("health").returncode == 0
    assert json.loads(harness.run("health", "--json").stdout)["ready"]


def test_without_a_running_freehold_nothing_is_guessed(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    done = harness.run("deploy", "grafana")
    assert done.returncode == 1
    assert "No metrics are served" in done.stderr


def test_a_dashboard_is_the_same_for_the_same_metrics() -> None:
    assert write_dashboard(read_scrape(SCRAPE)) == write_dashboard(read_scrape(SCRAPE))
