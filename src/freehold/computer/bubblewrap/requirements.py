"""What this machine needs to build the walls, and how to get what is missing. No wall is ever left out."""

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.walls.seccomp import compile_filters
from freehold.errors import FreeholdError

MIN_BWRAP_VERSION = (0, 8)

APPARMOR_PROFILE = """\
abi <abi/4.0>,
include <tunables/global>
profile bwrap {path} flags=(unconfined) {{
  userns,
  include if exists <local/bwrap>
}}
"""


@dataclass(frozen=True)
class MissingRequirement:
    """A wall that cannot be built on this machine: which, why, and how to get it."""

    wall: str
    message: str
    hint: str

    def error(self) -> FreeholdError:
        return FreeholdError("computer.no-isolation", self.message, hint=self.hint)


@dataclass(frozen=True)
class SandboxTools:
    """The programs that build the walls."""

    bwrap: str
    setpriv: str
    version: str


@functools.cache
def find_tools() -> SandboxTools:
    """Raises `computer.no-isolation` if a program is missing or too old. The result is cached."""
    # Search the system's folders only, never PATH.
    search = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
    bwrap, setpriv = shutil.which("bwrap", path=search), shutil.which("setpriv", path=search)
    if bwrap is None:
        raise FreeholdError(
            "computer.no-isolation",
            "bubblewrap (bwrap), which isolates the computer, is not installed",
            hint="apt install bubblewrap, dnf install bubblewrap or pacman -S bubblewrap",
        )
    if setpriv is None:
        raise FreeholdError(
            "computer.no-isolation",
            "setpriv, which drops privileges before the computer starts, is not installed",
            hint="apt install util-linux, dnf install util-linux",
        )
    shown = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False, env={}).stdout
    version = shown.removeprefix("bubblewrap").strip()
    if parse_version(version) < MIN_BWRAP_VERSION:
        raise FreeholdError(
            "computer.no-isolation",
            f"bubblewrap {version or 'of unknown version'} cannot disable nested user namespaces",
            hint="Install bubblewrap 0.8 or later (Debian 12, Ubuntu 23.04, Fedora 38 and later have it)",
        )
    return SandboxTools(bwrap, setpriv, version)


def parse_version(text: str) -> tuple[int, ...]:
    """The numbers at the start of a version. () if it is not a version; () sorts before every version."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def find_missing_requirements() -> list[MissingRequirement]:
    """Every wall that cannot be built on this machine, found by trying. Empty if all can. Takes about 10 ms."""
    problems: list[MissingRequirement] = []
    try:
        tools = find_tools()
    except FreeholdError as error:
        problems.append(MissingRequirement("sandbox", error.message, error.hint))
    else:
        problems.extend(_try_namespaces(tools))
    try:
        compile_filters()
    except FreeholdError as error:
        problems.append(MissingRequirement("system calls", error.message, error.hint))
    if not _seccomp_in_kernel():
        problems.append(
            MissingRequirement(
                "system calls", "This kernel has no seccomp filters", "Use a kernel with CONFIG_SECCOMP_FILTER"
            )
        )
    return problems


def _seccomp_in_kernel() -> bool:
    return "\nSeccomp:" in Path("/proc/self/status").read_text()


def _try_namespaces(tools: SandboxTools) -> list[MissingRequirement]:
    drop = [tools.setpriv, "--no-new-privs"]
    if os.geteuid() == 0:
        drop += ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
    tried = subprocess.run(
        [
            *drop,
            tools.bwrap,
            *["--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--ro-bind", "/", "/"],
            *["--proc", "/proc", "--dev", "/dev", "--", "/bin/true"],
        ],
        capture_output=True,
        text=True,
        check=False,
        env={},
        cwd="/",
    )
    return [] if tried.returncode == 0 else [explain_bwrap_error(tried.stderr, tools.bwrap)]


def explain_bwrap_error(stderr: str, bwrap: str = "/usr/bin/bwrap") -> MissingRequirement:
    """Find out from bubblewrap's error which wall is missing and how to get it."""
    reason = stderr.strip().splitlines()[-1] if stderr.strip() else "no error message"
    if _read_sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" and _is_about_namespaces(reason):
        profile = APPARMOR_PROFILE.format(path=bwrap).replace("\n", "\\n")
        return MissingRequirement(
            "user namespace",
            f"AppArmor does not allow bubblewrap to create user namespaces ({reason})",
            f"printf '{profile}' | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap",
        )
    if _read_sysctl("kernel/unprivileged_userns_clone") == "0":
        return MissingRequirement(
            "user namespace",
            f"This kernel does not allow unprivileged programs to create user namespaces ({reason})",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1, and keep it in /etc/sysctl.d/",
        )
    if _read_sysctl("user/max_user_namespaces") == "0":
        return MissingRequirement(
            "user namespace",
            f"This machine allows no user namespaces ({reason})",
            "sudo sysctl -w user.max_user_namespaces=15000, and keep it in /etc/sysctl.d/",
        )
    if "proc" in reason and "mount" in reason:
        return MissingRequirement(
            "masked /proc",
            f"A new /proc cannot be mounted ({reason})",
            "In a container this needs an unmasked /proc: --security-opt systempaths=unconfined. Or run Freehold on the host",
        )
    return MissingRequirement(
        "sandbox",
        f"bubblewrap could not isolate the computer: {reason}",
        "In a container allow user namespaces (--security-opt seccomp=unconfined); otherwise run freehold doctor",
    )


def _is_about_namespaces(reason: str) -> bool:
    return any(word in reason for word in ("namespace", "uid map", "RTM_NEWADDR", "Permission denied", "not permitted"))


def _read_sysctl(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
