"""Escape attempts through the kernel: namespaces, mounts, privileges, rarely used calls."""

from freehold.computer.escapes.escape import EscapeAttempt

KERNEL = (
    EscapeAttempt(
        "namespaces",
        "makes or joins a namespace",
        r"""
UNSHARE, SETNS, CLONE, CLONE3 = (272, 308, 56, 435) if X86 else (97, 268, 220, 435)
flags = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000, "uts": 0x4000000,
         "cgroup": 0x2000000, "time": 0x80}
for name, flag in flags.items():
    attempt(f"unshare {name}", syscall, UNSHARE, flag)
    if name == "time":
        continue
    for value in (flag, flag | 0x10000000):
        def clone(value=value):
            if syscall(CLONE, value | signal.SIGCHLD, 0, 0, 0, 0) == 0:
                os._exit(0)
        attempt(f"clone {name}", clone)
    def clone3(flag=flag):
        if syscall(CLONE3, ctypes.create_string_buffer(struct.pack("=8Q", flag, 0, 0, 0, 17, 0, 0, 0)), 64) == 0:
            os._exit(0)
    attempt(f"clone3 {name}", clone3)
for name in os.listdir("/proc/self/ns"):
    descriptor = os.open(f"/proc/self/ns/{name}", os.O_RDONLY)
    attempt(f"setns {name}", syscall, SETNS, descriptor, 0)
ran = subprocess.run(["unshare", "-Ur", "true"], capture_output=True)
if ran.returncode == 0:
    escaped("unshare -Ur")
""",
    ),
    EscapeAttempt(
        "mounts",
        "mounts, unmounts or changes its root",
        r"""
calls = {"mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161} if X86 else \
        {"mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51}
attempt("mount tmpfs", syscall, calls["mount"], b"x", b"/tmp", b"tmpfs", 0, None)
attempt("mount proc", syscall, calls["mount"], b"proc", b"/tmp", b"proc", 0, None)
attempt("bind", syscall, calls["mount"], b"/usr", b"/tmp", None, 0x1000, None)
attempt("remount", syscall, calls["mount"], None, b"/usr", None, 0x20 | 0x1000, None)
attempt("umount /proc/kcore", syscall, calls["umount2"], b"/proc/kallsyms", 2)
attempt("umount /usr", syscall, calls["umount2"], b"/usr", 2)
attempt("pivot_root", syscall, calls["pivot_root"], b"/tmp", b"/tmp")
attempt("chroot", syscall, calls["chroot"], b"/tmp")
attempt("open_tree", syscall, 428, -100, b"/", 1)
attempt("move_mount", syscall, 429, -100, b"/usr", -100, b"/tmp", 0)
attempt("fsopen", syscall, 430, b"tmpfs", 0)
attempt("fsconfig", syscall, 431, 0, 0, None, None, 0)
attempt("fsmount", syscall, 432, 0, 0, 0)
attempt("fspick", syscall, 433, -100, b"/", 0)
attempt("mount_setattr", syscall, 442, -100, b"/usr", 0, ctypes.create_string_buffer(32), 32)
""",
    ),
    EscapeAttempt(
        "privileges",
        "gains a capability or another uid",
        r"""
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    if int(status[name], 16):
        escaped(f"{name} is {status[name]}")
if status["NoNewPrivs"] != "1" or status["Seccomp"] != "2":
    escaped(f"NoNewPrivs {status['NoNewPrivs']}, Seccomp {status['Seccomp']}")
attempt("setuid 0", os.setuid, 0)
attempt("another uid", os.setresuid, *[os.getuid() + 1] * 3)
attempt("setgid 0", os.setgid, 0)
attempt("setgroups", os.setgroups, [0])
attempt("chown to root", os.chown, "/workspace", 0, 0)
def raise_capabilities():
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    if libc.capset(header, ctypes.create_string_buffer(struct.pack("=6I", *[0xFFFFFFFF] * 6))) < 0:
        raise OSError(ctypes.get_errno(), "capset")
attempt("capset", raise_capabilities)
def ambient():
    if libc.prctl(47, 2, 21, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl")
attempt("ambient capability", ambient)
""",
    ),
    EscapeAttempt(
        "filter-removal",
        "removes the system-call filter",
        r"""
MOUNT = 165 if X86 else 40
libc.prctl(22, 0, 0, 0, 0)
libc.prctl(38, 0, 0, 0, 0)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
allow_all = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000))
libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.addressof(allow_all))), 0, 0)
attempt("mount after an allowing filter", syscall, MOUNT, b"x", b"/tmp", b"tmpfs", 0, None)
def run_from_memory():
    memory = os.memfd_create("program")
    with open("/bin/cat", "rb") as source:
        os.write(memory, source.read())
    command = [f"/proc/self/fd/{memory}", "/proc/self/status"]
    status = subprocess.run(command, pass_fds=[memory], capture_output=True, text=True).stdout
    if "NoNewPrivs:\t1" not in status or "Seccomp:\t2" not in status:
        escaped("a program run from memory has fewer walls")
try:
    run_from_memory()
except OSError as error:
    refused(f"a program run from memory: {errno.errorcode[error.errno]}")
else:
    refused("a program run from memory has the same walls")
""",
    ),
    EscapeAttempt(
        "other-architectures",
        "calls the kernel with the numbers of another architecture, to avoid the filter",
        r"""
import mmap
if X86:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    status = in_child(lambda: os._exit(0 if call() > 0 else 1))
    if status == 0:
        escaped("an i386 call was answered")
    refused(f"i386: ended by signal {os.WTERMSIG(status)}")
    status = in_child(lambda: syscall(0x40000000 | 39))
    if status == 0:
        escaped("an x32 call was answered")
    refused(f"x32: status {status}")
else:
    refused("no other architecture here")
""",
    ),
    EscapeAttempt(
        "rare-calls",
        "uses calls that reach deep into the kernel",
        r"""
buffer = ctypes.create_string_buffer(256)
calls = {
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "acct": (163, 89), "quotactl": (179, 60), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116), "fanotify_init": (300, 262), "vhangup": (153, 58),
    "lookup_dcookie": (212, 18), "move_pages": (279, 239), "migrate_pages": (256, 238), "kcmp": (312, 272),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "memfd_secret": (447, 447),
}
if X86:
    calls |= {"iopl": (172, 0), "ioperm": (173, 0), "modify_ldt": (154, 0), "uselib": (134, 0), "ustat": (136, 0), "sysfs": (139, 0)}
for name, numbers in calls.items():
    try:
        syscall(numbers[0 if X86 else 1], buffer, 0, 0, 0, 0, 0)
    except OSError as error:
        # EPERM comes from the filter, ENOSYS from the filter or the kernel. EFAULT and EINVAL would mean that the kernel read the arguments.
        if error.errno in (errno.EPERM, errno.ENOSYS):
            refused(f"{name}: {errno.errorcode[error.errno]}")
        else:
            escaped(f"{name} reached the kernel: {error}")
    else:
        escaped(name)
PERSONALITY = 135 if X86 else 92
for persona in (0x0400000, 0x0010000, 0x1):
    attempt(f"personality {persona:#x}", syscall, PERSONALITY, persona)
""",
    ),
    EscapeAttempt(
        "terminal-injection",
        "types into a terminal as if it were its owner (TIOCSTI, TIOCLINUX)",
        r"""
IOCTL = 16 if X86 else 29
attempt("/dev/tty of the host", os.open, "/dev/tty", os.O_RDWR)
def inject():
    os.setsid()
    main, side = os.openpty()
    libc.ioctl(side, 0x540E, 0)
    for label, request in (("TIOCSTI", 0x5412), ("TIOCSTI above 32 bits", 0x100005412), ("TIOCLINUX", 0x541C)):
        try:
            syscall(IOCTL, side, request, b"x")
        except OSError as error:
            if error.errno != errno.EPERM:
                os._exit(2)
        else:
            os._exit(1)
    os._exit(0)
status = in_child(inject)
if status:
    escaped(f"status {status}")
refused("TIOCSTI and TIOCLINUX: EPERM")
""",
    ),
)
