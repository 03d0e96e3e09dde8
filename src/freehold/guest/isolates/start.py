"""`python3 guest.pyz --zygote LANGUAGE [PACKAGE=FOLDER…]`: started by the guest, with its control socket as descriptor 0."""

from __future__ import annotations

import os
import sys

MAX_PACKET = 1 << 18


def main() -> None:
    language, *given = sys.argv[sys.argv.index("--zygote") + 1 :]
    packages = dict(one.split("=", 1) for one in given)
    closed, networked = os.read(0, MAX_PACKET), os.read(0, MAX_PACKET)
    # What was asked for comes before what the system has, and after Python's own modules.
    at = next((place for place, folder in enumerate(sys.path) if folder.endswith("-packages")), len(sys.path))
    sys.path[at:at] = [folder for folder in packages.values() if folder not in sys.path]
    if language == "wasm":
        from freehold.guest.isolates.wasm_zygote import run_zygote
    else:
        from freehold.guest.isolates.python_zygote import run_zygote
    run_zygote(closed, networked, list(packages))
