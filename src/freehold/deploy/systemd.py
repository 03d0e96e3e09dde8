"""A hardened systemd unit that runs Freehold."""

import os
import pwd
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.backup.section import BackupSection
from freehold.errors import FreeholdError
from freehold.gpu.section import GpuSection
from freehold.home import Home
from freehold.manifest import Manifest
from freehold.manifest.checks.mounts import REMOTE_MOUNTS

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
ReadWritePaths={writable}
ProtectHome={protect_home}
PrivateTmp=yes
PrivateDevices={private_devices}
DevicePolicy=closed
{allowed_devices}ProtectClock=yes
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


@dataclass(frozen=True)
class UnitNeeds:
    """What the manifest names outside of the home: folders that are written, what is only read, and devices."""

    written: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    devices: tuple[str, ...] = ()


NO_NEEDS = UnitNeeds()


def find_needs(manifest: Manifest, user: str, home: Home) -> UnitNeeds:
    """Of a service that runs as this user, whose home is meant by `~`."""
    own = _find_own_home(user, home)
    backup, computer = manifest.section(BackupSection), manifest.computer
    local = [one for one in computer.mounts if one.source and one.kind not in REMOTE_MOUNTS]
    written = [*([backup.folder] if backup.folder is not None else []), *(one.source for one in local if one.writable)]
    read = [one.source for one in local if not one.writable]
    if backup.to.startswith("sftp://"):
        read += [backup.ssh_key or "~/.ssh", "~/.ssh"]
    if computer.image is not None and computer.image.startswith(("/", "~")):
        read.append(computer.image)
    return UnitNeeds(
        tuple(_expand(path, own) for path in written),
        tuple(_expand(path, own) for path in read),
        manifest.section(GpuSection).list_devices(),
    )


def _find_own_home(user: str, home: Home) -> Path:
    """The unit says how to make the user, with the home of Freehold as its own, if there is none yet."""
    try:
        return Path(pwd.getpwnam(user).pw_dir)
    except KeyError:
        return home.root


def _expand(path: str, own: Path) -> Path:
    return own / path[2:] if path.startswith("~/") else Path(path)


def render_unit(user: str, home: Home, needs: UnitNeeds = NO_NEEDS) -> str:
    """Raises `deploy.root`, `deploy.odd-user`, `deploy.odd-path` or `deploy.unsupported`."""
    _check_paths(home, *needs.written, *needs.read)
    if user == "root":
        raise FreeholdError("deploy.root", "Freehold does not run as root", hint="Use a separate user: --user freehold")
    if not user.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise FreeholdError("deploy.odd-user", f"{user!r} is not a valid user name", hint="Name a user with --user")
    return UNIT.format(
        user=user,
        home=home.root,
        python=sys.executable,
        protect_home="read-only" if any(_list_within_homes(home, needs)) else "yes",
        # A disk that is not there now does not prevent the start.
        writable=" ".join([str(home.root), *(f"-{path}" for path in needs.written)]),
        private_devices="no" if needs.devices else "yes",
        allowed_devices="".join(f"DeviceAllow={device} rw\n" for device in needs.devices),
    )


def find_closed_folder(user: str, home: Home) -> Path | None:
    """A folder that this user may not enter, on the way to the program or to the home: the service could not start."""
    for place in (Path(sys.executable), Path(sys.executable).resolve(), home.root):
        for folder in reversed(place.parents):
            if folder.is_dir() and not _may_enter(user, folder.stat()):
                return folder
    return None


def _may_enter(user: str, folder: os.stat_result) -> bool:
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        return bool(folder.st_mode & stat.S_IXOTH)
    if found.pw_uid == folder.st_uid:
        return bool(folder.st_mode & stat.S_IXUSR)
    is_member = folder.st_gid in os.getgrouplist(user, found.pw_gid)
    return bool(folder.st_mode & (stat.S_IXGRP if is_member else stat.S_IXOTH))


def _list_within_homes(home: Home, needs: UnitNeeds) -> Iterator[Path]:
    homes = (Path("/home"), Path("/root"), Path("/run/user"))
    for path in (home.root, Path(sys.executable), *needs.written, *needs.read):
        if any(place in path.parents for place in homes):
            yield path


def _check_paths(home: Home, *named: Path) -> None:
    for path in named:
        if not path.is_absolute() or {Path("/tmp"), Path("/var/tmp")} & set(path.parents):  # noqa: S108
            raise FreeholdError(
                "deploy.unsupported",
                f"The service would not see {path}: it has a /tmp of its own, and no folder to begin a path in",
                hint="Name a folder elsewhere, by its whole path",
            )
    for path in (home.root, Path(sys.executable), *named):
        # systemd splits words at spaces and expands % and $, so such a path would be read wrong.
        if any(character.isspace() or character in "%$\"'\\;" for character in str(path)):
            raise FreeholdError(
                "deploy.odd-path",
                f"The path {path} cannot be used in a unit file",
                hint="Use a path without spaces, quotes, % and $",
            )
