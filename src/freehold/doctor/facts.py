"""Facts about this machine that decide which walls it can build. Nothing is started to learn them."""

import os
import platform
from pathlib import Path


def read_facts() -> dict[str, str]:
    """Each fact by the name under which it is shown."""
    from freehold.computer.walls.cgroups import find_parents

    groups = {f"{name} v{parent.version}" for name, parent in find_parents().items()}
    return {
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "user": "root" if os.geteuid() == 0 else f"uid {os.geteuid()}",
        "control groups": ", ".join(sorted(groups)) or "none that this user may write",
        "security modules": _read("/sys/kernel/security/lsm") or "unknown",
        "sessions apart": _describe_session_separation(),
        "apparmor restricts user namespaces": _read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") or "no",
        "user namespaces": _read("/proc/sys/user/max_user_namespaces") or "unknown",
        "core pattern": _read("/proc/sys/kernel/core_pattern") or "unknown",
    }


def _describe_session_separation() -> str:
    from freehold.computer.walls.landlock import can_separate_sessions, read_landlock_version

    if can_separate_sessions():
        return f"yes, by Landlock {read_landlock_version()}"
    return "no: an agent can read another agent's tokens. Use Linux 5.19 or later with Landlock enabled"


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
