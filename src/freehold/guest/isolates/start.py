"""`python3 guest.pyz --zygote LANGUAGE [FOLDER…]`: started by the guest, with its control socket as descriptor 0."""

from __future__ import annotations

import os
import sys

MAX_PACKET = 1 << 18


def main() -> None:
    language, *folders = sys.argv[sys.argv.index("--zygote") + 1 :]
    closed, networked = os.read(0, MAX_PACKET), os.read(0, MAX_PACKET)
    sys.path += [folder for folder in folders if folder not in sys.path]
    if language == "wasm":
        from freehold.guest.isolates.wasm_zygote import run_zygote
    else:
        from freehold.guest.isolates.python_zygote import run_zygote
    run_zygote(closed, networked, folders)
