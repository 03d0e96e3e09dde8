"""The system-call filters: unknown calls, how the two filters work together, and the one that a container engine applies."""

import functools
import json
import struct

import pyseccomp
from hypothesis import example, given
from hypothesis import strategies as st

from freehold.computer.engine.filter_profile import RLIMITS, list_others, make_filter_profile, make_short_profile
from freehold.computer.library.computer import Computer
from freehold.computer.walls import seccomp
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


PROTECT_PROGRAMS_INSIDE = {
    "prlimit64", "ptrace", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "setpriority",
    "ioprio_set",
}  # fmt: skip
KNOWN_ARGUMENTS = sorted(
    {
        *seccomp.CLONE_NEW.values(), *seccomp.RESERVING_IOCTLS, *seccomp.LEASES, *seccomp.PERSONALITIES, *range(20),
        seccomp.CLONE_FILES, seccomp.CLONE_THREAD, seccomp.CLONE_THREAD | seccomp.CLONE_FILES, seccomp.PTRACE_SEIZE,
        seccomp.TIOCSTI, seccomp.TIOCLINUX, seccomp.LARGEST_SEGMENT, seccomp.MAX_SEMAPHORES, 0o20644, 0o60644, 0o10644,
    }
)  # fmt: skip
ARGUMENT = st.one_of(
    st.integers(0, 2**64 - 1),
    st.builds(
        lambda value, change, high: (value + change) % 2**32 | high << 32,
        st.sampled_from(KNOWN_ARGUMENTS),
        st.sampled_from((-1, 0, 0, 0, 1)),
        st.sampled_from((0, 0, 0, 1)),
    ),
)


@functools.cache
def compile_profile() -> bytes:
    """As the engine does it."""
    profile = json.loads(make_filter_profile())
    compare = {"SCMP_CMP_EQ": pyseccomp.EQ, "SCMP_CMP_LE": pyseccomp.LE, "SCMP_CMP_MASKED_EQ": pyseccomp.MASKED_EQ}
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    otherwise = pyseccomp.ERRNO(profile["defaultErrnoRet"])
    rules = pyseccomp.SyscallFilter(otherwise)
    for call in profile["syscalls"]:
        action = pyseccomp.ALLOW if call["action"] == "SCMP_ACT_ALLOW" else pyseccomp.ERRNO(call["errnoRet"])
        conditions = [
            pyseccomp.Arg(one["index"], compare[one["op"]], one["value"], one.get("valueTwo", 0))
            for one in call.get("args", [])
        ]
        for name in call["names"] if action != otherwise else []:
            seccomp._add(pyseccomp, rules, action, name, *conditions)
    return seccomp._export(rules)


def test_the_short_profile_refuses_every_dangerous_call() -> None:
    """It is applied where nothing runs before the filters of pid 1 stand."""
    profile = json.loads(make_short_profile())
    (rule,) = profile["syscalls"]
    assert (profile["defaultAction"], rule["action"]) == ("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO")
    assert set(rule["names"]) == set(REFUSED)
    assert "args" not in rule


def lets_pass(program: bytes, number: int, arguments: list[int]) -> bool:
    """Run a filter as the kernel does."""
    data = struct.pack("<IIQ6Q", number, 0xC000003E, 0, *arguments)
    code = list(struct.iter_unpack("<HBBI", program))
    at = value = 0
    while True:
        operation, if_true, if_false, constant = code[at]
        at += 1
        match operation:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, constant)
            case 0x54:
                value &= constant
            case 0x05:
                at += constant
            case 0x06:
                return bool(constant == 0x7FFF0000)
            case _:
                holds = {
                    0x15: value == constant,
                    0x25: value > constant,
                    0x35: value >= constant,
                    0x45: value & constant,
                }
                at += if_true if holds[operation] else if_false


@given(st.sampled_from((*ALLOWED, *REFUSED, "personality", "clone3")), st.lists(ARGUMENT, min_size=6, max_size=6))
@example("clone", [seccomp.CLONE_NEW["CLONE_NEWUSER"], 0, 0, 0, 0, 0])
@example("socket", [38, 5, 0, 0, 0, 0])
@example("setrlimit", [1 << 32 | seccomp.RLIMIT_CORE, 0, 0, 0, 0, 0])
@example("ioctl", [1, seccomp.RESERVING_IOCTLS[0], 0, 0, 0, 0])
def test_the_profile_of_an_engine_refuses_what_our_filters_refuse_and_nothing_else(
    name: str, arguments: list[int]
) -> None:
    """It is written in another form, and made of the same tables. Only what protects programs inside from each other is not in it."""
    try:
        number = pyseccomp.resolve_syscall(pyseccomp.Arch.X86_64, name)
    except OSError:
        return  # this libseccomp is older than the call
    if number < 0 or pyseccomp.system_arch() != pyseccomp.Arch.X86_64:
        return
    ours = all(lets_pass(program, number, arguments) for program in compile_filters())
    engine = lets_pass(compile_profile(), number, arguments)
    if name in ("setrlimit", "prlimit64") and arguments[name == "prlimit64"] % 2**32 >= RLIMITS:
        return  # no kernel has such a limit
    assert engine or not ours
    inside = name in PROTECT_PROGRAMS_INSIDE or arguments[1] % 2**32 in (seccomp.TIOCSTI, seccomp.TIOCLINUX)
    assert ours or not engine or inside


@given(st.sets(st.integers(0, 2**32 - 1), max_size=6), st.integers(0, 2**32 - 1))
def test_others_are_all_numbers_but_the_given_ones(values: set[int], number: int) -> None:
    others = list(list_others(sorted(values)))
    for each in (*values, number):
        assert any(each & mask == result for mask, result in others) == (each not in values)
