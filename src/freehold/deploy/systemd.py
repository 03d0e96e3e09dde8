"""A hardened systemd unit that runs Freehold."""

import sys
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home

UNIT = """\
# Freehold as a service. Install it with:
#   id {user} || sudo useradd --system --shell /usr/sbin/nologin --home-dir {home} {user}
#   sudo install -d -m 0700 -o {user} {home}
#   freehold deploy systemd --home {home} --user {user} | sudo tee /etc/systemd/system/freehold.service
#   sudo systemctl daemon-reload && sudo systemctl enable --now freehold
# Use it with:
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
# The keeper stops in stages, each with its own deadline. Then systemd ends the whole control group.
KillMode=mixed
TimeoutStopSec=75
UMask=0077
LimitNOFILE=65536
# The keeper creates a control group with limits for the computer.
Delegate=cpu memory pids

# Restrictions for the keeper and the gateway. The computer has stronger isolation, made by bubblewrap. Bubblewrap
# needs user namespaces, mounts, a host name and an unmasked /proc. Therefore these are off on purpose:
# RestrictNamespaces, ProtectHostname, ProtectKernelTunables, ProtectKernelLogs, ProtectProc, and SystemCallFilter
# of @mount. MemoryDenyWriteExecute is off because JavaScript engines in the computer need such memory.
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


USER_UNIT = """\
# Freehold as a service of your own user. Install it with:
#   mkdir -p ~/.config/systemd/user
#   freehold deploy systemd --as-user --home {home} > ~/.config/systemd/user/freehold.service
#   systemctl --user daemon-reload && systemctl --user enable --now freehold
# To let it run while you are not signed in: sudo loginctl enable-linger $USER
[Unit]
Description=Freehold, {home}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={python} -m freehold.keeper --home {home}
Environment=FREEHOLD_HOME={home}
Restart=always
RestartSec=1
# The keeper stops in stages, each with its own deadline. Then systemd ends the whole control group.
KillMode=mixed
TimeoutStopSec=75
UMask=0077
LimitNOFILE=65536
# The keeper creates a control group with limits for the computer.
Delegate=cpu memory pids
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes

[Install]
WantedBy=default.target
"""


def render_user_unit(home: Home) -> str:
    """A service manager of a user cannot restrict a service as that of the machine can."""
    _check_paths(home)
    return USER_UNIT.format(home=home.root, python=sys.executable)


def render_unit(user: str, home: Home) -> str:
    _check_paths(home)
    if user == "root":
        raise FreeholdError("deploy.root", "Freehold does not run as root", hint="Use a separate user: --user freehold")
    if not user.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise FreeholdError("deploy.odd-user", f"{user!r} is not a valid user name", hint="Name a user with --user")
    homes = (Path("/home"), Path("/root"), Path("/run/user"))
    within = any(place in path.parents for place in homes for path in (home.root, Path(sys.executable)))
    return UNIT.format(
        user=user,
        home=home.root,
        python=sys.executable,
        protect_home="read-only" if within else "yes",
    )


def _check_paths(home: Home) -> None:
    for path in (home.root, Path(sys.executable)):
        # systemd splits words at spaces and expands % and $, so such a path would be read wrong.
        if any(character.isspace() or character in "%$\"'\\;" for character in str(path)):
            raise FreeholdError(
                "deploy.odd-path",
                f"The path {path} cannot be used in a unit file",
                hint="Use a path without spaces, quotes, % and $",
            )
