"""The optional parts that are installed, as in `freehold[mesh]`: another version gets them too."""

import importlib.metadata
import re

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([A-Za-z0-9._-]+)["']""")


def list_installed_extras() -> list[str]:
    """Those whose packages are all here, whoever has installed them."""
    needed: dict[str, bool] = {}
    for line in importlib.metadata.requires("freehold") or ():
        name, extra = _NAME.match(line), _EXTRA.search(line)
        if name and extra:
            needed[extra[1]] = needed.get(extra[1], True) and _is_installed(name[0])
    return sorted(extra for extra, is_whole in needed.items() if is_whole)


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
