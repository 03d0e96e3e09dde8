"""What one isolate may use, and what it may reach. Everything that is not granted is refused."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from freehold.computer.contract.spec import MIB


@dataclass(frozen=True)
class IsolateLimits:
    """Bytes, seconds and counts. Only the caller can raise them.

    memory      data of the process beyond what the interpreter itself has; the files in its folder as well
    processor   processor seconds of all its threads, for one execution
    wall_time   seconds that one execution may take
    output      bytes of stdout and stderr together
    results     bytes of values, pictures and result files together
    file_size   size of the largest file that it may write
    open_files  open files
    """

    memory: int = 128 * MIB
    processor: float = 30.0
    wall_time: float = 60.0
    output: int = 1 * MIB
    results: int = 16 * MIB
    file_size: int = 16 * MIB
    open_files: int = 128


@dataclass(frozen=True)
class Grants:
    """What an isolate may reach beyond the system's own programs and libraries.

    `files` are absolute paths inside the computer, each readable ("r") or writable ("rw"). With `network` it may
    connect to egress, which asks the owner as for any other program. `packages` are prepared sets of libraries.
    """

    files: Mapping[str, Literal["r", "rw"]] | None = None
    network: bool = False
    packages: tuple[str, ...] = ()


def describe_isolate(language: str, limits: IsolateLimits, grants: Grants, apart: str | None) -> dict[str, Any]:
    request: dict[str, Any] = {"language": language, "limits": asdict(limits)}
    if grants.files:
        request["files"] = [[path, mode] for path, mode in grants.files.items()]
    if grants.network:
        request["network"] = True
    if grants.packages:
        request["packages"] = list(grants.packages)
    if apart:
        request["apart"] = apart
    return request
