"""What tests know about the machine of a computer, beyond the contract."""

from freehold.computer import Computer
from freehold.computer.contract.backend import find_host_pid


def host_pid(computer: Computer) -> int:
    """The guest's pid on the host."""
    assert computer.machine is not None
    pid = find_host_pid(computer.machine)
    assert pid is not None
    return pid
