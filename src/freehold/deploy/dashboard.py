"""A dashboard for Grafana: one panel for each metric that exists, by what kind it is."""

import json
from collections.abc import Mapping
from typing import Any

from freehold.deploy.scrape import ScrapedMetric

WIDTH, HEIGHT, COLUMNS = 12, 8, 2
UNITS = {"_bytes": "bytes", "_seconds": "s", "_seconds_total": "s", "_dollars_total": "currencyUSD"}
SOURCE = {"type": "prometheus", "uid": "${source}"}


def write_dashboard(metrics: Mapping[str, ScrapedMetric]) -> str:
    """As JSON that Grafana imports. It asks which Prometheus to use."""
    panels = [_describe_panel(number, metric) for number, metric in enumerate(metrics.values())]
    dashboard = {
        "title": "Freehold",
        "uid": "freehold",
        "tags": ["freehold"],
        "schemaVersion": 39,
        "time": {"from": "now-24h", "to": "now"},
        "refresh": "1m",
        "templating": {
            "list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }
    return json.dumps(dashboard, indent=1) + "\n"


def _describe_panel(number: int, metric: ScrapedMetric) -> dict[str, Any]:
    row, column = divmod(number, COLUMNS)
    targets = [
        {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend, "datasource": SOURCE}
        for index, (expression, legend) in enumerate(list_queries(metric))
    ]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": metric.help.rstrip("."),
        "description": metric.name,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": _find_unit(metric)}, "overrides": []},
        "targets": targets,
    }


def list_queries(metric: ScrapedMetric) -> list[tuple[str, str]]:
    """Each query with its legend: counters as a rate, histograms as two quantiles, gauges as they are."""
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels) or metric.name
    by = f" by ({', '.join(metric.labels)})" if metric.labels else ""
    match metric.kind:
        case "counter":
            return [(f"sum{by} (rate({metric.name}[5m]))", legend)]
        case "histogram":
            inner = f"sum by ({', '.join(('le', *metric.labels))}) (rate({metric.name}_bucket[5m]))"
            return [(f"histogram_quantile({share}, {inner})", f"{legend} p{share * 100:g}") for share in (0.5, 0.99)]
        case _:
            return [(metric.name, legend)]


def _find_unit(metric: ScrapedMetric) -> str:
    if metric.name.endswith(("_timestamp_seconds", "_start_time_seconds")):
        return "dateTimeFromNow"
    if metric.kind == "counter":
        return {"_seconds_total": "percentunit"}.get(f"_{'_'.join(metric.name.split('_')[-2:])}", "ops")
    return next((unit for end, unit in UNITS.items() if metric.name.endswith(end)), "short")
