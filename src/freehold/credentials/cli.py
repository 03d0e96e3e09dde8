"""`freehold credentials`."""

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.cli._running_freehold import running_freehold
from freehold.home import Home


@click.command()
@home_option
@json_option(JsonOutput("freehold.client.credential_models:CredentialInfo", "list"))
@click.option("--uses", is_flag=True, help="Also list the last uses of each.")
def command(home: Home, as_json: bool, uses: bool) -> None:
    """List secrets that agents use for named hosts and never see. Freehold must run.

    They are described in freehold.toml, under [credentials.NAME]. Their secrets are stored with freehold secret set.
    Every use is in freehold timeline as well.

    \b
    Examples:
      freehold credentials
      freehold credentials --uses
    """
    with running_freehold(home, "credentials", "read") as freehold:
        found = freehold.credentials.list()
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    for one in found:
        state = f"{one.uses} uses" if one.has_secret else f"no secret yet: freehold secret set {one.secret}"
        where = f"{one.host}{', '.join(one.paths)}"
        click.echo(
            make_visible(f"{one.name:20}{where:40}{' '.join(one.methods) or 'all methods'}  {state}", lines=False)
        )
        for use in one.recent if uses else ():
            click.echo(
                make_visible(
                    f"  {use.at.astimezone():%Y-%m-%d %H:%M}  {use.method:7}{use.path}  session {use.session}",
                    lines=False,
                )
            )
    if not found:
        click.echo("There are no credentials. Describe one in freehold.toml, under [credentials.NAME]")
