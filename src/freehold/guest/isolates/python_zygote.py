"""The zygote of Python isolates: imports what most snippets need, once, and forks."""

# Runs in a process of its own; the other modules of the guest must not be loaded here.

from __future__ import annotations

import os
import sys
from importlib import import_module

from freehold.guest.isolates import fork_server
from freehold.guest.isolates.python_runner import PythonRunner, rehearse_python
from freehold.guest.isolates.walls import Walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PRELOAD = """
abc ast asyncio base64 bisect builtins collections contextlib copy csv dataclasses datetime decimal enum fractions
functools glob hashlib heapq html inspect io itertools json linecache math operator os.path pathlib random re secrets
shutil statistics string struct textwrap threading time traceback typing unicodedata urllib.parse uuid warnings zlib
"""
PRELOAD = _PRELOAD.split()
REHEARSALS = 20
"""So many that the interpreter has specialised the code that every isolate runs."""


def run_zygote(closed: bytes, networked: bytes, packages: Sequence[str]) -> None:
    """`packages` are folders: what has the folder's name is imported now."""
    os.environ["MPLBACKEND"] = "agg"
    for name in [*PRELOAD, *map(os.path.basename, packages)]:
        try:
            import_module(name)
        except ImportError:
            if name not in PRELOAD:
                raise
    walls = Walls(sys.path, closed, networked)
    sys.path.insert(0, "")  # the folder of the isolate
    for _ in range(REHEARSALS):
        fork_server.rehearse(lambda: rehearse_python(walls))
    fork_server.serve(walls, live)


def live(walls: Walls) -> None:
    # While it is parked: random numbers of its own (those of a fork would repeat its sibling's), and a first pass
    # through everything that a request needs, so that the pages that it writes are its own already.
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    fork_server.rehearse(lambda: rehearse_python(walls))
    runner = PythonRunner(walls)
    walls.rehearse()
    while True:
        runner.answer()
