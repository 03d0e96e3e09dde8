"""`freehold retention`."""

import json

import click

from freehold.cli._options import home_option, json_option, require_home
from freehold.home import Home
from freehold.strict_json import encode


@click.command()
@home_option
@json_option
def command(home: Home, as_json: bool) -> None:
    """Show what is kept, for how long and where.

    For the timeline, model usage, history, conversations and logs: the rule, what there is now, when old records were
    last archived, where they are, and the setting in freehold.toml that changes the rule. Works when nothing is
    running.

    \b
    Examples:
      freehold retention
      freehold retention --json | jq '.rules[] | {name, kept}'
    """
    import os

    from freehold.manifest import load_manifest
    from freehold.retention import read_retention
    from freehold.timeline import Timeline

    require_home(home)
    manifest = load_manifest(home.manifest, os.environ, home=home.root).manifest
    with Timeline(home.timeline, readonly=True) as timeline:
        report = read_retention(home, manifest, timeline)
    if as_json:
        click.echo(json.dumps(encode(report)))
        return
    for rule in report.rules:
        facts = {
            "Kept": rule.kept,
            "Now": rule.now,
            "Archived": "" if rule.last_archived is None else f"{rule.last_archived[:19].replace('T', ' ')} UTC",
            "Where": ", ".join(rule.where),
            "Setting": rule.setting or "",
        }
        click.secho(rule.title, bold=True)
        for name, value in facts.items():
            if value:
                click.echo("  " + click.style(f"{name:<10}", dim=True) + value)
