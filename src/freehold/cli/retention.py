"""`freehold retention`."""

import click

from freehold.cli._home_files import read_manifest
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.home import Home


@click.command()
@home_option
@json_option(JsonOutput("freehold.retention:RetentionReport"))
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

    from freehold.retention import read_retention
    from freehold.timeline import Timeline

    require_home(home)
    manifest = read_manifest(home)
    with Timeline(home.timeline, readonly=True) as timeline:
        report = read_retention(home, manifest, timeline)
    if as_json:
        echo_json(report)
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
