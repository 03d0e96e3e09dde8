"""Sealed computers, seen from the host: the library, the contract with the backends, and the backends.

The names below are loaded on first use. None of them imports anything outside the standard library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freehold.computer.contract.backend import Backend as Backend
    from freehold.computer.contract.backend import Machine as Machine
    from freehold.computer.contract.report import Isolation as Isolation
    from freehold.computer.contract.report import LimitEvent as LimitEvent
    from freehold.computer.contract.report import MachineUsage as MachineUsage
    from freehold.computer.contract.spec import ComputerSpec as ComputerSpec
    from freehold.computer.contract.spec import Device as Device
    from freehold.computer.contract.spec import Limits as Limits
    from freehold.computer.contract.spec import Mount as Mount
    from freehold.computer.isolates.context import CodeContext as CodeContext
    from freehold.computer.isolates.context import ContextInfo as ContextInfo
    from freehold.computer.isolates.execution import CodeError as CodeError
    from freehold.computer.isolates.execution import CodeResult as CodeResult
    from freehold.computer.isolates.execution import OutputChunk as OutputChunk
    from freehold.computer.isolates.language import CodeLanguage as CodeLanguage
    from freehold.computer.isolates.limits import Grants as Grants
    from freehold.computer.isolates.limits import IsolateLimits as IsolateLimits
    from freehold.computer.isolates.records import DataTable as DataTable
    from freehold.computer.isolates.records import ResultItem as ResultItem
    from freehold.computer.library.computer import Computer as Computer
    from freehold.computer.library.connection import LinkState as LinkState
    from freehold.computer.library.file_entry import FileEntry as FileEntry
    from freehold.computer.library.file_entry import SearchHit as SearchHit
    from freehold.computer.library.file_entry import SearchResult as SearchResult
    from freehold.computer.library.files import Files as Files
    from freehold.computer.library.launch import launch as launch
    from freehold.computer.library.pool import ComputerPool as ComputerPool
    from freehold.computer.library.process import CommandResult as CommandResult
    from freehold.computer.library.process import Process as Process
    from freehold.computer.library.process import ProcessExit as ProcessExit
    from freehold.computer.library.process_list import ComputerStats as ComputerStats
    from freehold.computer.library.process_list import ProcessNode as ProcessNode
    from freehold.computer.library.process_list import RunningProcess as RunningProcess
    from freehold.computer.library.terminal import Terminal as Terminal
    from freehold.computer.library.terminal import TerminalExit as TerminalExit
    from freehold.computer.library.terminal import TerminalInfo as TerminalInfo
    from freehold.computer.library.tunnel import ComputerListener as ComputerListener
    from freehold.computer.library.tunnel import Tunnel as Tunnel

_MODULES = {
    "contract.backend": (
        "Backend",
        "Machine",
    ),
    "contract.report": (
        "Isolation",
        "LimitEvent",
        "MachineUsage",
    ),
    "contract.spec": (
        "ComputerSpec",
        "Device",
        "Limits",
        "Mount",
    ),
    "isolates.context": (
        "CodeContext",
        "ContextInfo",
    ),
    "isolates.execution": (
        "CodeError",
        "CodeResult",
        "OutputChunk",
    ),
    "isolates.language": ("CodeLanguage",),
    "isolates.limits": (
        "Grants",
        "IsolateLimits",
    ),
    "isolates.records": (
        "DataTable",
        "ResultItem",
    ),
    "library.computer": ("Computer",),
    "library.connection": ("LinkState",),
    "library.file_entry": (
        "FileEntry",
        "SearchHit",
        "SearchResult",
    ),
    "library.files": ("Files",),
    "library.launch": ("launch",),
    "library.pool": ("ComputerPool",),
    "library.process": (
        "CommandResult",
        "Process",
        "ProcessExit",
    ),
    "library.process_list": (
        "ComputerStats",
        "ProcessNode",
        "RunningProcess",
    ),
    "library.terminal": (
        "Terminal",
        "TerminalExit",
        "TerminalInfo",
    ),
    "library.tunnel": (
        "ComputerListener",
        "Tunnel",
    ),
}
_EXPORTS = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(
            f"module 'freehold.computer' has no attribute {name!r}; it has {', '.join(sorted(_EXPORTS))}"
        )
    return getattr(import_module(f"freehold.computer.{module}"), name)
