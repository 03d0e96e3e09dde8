"""The zygote of Python isolates: imports what most snippets need, once, and forks."""

# Runs in a process of its own; the other modules of the guest must not be loaded here.

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec

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
    """Modules with the names of `packages` are imported now, so that no isolate waits for them."""
    os.environ["MPLBACKEND"] = "agg"
    for name in PRELOAD:
        with suppress(ImportError):
            import_module(name)
    for name in packages:
        if find_spec(name) is not None:  # the modules of a package may have other names
            import_module(name)
    walls = Walls(sys.path, closed, networked)
    generators = find_generators() if packages else []
    sys.path.insert(0, "")  # the folder of the isolate
    for _ in range(REHEARSALS):
        fork_server.rehearse(lambda: rehearse_python(walls))
    fork_server.serve(walls, partial(live, generators))


def find_generators() -> list[object]:
    """The generators of random numbers that packages have made while they were imported."""
    import random

    kinds: tuple[type, ...] = (random.Random,)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        # Bit generators first: a state is seeded through its own.
        kinds = (numpy.random.SeedSequence, numpy.random.BitGenerator, numpy.random.RandomState, *kinds)
    living = gc.get_objects()
    return [one for kind in kinds for one in living if issubclass(type(one), kind)]


def reseed(generators: list[object]) -> None:
    """With what the kernel draws, also those that their package has seeded itself."""
    import random

    for one in generators:
        if isinstance(one, random.Random):
            random.Random.seed(one)  # also where the class of a package has another `seed`
        with suppress(Exception):  # which may want an argument
            if hasattr(one, "seed"):
                one.seed()
            else:
                type(one).__init__(one)


def live(generators: list[object], walls: Walls, limits: bytes) -> None:
    # While it is parked: random numbers of its own (those of a fork would repeat its sibling's), and a first pass
    # through everything that a request needs, so that the pages that it writes are its own already.
    reseed(generators)
    if not fork_server.is_asked():
        fork_server.rehearse(lambda: rehearse_python(walls))
    runner = PythonRunner(walls)
    walls.rehearse()
    runner.seal_early(limits)
    while True:
        runner.answer()
