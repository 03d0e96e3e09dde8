"""Whether this machine can build the walls, and what to do where it cannot. Nothing here ever lowers one."""

import ctypes
import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.seccomp import compile_filters
from freehold.errors import FreeholdError

OLDEST = (0, 8)
LANDLOCK_CREATE_RULESET = 444
OLDEST_LANDLOCK = 2
SESSIONS_APART = "sessions apart"

APPARMOR_PROFILE = """\
abi <abi/4.0>,
include <tunables/global>
profile bwrap {path} flags=(unconfined) {{
  userns,
  include if exists <local/bwrap>
}}
"""


@dataclass(frozen=True)
class WallProblem:
    """A wall that cannot be built here: which, why, and how to get it."""

    wall: str
    message: str
    hint: str

    def error(self) -> FreeholdError:
        return FreeholdError("computer.no-isolation", self.message, hint=self.hint)


@dataclass(frozen=True)
class Tools:
    """The programs that build the walls, found once."""

    bwrap: str
    setpriv: str
    version: str


@functools.cache
def find_tools() -> Tools:
    """Raises `computer.no-isolation` where a program is missing or too old. What was found is remembered."""
    # The walls' own programs come from the system's folders, never from wherever a PATH points.
    search = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
    bwrap, setpriv = shutil.which("bwrap", path=search), shutil.which("setpriv", path=search)
    if bwrap is None:
        raise FreeholdError(
            "computer.no-isolation",
            "bubblewrap (bwrap), which builds the computer's walls, is not installed",
            hint="apt install bubblewrap, dnf install bubblewrap or pacman -S bubblewrap",
        )
    if setpriv is None:
        raise FreeholdError(
            "computer.no-isolation",
            "setpriv, which gives up privileges before the computer starts, is not installed",
            hint="apt install util-linux, dnf install util-linux",
        )
    shown = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False, env={}).stdout
    version = shown.removeprefix("bubblewrap").strip()
    if parse_version(version) < OLDEST:
        raise FreeholdError(
            "computer.no-isolation",
            f"bubblewrap {version or 'of unknown version'} cannot switch off nested user namespaces",
            hint="Install bubblewrap 0.8 or later (Debian 12, Ubuntu 23.04, Fedora 38 and later have it)",
        )
    return Tools(bwrap, setpriv, version)


def parse_version(text: str) -> tuple[int, ...]:
    """The numbers at the start of a version; () for what is not one, which is older than everything."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def isolation_problems() -> list[WallProblem]:
    """Every wall that cannot be built on this machine, found by trying. Empty is the only good answer. Takes some 10 ms."""
    problems: list[WallProblem] = []
    try:
        tools = find_tools()
    except FreeholdError as error:
        problems.append(WallProblem("sandbox", error.message, error.hint))
    else:
        problems.extend(_try_namespaces(tools))
    try:
        compile_filters()
    except FreeholdError as error:
        problems.append(WallProblem("system calls", error.message, error.hint))
    if not _seccomp_in_kernel():
        problems.append(
            WallProblem("system calls", "This kernel has no seccomp filters", "Use a kernel with CONFIG_SECCOMP_FILTER")
        )
    return problems


def landlock_version() -> int:
    """What the kernel knows of Landlock; 0 where it has none, or was started without."""
    libc = ctypes.CDLL(None)
    libc.syscall.restype = ctypes.c_long
    version: int = libc.syscall(ctypes.c_long(LANDLOCK_CREATE_RULESET), None, ctypes.c_long(0), ctypes.c_long(1))
    return max(0, version)


def keeps_sessions_apart() -> bool:
    """Whether the guest can keep sessions in one computer from reading each other; see guest/kernel.py."""
    return landlock_version() >= OLDEST_LANDLOCK


def _seccomp_in_kernel() -> bool:
    return "\nSeccomp:" in Path("/proc/self/status").read_text()


def _try_namespaces(tools: Tools) -> list[WallProblem]:
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
    return [] if tried.returncode == 0 else [diagnose(tried.stderr, tools.bwrap)]


def diagnose(stderr: str, bwrap: str = "/usr/bin/bwrap") -> WallProblem:
    """Turns what bubblewrap says into which wall is missing and how to get it."""
    said = stderr.strip().splitlines()[-1] if stderr.strip() else "it gave no reason"
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1" and _is_about_namespaces(said):
        profile = APPARMOR_PROFILE.format(path=bwrap).replace("\n", "\\n")
        return WallProblem(
            "user namespace",
            f"AppArmor does not let bubblewrap make user namespaces ({said})",
            f"printf '{profile}' | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap",
        )
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return WallProblem(
            "user namespace",
            f"This kernel does not let unprivileged programs make user namespaces ({said})",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1, and keep it in /etc/sysctl.d/",
        )
    if _setting("user/max_user_namespaces") == "0":
        return WallProblem(
            "user namespace",
            f"This machine allows no user namespaces ({said})",
            "sudo sysctl -w user.max_user_namespaces=15000, and keep it in /etc/sysctl.d/",
        )
    if "proc" in said and "mount" in said:
        return WallProblem(
            "masked /proc",
            f"A /proc of its own cannot be mounted ({said})",
            "Inside a container this needs an unmasked /proc: --security-opt systempaths=unconfined, or run on the host",
        )
    return WallProblem(
        "sandbox",
        f"bubblewrap could not build the walls: {said}",
        "Inside a container allow user namespaces (--security-opt seccomp=unconfined); otherwise see freehold doctor",
    )


def _is_about_namespaces(said: str) -> bool:
    return any(word in said for word in ("namespace", "uid map", "RTM_NEWADDR", "Permission denied", "not permitted"))


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
