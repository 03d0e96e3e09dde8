"""The zygote of WASM isolates: an engine that is ready, forked for each module."""

# Runs in a process of its own; the other modules of the guest must not be loaded here.

from __future__ import annotations

import sys

from freehold.guest.isolates import fork_server
from freehold.guest.isolates.walls import Walls
from freehold.guest.isolates.wasm_runner import WasmEngine, WasmRunner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def run_zygote(closed: bytes, networked: bytes, packages: Sequence[str]) -> None:
    engine = WasmEngine()
    sys.argv = [""]

    def live(walls: Walls, limits: bytes) -> None:
        # No thread may exist when the walls are built, because they hold only the thread that builds them. wasmtime
        # starts its threads at the first call of WASI, which the rehearsal does not make.
        runner = WasmRunner(walls, engine)
        runner.rehearse()
        walls.rehearse()
        runner.seal_early(limits)
        while True:
            runner.answer()

    fork_server.serve(Walls(sys.path, closed, networked), live)
