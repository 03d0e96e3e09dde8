"""`python3 guest.pyz --zygote [PACKAGE…]`: started by the guest, with its control socket as descriptor 0."""

from __future__ import annotations

import os
import sys

from freehold.guest.isolates.python_zygote import run_zygote

MAX_PACKET = 1 << 18


def main() -> None:
    packages = sys.argv[sys.argv.index("--zygote") + 1 :]
    closed, networked = os.read(0, MAX_PACKET), os.read(0, MAX_PACKET)
    run_zygote(closed, networked, packages)
