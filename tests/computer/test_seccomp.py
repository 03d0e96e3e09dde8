"""The system-call filters: unknown calls, and how the two filters work together."""

from freehold.computer.library.computer import Computer
from freehold.computer.walls.seccomp import compile_filters
from freehold.computer.walls.syscalls import ALLOWED, REFUSED

MUST_BE_REFUSED = {
    "mount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr",
    "setns", "unshare", "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "kexec_load",
    "kexec_file_load", "io_uring_setup", "io_uring_enter", "io_uring_register", "process_vm_readv", "process_vm_writev",
    "open_by_handle_at", "name_to_handle_at", "init_module", "finit_module", "delete_module", "quotactl", "swapon", "reboot", "acct",
    "settimeofday", "clock_settime", "pidfd_getfd",
}  # fmt: skip


def test_no_call_is_on_both_lists() -> None:
    assert not set(ALLOWED) & set(REFUSED)
    assert len(ALLOWED) == len(set(ALLOWED))


def test_dangerous_calls_are_refused_by_name() -> None:
    assert set(REFUSED) >= MUST_BE_REFUSED
    assert not {"clone3", *MUST_BE_REFUSED} & set(ALLOWED)


def test_the_programs_are_compiled_once() -> None:
    first = compile_filters()
    assert compile_filters() is first
    assert all(program and len(program) % 8 == 0 for program in first)
    assert compile_filters(nameless_files=False) != first


async def test_both_filters_are_loaded_and_unknown_calls_fail_with_enosys(computer: Computer) -> None:
    """A call of a later kernel fails with ENOSYS, and both filters are active."""
    program = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.syscall(9999), ctypes.get_errno())\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('Seccomp')])"
    )
    assert (await computer.run(["python3", "-c", program])).text == "-1 38\n['2', '2']\n"


async def test_threads_and_children_work_without_clone3(computer: Computer) -> None:
    """clone3 fails with ENOSYS, and the C library uses clone."""
    program = "import threading, subprocess; t = threading.Thread(target=print, args=('thread',)); t.start(); t.join(); subprocess.run(['echo', 'child'])"
    assert set((await computer.run(["python3", "-c", program])).text.split()) == {"thread", "child"}
