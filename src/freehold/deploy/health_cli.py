"""`freehold health`."""

import http.client
import json
import os
import sys
from typing import Any

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

TIMEOUT = 30.0
COLORS = {"ok": "green", "off": "white", "starting": "yellow", "degraded": "yellow"}


@click.command()
@click.option("--scrape", is_flag=True, help="Print the metrics, as Prometheus reads them.")
@home_option
@json_option(JsonOutput("freehold.client.home_models:HealthInfo"))
def command(scrape: bool, home: Home, as_json: bool) -> None:
    """Ask the gateway how every component is. Exits 0 when Freehold is ready.

    Unlike freehold status it asks over HTTP, as a load balancer or Prometheus does.

    \b
    Examples:
      freehold health
      freehold health --json
      freehold health --scrape | grep freehold_ready
    """
    from freehold.deploy.scrape import fetch_scrape
    from freehold.manifest import require_manifest

    manifest = require_manifest(home.manifest, os.environ, home=home.root).manifest
    if scrape:
        click.echo(fetch_scrape(_reach(manifest.observe.metrics_host), manifest.observe.metrics_port), nl=False)
        return
    report = _ask(_reach(manifest.gateway.host), manifest.gateway.port)
    if as_json:
        echo_json(report)
    else:
        for one in report["components"]:
            click.echo(f"{click.style(one['state'], fg=COLORS.get(one['state'], 'red')):20}{one['name']}")
    if not report["ready"]:
        sys.exit(1)


def _reach(host: str) -> str:
    """An address of this machine that is part of what a program listens on."""
    return "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host  # noqa: S104


def _ask(host: str, port: int) -> dict[str, Any]:
    client = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    try:
        client.request("GET", "/health", headers={"Host": f"127.0.0.1:{port}"})
        answer = client.getresponse()
        report = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FreeholdError(
            "health.unreachable", f"No Freehold answers at {host}:{port}: {error}", hint="freehold up -d"
        ) from error
    finally:
        client.close()
    if answer.status != 200 or not isinstance(report, dict) or "components" not in report:
        raise FreeholdError("health.unreachable", f"Another program than Freehold answers at {host}:{port}")
    return report
