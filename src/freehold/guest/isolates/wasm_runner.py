"""Runs WebAssembly: compiles a module or loads a compiled one, and calls its functions, with WASI for the rest."""

from __future__ import annotations

import json
import os
import re
import signal
import threading

import wasmtime

from freehold.guest.isolates.fork_server import read_exactly, read_request_with_file, records
from freehold.guest.isolates.records import MAX_ITEM, MODULE
from freehold.guest.isolates.runner import IsolateRunner, NamedFailure, send_item
from freehold.guest.isolates.walls import Walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_STACK = 1 << 20
MAX_TABLES = 100
CALL = re.compile(r"\s*([^\s()]+)\s*\((.*)\)\s*;?\s*", re.DOTALL)
COMPONENT = b"\0asm\x0d\0\x01\0"
# Takes everything that the first module would have to load, without a call of WASI.
_WARM = """
(module (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1) (func (export "f") (param i32) (result i32) (local.get 0)))
"""


class WasmEngine:
    """What the zygote prepares for all isolates. Compiled modules fit every isolate of the same engine."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.epoch_interruption = True  # a context is interrupted by it
        config.parallel_compilation = False  # a forked child has no other thread
        config.memory_init_cow = False  # it needs a memfd, which no limit counts
        config.max_wasm_stack = MAX_STACK
        config.wasm_threads = False
        self.engine = wasmtime.Engine(config)
        self.linker = wasmtime.Linker(self.engine)
        self.linker.define_wasi()
        self.warm = bytes(wasmtime.Module(self.engine, _WARM).serialize())

    def load(self, compiled: bytes) -> wasmtime.Module:
        return wasmtime.Module.deserialize(self.engine, compiled)


class WasmRunner(IsolateRunner):
    """Its instance, with its memory, lives until another module takes its place."""

    def __init__(self, walls: Walls, engine: WasmEngine) -> None:
        super().__init__(walls)
        self._engine = engine
        self._source: bytes | None = None
        self._compiled: bytes | None = None
        self._instance: WasmInstance | None = None
        self._watches = False
        self._interrupted = False

    def rehearse(self) -> None:
        instance = WasmInstance(self._engine, self._engine.load(self._engine.warm), {"limits": {"memory": 1 << 26}})
        instance.call("f", [1])
        json.dumps(json.loads('{"code": "1", "limits": {"memory": 1}}'))

    def receive(self) -> dict[str, Any]:
        """The module comes after the request: its text or bytes, or a file of what was compiled from them before."""
        data, compiled = read_request_with_file()
        request: dict[str, Any] = json.loads(data)
        self._interrupted = False
        self._source = read_exactly(request["module"]) if "module" in request else None
        self._compiled = None
        if compiled is not None:
            # All isolates share one open file, and so its position.
            self._compiled = os.pread(compiled, os.fstat(compiled).st_size, 0)
            os.close(compiled)
        return request

    def execute(self, request: dict[str, Any]) -> None:
        if request.get("keep") and not self._watches:
            self._watch_for_interrupts()
        module = self._take_module(bool(request.get("store")))
        call = request.get("call") or request["code"]
        if module is not None:
            self._instance = None  # its memory is free before the next one needs some
            self._instance = self._instantiate(module, request)
            if not call and not request.get("keep") and not self._instance.has("_start"):
                raise NamedFailure("LinkError", f"The module has no _start. Call one of {self._instance.exports()}")
        if self._instance is None:
            raise NamedFailure("LinkError", "There is no module yet. Give one: text that begins with (module, or bytes")
        instance = self._instance
        instance.begin()
        if self._interrupted:
            raise NamedFailure("Interrupted", "The execution was interrupted")
        value: object = None
        if module is not None:
            instance.initialize(run=not call)
        if call:
            value = instance.call(*read_call(call))
        if value is not None:
            send_wasm_value(value)

    def _take_module(self, store: bool) -> wasmtime.Module | None:
        source, self._source = self._source, None
        compiled, self._compiled = self._compiled, None
        if compiled is not None:
            return self._engine.load(compiled)
        if source is None:
            return None
        if source.startswith(COMPONENT):
            raise NamedFailure("CompileError", "This is a component. Only core modules of WebAssembly can run here")
        try:
            module = wasmtime.Module(self._engine.engine, source)
        except (wasmtime.WasmtimeError, UnicodeDecodeError) as error:
            raise NamedFailure("CompileError", str(error)) from None
        if store:
            # Nothing of the module has run in this process, so that what the guest keeps is what was compiled.
            made = bytes(module.serialize())
            if len(made) <= MAX_ITEM:
                records.write(MODULE, made)
        return module

    def _instantiate(self, module: wasmtime.Module, request: dict[str, Any]) -> WasmInstance:
        try:
            return WasmInstance(self._engine, module, request)
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            raise NamedFailure("LinkError", str(error)) from None

    def _watch_for_interrupts(self) -> None:
        """A thread that ends the running code at SIGINT: no Python runs meanwhile that could handle the signal."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGINT, lambda number, frame: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

        def interrupt() -> None:
            while os.read(woken, 512):
                self._interrupted = True
                self._engine.engine.increment_epoch()

        threading.Thread(target=interrupt, daemon=True).start()
        self._watches = True


class WasmInstance:
    """An instance with a store of its own. The folder of the isolate is `.`; granted folders have their own paths."""

    def __init__(self, engine: WasmEngine, module: wasmtime.Module, request: dict[str, Any]) -> None:
        self._store = wasmtime.Store(engine.engine)
        self._store.set_limits(
            memory_size=request["limits"]["memory"], instances=1, tables=MAX_TABLES, memories=MAX_TABLES
        )
        self._store.set_wasi(_configure_wasi(request))
        self.begin()
        self._exports = engine.linker.instantiate(self._store, module).exports(self._store)

    def begin(self) -> None:
        """From now on the next interrupt ends what runs."""
        self._store.set_epoch_deadline(1)

    def has(self, name: str) -> bool:
        return name in self._exports

    def exports(self) -> str:
        return ", ".join(name for name, one in self._exports.items() if isinstance(one, wasmtime.Func)) or "none"

    def initialize(self, run: bool) -> None:
        """Start a command or prepare a library, as WASI says. `run`: also a command."""
        if self.has("_initialize"):
            self.call("_initialize", [])
        elif run and self.has("_start"):
            self.call("_start", [])

    def call(self, name: str, arguments: list[object]) -> object:
        function = self._exports.get(name)
        if not isinstance(function, wasmtime.Func):
            raise NamedFailure("LinkError", f"The module has no function {name!r}. It has {self.exports()}")
        try:
            return function(self._store, *arguments)
        except wasmtime.ExitTrap as error:
            raise SystemExit(error.code) from None
        except wasmtime.Trap as error:
            if error.trap_code is wasmtime.TrapCode.INTERRUPT:
                raise NamedFailure("Interrupted", "The execution was interrupted") from None
            raise NamedFailure("RuntimeError", str(error)) from None
        except (wasmtime.WasmtimeError, TypeError, ValueError, OverflowError) as error:
            raise NamedFailure("RuntimeError", str(error)) from None


def _configure_wasi(request: dict[str, Any]) -> wasmtime.WasiConfig:
    wasi = wasmtime.WasiConfig()
    wasi.argv = [request.get("name") or "module", *request.get("arguments", ())]
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    folder = request.get("folder")
    for path, mode in request.get("grants", ()):
        if not os.path.isdir(path):  # noqa: PTH112
            raise NamedFailure("LinkError", f"{path} is not a folder; WASI knows granted folders only")
        wasi.preopen_dir(path, "." if path == folder else path, mode == "rw")
    return wasi


def read_call(text: str) -> tuple[str, list[object]]:
    """`add(40, 2)`: the name of a function, and numbers."""
    found = CALL.fullmatch(text)
    try:
        arguments = json.loads(f"[{found[2]}]") if found else None
    except ValueError:
        arguments = None
    if not found or arguments is None or not all(type(one) in (int, float) for one in arguments):
        raise NamedFailure("SyntaxError", f"{text[:100]!r} is neither a module nor a call such as add(40, 2)")
    return found[1], arguments


def send_wasm_value(value: object) -> None:
    """Numbers as JSON; what JSON does not know, such as a NaN or a reference, as text."""
    try:
        kind, content = "json", json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        kind, content = "text", repr(value)[:1000]
    send_item({"role": "value", "type": kind}, content.encode())
