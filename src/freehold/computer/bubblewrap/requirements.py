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
from freehold.system_packages import SYSTEM_FOLDERS, list_missing_packages, write_install_command

MIN_BWRAP_VERSION = (0, 8)

APPARMOR_PROFILE = """\
abi <abi/4.0>,
include <tunables/global>
profile bwrap {path} flags=(unconfined) {{
  userns,
  include if exists <local/bwrap>
}}
"""
CONTAINER_HINT = "freehold deploy kubernetes writes a pod that has them, and freehold deploy compose two containers that need none of it"


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
    bwrap, setpriv = shutil.which("bwrap", path=SYSTEM_FOLDERS), shutil.which("setpriv", path=SYSTEM_FOLDERS)
    if bwrap is None or setpriv is None:
        missing = list_missing_packages()
        raise FreeholdError(
            "computer.no-isolation",
            f"The computer cannot be isolated: not installed: {', '.join(missing)}",
            hint=f"Install what is missing: {write_install_command(missing)}",
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
    if "permi" in reason and (settings := _find_container_settings()):
        return MissingRequirement(
            "container",
            f"The container around Freehold forbids what isolates the computer ({reason}). It lacks {' and '.join(settings)}",
            CONTAINER_HINT,
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


def _find_container_settings() -> list[str]:
    """What the container around us lacks, as docker and Kubernetes call it; empty if this is not a container."""
    settings = []
    if re.search(r"^Seccomp:\s*2", _read_own("status"), re.MULTILINE):
        settings.append("seccompProfile: Unconfined (docker: --security-opt seccomp=unconfined)")
    if any(line.split()[4].startswith("/proc/") for line in _read_own("mountinfo").splitlines()):
        settings.append("procMount: Unmasked (docker: --security-opt systempaths=unconfined)")
        if _read_own("uid_map").split() == ["0", "0", str(2**32 - 1)]:
            settings.append("hostUsers: false, without which Kubernetes takes no procMount")
    return settings


def _read_own(name: str) -> str:
    return Path("/proc/self", name).read_text()


def _is_about_namespaces(reason: str) -> bool:
    return any(word in reason for word in ("namespace", "uid map", "RTM_NEWADDR", "Permission denied", "not permitted"))


def _read_sysctl(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
