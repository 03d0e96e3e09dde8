"""The tag of the wheel, for hatchling: it carries an addon that one processor and a new enough C library can load.

The tag is read from the addon itself, so that the same files give the same name on every machine.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ADDON = "src/freehold/guest/isolates/fork.node"
PROCESSORS = {62: "x86_64", 183: "aarch64"}
"""The machines of ELF files that Freehold runs on."""
OLDEST_LIBRARY = 17
"""Packages that Freehold needs have no wheel for an older one."""
_LIBRARY = re.compile(rb"GLIBC_2\.(\d+)")


class WheelTagHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        addon = Path(self.root, ADDON)
        if version == "standard" and addon.exists():
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{find_platform(addon.read_bytes())}"


def find_platform(addon: bytes) -> str:
    """Such as manylinux_2_17_x86_64. Raises ValueError for a file that no wheel can carry."""
    processor = PROCESSORS.get(int.from_bytes(addon[18:20], "little"))
    if addon[:4] != b"\x7fELF" or processor is None:
        raise ValueError(f"{ADDON} is not for a processor that Freehold runs on: build it again with tools/build-addon")
    library = max([OLDEST_LIBRARY, *(int(found) for found in _LIBRARY.findall(addon))])
    return f"manylinux_2_{library}_{processor}"
