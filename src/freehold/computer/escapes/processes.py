"""Escape attempts against processes: those of the host, the guest, and others inside."""

from freehold.computer.escapes.escape import EscapeAttempt

PROCESSES = (
    EscapeAttempt(
        "host-processes",
        "sees or signals a process of the host",
        r"""
attempt("signal the host's process", os.kill, bait["pid"] if bait["pid"] > 4194 else 4194303, 0)
for name in os.listdir("/proc"):
    if name.isdigit():
        try:
            comm = read(f"/proc/{name}/comm").decode(errors="replace").strip()
        except OSError:
            continue
        if comm in ("bwrap", "systemd", "init", "kthreadd", "pytest", "freehold"):
            escaped(f"pid {name} is {comm}")
if b"guest.pyz" not in read("/proc/1/cmdline"):
    escaped("pid 1 is not the guest")
if sum(name.isdigit() for name in os.listdir("/proc")) > 8:
    escaped(f"too many processes: {os.listdir('/proc')}")
refused("only this computer's processes are there")
""",
    ),
    EscapeAttempt(
        "trace-others",
        "traces or reads a process that did not ask to be traced",
        r"""
PTRACE = 101 if X86 else 117
child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
children.append(child)
for target, label in ((1, "pid 1"), (child.pid, "another")):
    attempt(f"attach to {label}", syscall, PTRACE, 16, target, 0, 0)
    attempt(f"attach to {label} above 32 bits", syscall, PTRACE, 0x100000010, target, 0, 0)
    attempt(f"seize {label}", syscall, PTRACE, 0x4206, target, 0, 0)
    vector = ctypes.create_string_buffer(struct.pack("=QQ", 0, 8))
    attempt(f"process_vm_readv of {label}", syscall, 310 if X86 else 270, target, vector, 1, vector, 1, 0)
    descriptor = os.pidfd_open(target)
    attempt(f"pidfd_getfd of {label}", syscall, 438, descriptor, 1, 0)
end(child)
""",
    ),
    EscapeAttempt(
        "kill-guest",
        "kills or stops the guest, which controls the computer",
        r"""
for name in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGHUP", "SIGSEGV", "SIGABRT", "SIGQUIT", "SIGUSR1", "SIGPIPE", "SIGALRM", "SIGXFSZ"):
    try:
        os.kill(1, getattr(signal, name))
    except OSError as error:
        refused(f"{name}: {error}")
import resource
for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_CPU):
    attempt("lower the guest's limits", resource.prlimit, 1, kind, resource.prlimit(1, kind))
attempt("bind the guest to one processor", os.sched_setaffinity, 1, os.sched_getaffinity(1))
attempt("let the guest idle", os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))
for which, who in ((os.PRIO_PROCESS, 1), (os.PRIO_PGRP, 1), (os.PRIO_USER, 1000), (os.PRIO_USER, 0)):
    attempt("make the guest nice", os.setpriority, which, who, 19)
    attempt("let the guest's files wait", syscall, 251 if X86 else 30, which + 1, who, 3 << 13)
time.sleep(0.05)
with open("/proc/1/stat") as file:
    state = file.read().rsplit(")", 1)[1].split()[0]
if state in "TtZX":
    escaped(f"the guest is in state {state}")
refused("signals to pid 1 have no effect")
""",
    ),
    EscapeAttempt(
        "inherited-descriptors",
        "finds a descriptor of the host that was left open",
        r"""
for name in os.listdir("/proc/self/fd"):
    try:
        target = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        continue
    if int(name) > 2 and not target.startswith("/proc/"):
        escaped(f"descriptor {name} is {target}")
    if not target.startswith(("pipe:", "/dev/null", "/proc/", "socket:")):
        escaped(f"descriptor {name} is {target}")
    if int(name) < 3 and target.startswith("pipe:"):
        # Opening its own pipe again must lead to that pipe only.
        if not stat.S_ISFIFO(os.stat(f"/proc/self/fd/{name}").st_mode):
            escaped(f"{name} leads to a file")
refused("standard streams only")
""",
    ),
    EscapeAttempt(
        "host-environment",
        "reads the environment of the host",
        r"""
allowed = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_CTYPE", "TERM", "PWD", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
           "http_proxy", "https_proxy", "all_proxy", "no_proxy", "OLDPWD", "SHLVL", "_", "FREEHOLD_PROCESS"}
extra = set(os.environ) - allowed
if extra:
    escaped(f"the environment holds {extra}")
refused(f"{len(os.environ)} variables, all of the computer's own")
for line in sys.argv:
    if "FREEHOLD_BAIT=" in line:
        escaped("the host's variables are on the command line")
""",
    ),
    EscapeAttempt(
        "limits-raised",
        "raises its own limits",
        r"""
import resource
for name in ("NOFILE", "FSIZE", "MEMLOCK", "NICE", "RTPRIO", "SIGPENDING", "MSGQUEUE"):
    kind = getattr(resource, f"RLIMIT_{name}")
    _, hard = resource.getrlimit(kind)
    def lift():
        try:
            resource.setrlimit(kind, (hard + 4096, hard + 4096))
        except ValueError as error:
            raise PermissionError(errno.EPERM, str(error)) from error
    attempt(name, lift)
niceness = os.getpriority(os.PRIO_PROCESS, 0)
if niceness > -20:
    attempt("a higher priority", os.setpriority, os.PRIO_PROCESS, 0, niceness - 1)
attempt("real time", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
""",
    ),
    EscapeAttempt(
        "daemons-after-stop",
        "leaves processes behind that survive the kill switch",
        r"""
def detach(number):
    # Two forks, a Unix session of its own, no descriptors, no environment.
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for descriptor in range(3):
        os.close(descriptor)
    os.environ.clear()
    libc.prctl(15, b"survivor", 0, 0, 0)
    if number == 1:
        libc.prctl(4, 0, 0, 0, 0)
    if number == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(120)
    os._exit(0)
for number in range(3):
    detach(number)
refused("started")
""",
        then_stop=True,
    ),
)
