"""`freehold deploy`."""

import os
import pwd
import sys
from pathlib import Path

import click

from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

UNIT = """\
# Freehold as a service. Put it in place with:
#   id {user} || sudo useradd --system --shell /usr/sbin/nologin --home-dir {home} {user}
#   sudo install -d -m 0700 -o {user} {home}
#   freehold deploy systemd --home {home} --user {user} | sudo tee /etc/systemd/system/freehold.service
#   sudo systemctl daemon-reload && sudo systemctl enable --now freehold
# and speak to it with:
#   sudo -u {user} XDG_RUNTIME_DIR=/run/freehold freehold status --home {home}
[Unit]
Description=Freehold, {home}
After=network.target
StartLimitIntervalSec=0

[Service]
Type=exec
User={user}
ExecStart={python} -m freehold.keeper --home {home}
Environment=FREEHOLD_HOME={home}
Environment=XDG_RUNTIME_DIR=%t/freehold
RuntimeDirectory=freehold
RuntimeDirectoryMode=0700
Restart=always
RestartSec=1
# The keeper stops in stages, each with a deadline of its own; then the whole group goes.
KillMode=mixed
TimeoutStopSec=75
UMask=0077
LimitNOFILE=65536
# The keeper gives the computer a part of this control group, with limits.
Delegate=cpu memory pids

# Walls around the keeper and the gateway. The computer builds stronger ones of its own with bubblewrap; for that it
# needs user namespaces, mounts, a host name and an unmasked /proc. So these stay off, knowingly: RestrictNamespaces,
# ProtectHostname, ProtectKernelTunables, ProtectKernelLogs, ProtectProc, SystemCallFilter of @mount, and
# MemoryDenyWriteExecute, which no JavaScript engine in the computer would survive.
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ReadWritePaths={home}
ProtectHome={protect_home}
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
ProtectClock=yes
ProtectKernelModules=yes
KeyringMode=private
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""


@click.group()
def command() -> None:
    """Print what is needed to run Freehold as a service.

    \b
    Example:
      freehold deploy systemd --user freehold | sudo tee /etc/systemd/system/freehold.service
    """


@command.command()
@click.option("--user", help="The user it runs as. [default: you, or freehold when you are root]")
@home_option
def systemd(user: str | None, home: Home) -> None:
    """Print a hardened systemd unit for this Freehold.

    \b
    Example:
      freehold deploy systemd --home /srv/freehold --user freehold
    """
    you = "freehold" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    click.echo(describe(user or you, home), nl=False)


def describe(user: str, home: Home) -> str:
    for path in (home.root, Path(sys.executable)):
        # systemd splits words at spaces and expands % and $; a path with one of these does not mean what it says.
        if any(character.isspace() or character in "%$\"'\\;" for character in str(path)):
            raise FreeholdError(
                "deploy.odd-path",
                f"{path} cannot stand in a unit file",
                hint="Use a path without spaces, quotes, % and $",
            )
    if user == "root":
        raise FreeholdError(
            "deploy.root", "The service does not run as root", hint="Give it a user of its own: --user freehold"
        )
    if not user.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise FreeholdError("deploy.odd-user", f"{user!r} is not the name of a user", hint="Give one with --user")
    homes = (Path("/home"), Path("/root"), Path("/run/user"))
    within = any(place in path.parents for place in homes for path in (home.root, Path(sys.executable)))
    return UNIT.format(
        user=user,
        home=home.root,
        python=sys.executable,
        protect_home="read-only" if within else "yes",
    )
