"""Real virtual machines for the tests, where this machine has what they need."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freehold.computer.contract.backend import Backend
from freehold.computer.microvm.backend import MicroVm
from freehold.computer.microvm.requirements import check_vm_requirements
from freehold.errors import FreeholdError

KERNEL_FOLDER = Path(os.environ.get("FREEHOLD_TEST_KERNEL", "/"))
"""A folder with boot/ and lib/modules/, for a test machine that has no kernel of its own."""


@contextmanager
def micro_vm() -> Iterator[Backend]:
    """Skips, with the reason, where a program or a kernel is missing."""
    try:
        check_vm_requirements(KERNEL_FOLDER)
    except FreeholdError as error:
        pytest.skip(f"{error.message}: the microvm backend was not run")
    yield MicroVm(kernel=KERNEL_FOLDER)
