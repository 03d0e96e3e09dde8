"""Real virtual machines for the tests, where this machine has what they need."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freehold.computer.microvm.backend import MicroVm
from freehold.computer.microvm.requirements import check_vm_requirements, find_vm_tools
from freehold.errors import FreeholdError

UNPACKED = Path(os.environ.get("FREEHOLD_TEST_VM_SYSTEM", "/var/cache/freehold-tests/vm-system"))
"""Where tools/install-vm-system has unpacked QEMU, virtiofsd and a kernel."""
VM_SYSTEM = UNPACKED if (UNPACKED / "ready").exists() else Path("/")


@contextmanager
def micro_vm() -> Iterator[MicroVm]:
    """Skips, with the reason, where a program or a kernel is missing."""
    try:
        check_vm_requirements(VM_SYSTEM)
    except FreeholdError as error:
        pytest.skip(f"{error.message}: the microvm backend was not run (tools/install-vm-system)")
    yield MicroVm(system=VM_SYSTEM)


def skip_unless_it_can_save() -> None:
    """Templates and sleep on disk need QEMU 10."""
    tools = find_vm_tools(VM_SYSTEM)
    if not tools.can_save:
        pytest.skip(f"QEMU {tools.version} cannot save a machine with shared folders (tools/install-vm-system)")
