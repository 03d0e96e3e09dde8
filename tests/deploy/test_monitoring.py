"""Alert rules and the dashboard: made of metrics that a running Freehold has, and right for the program that reads them."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.freehold import FreeholdHarness

from freehold.deploy.alert_rules import list_alert_rules, write_alert_rules
from freehold.deploy.dashboard import list_queries, write_dashboard
from freehold.deploy.scrape import read_scrape
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
