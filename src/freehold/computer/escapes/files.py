"""Escape attempts through the file system."""

from freehold.computer.escapes.escape import EscapeAttempt

FILES = (
    EscapeAttempt(
        "host-passwords",
        "reads the host's password and sudo files",
        r"""
for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssl/private"):
    attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else read(path))
""",
    ),
    EscapeAttempt(
        "owner-home",
        "sees the home folder of the owner or of another user",
        r"""
for path in ("/root", "/home/agent/../../root", os.path.dirname(bait["folder"]) + "/" + os.path.basename(bait["folder"])):
    attempt(path, os.listdir, path)
others = [name for name in os.listdir("/home") if name != "agent"]
if others:
    escaped(f"/home holds {others}")
refused("/home contains no other user")
""",
    ),
    EscapeAttempt(
        "host-file",
        "reads a file of the host that every user there may read",
        r"""
secret = bait["secret"]
for path in (secret, "/workspace/../../.." + secret, "/proc/self/root" + secret, "/proc/self/cwd/../../.." + secret,
             "/proc/thread-self/root" + secret, "/dev/fd/../../../.." + secret, "/oldroot" + secret, "/newroot" + secret):
    attempt(path, lambda: print(read(path)))
for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
    attempt(f"/proc/{pid}/root", lambda: print(read(f"/proc/{pid}/root{secret}")))
    attempt(f"/proc/{pid}/cwd", lambda: print(read(f"/proc/{pid}/cwd/../../..{secret}")))
""",
    ),
    EscapeAttempt(
        "guest-process",
        "inspects pid 1: its environment, memory, folders and descriptors",
        r"""
for name in ("environ", "mem", "auxv", "stack", "io"):
    attempt(f"/proc/1/{name}", lambda: read(f"/proc/1/{name}"))
for name in ("root", "cwd", "fd", "map_files", "exe"):
    attempt(f"/proc/1/{name}", os.listdir if name in ("fd", "map_files") else os.readlink, f"/proc/1/{name}")
attempt("write /proc/1/mem", lambda: open("/proc/1/mem", "r+b"))
attempt("write /proc/1/oom_score_adj", write, "/proc/1/oom_score_adj", b"1000")
""",
    ),
    EscapeAttempt(
        "file-handles",
        "opens the host's files by handle, around the mounts",
        r"""
NAME_TO_HANDLE, OPEN_BY_HANDLE = (303, 304) if X86 else (264, 265)
handle = ctypes.create_string_buffer(struct.pack("=Ii8s", 8, 1, struct.pack("=II", 2, 0)) + bytes(128))
mount = ctypes.c_int()
attempt("name_to_handle_at", syscall, NAME_TO_HANDLE, -100, b"/workspace", handle, ctypes.byref(mount), 0)
here = os.open("/workspace", os.O_RDONLY)
attempt("open_by_handle_at", syscall, OPEN_BY_HANDLE, here, handle, 0)
""",
    ),
    EscapeAttempt(
        "read-only-system",
        "changes the system's files",
        r"""
for path in ("/usr/bin/x", "/usr/lib/x", "/usr/local/bin/x", "/etc/x", "/x", "/dev/x", "/opt/freehold/x", "/var/x", "/home/x", "/proc/x"):
    attempt(f"create {path}", lambda: open(path, "w"))
for path in ("/etc/passwd", "/etc/hosts", "/opt/freehold/guest.pyz", "/usr/bin/env", "/etc/ld.so.cache"):
    attempt(f"write {path}", lambda: open(path, "r+"))
    attempt(f"chmod {path}", os.chmod, path, 0o777)
    attempt(f"unlink {path}", os.unlink, path)
for link in ("/usr/bin/env", "/opt/freehold/guest.pyz", "/etc/passwd"):
    attempt(f"link {link}", os.link, link, "/workspace/linked")
attempt("rename /usr", os.rename, "/usr", "/workspace/usr")
""",
    ),
    EscapeAttempt(
        "device-nodes",
        "makes or opens devices",
        r"""
for name, kind, major, minor in (("mem", stat.S_IFCHR, 1, 1), ("disk", stat.S_IFBLK, 8, 0), ("vda", stat.S_IFBLK, 254, 0),
                                 ("kmsg", stat.S_IFCHR, 1, 11), ("tun", stat.S_IFCHR, 10, 200), ("fuse", stat.S_IFCHR, 10, 229)):
    for folder in ("/workspace", "/tmp", "/home/agent", "/dev/shm"):
        attempt(f"mknod {folder}/{name}", os.mknod, f"{folder}/{name}", kind | 0o600, os.makedev(major, minor))
for name in ("mem", "kmem", "port", "kmsg", "sda", "vda", "nvme0n1", "kvm", "fuse", "net/tun", "uinput", "vsock", "vhost-vsock",
             "loop-control", "loop0", "mapper/control", "dri", "snd", "bus", "input", "userfaultfd", "cpu", "hugepages", "mqueue"):
    attempt(f"/dev/{name}", reach, f"/dev/{name}")
""",
    ),
    EscapeAttempt(
        "setuid-programs",
        "gains privileges with a setuid program",
        r"""
found = 0
mounts = [line.split() for line in open("/proc/self/mounts")]
honours = [words[1] for words in mounts if "nosuid" not in words[3].split(",")]
if not honours:
    refused("no file system honours setuid")
for folder in ("/usr/bin", "/usr/sbin", "/usr/lib") if honours else ():
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            try:
                info = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(info.st_mode) and info.st_mode & 0o6000:
                found += 1
                if not os.statvfs(path).f_flag & os.ST_NOSUID and "NoNewPrivs:\t1" not in open("/proc/self/status").read():
                    escaped(f"{path} is setuid on a file system that honours it")
refused(f"{found} setuid programs, all without effect")
for command in (["su", "-c", "id"], ["mount", "-t", "tmpfs", "x", "/tmp"], ["sudo", "-n", "id"], ["newgrp", "root"]):
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    except FileNotFoundError:
        continue
    if ran.returncode == 0 or "uid=0" in ran.stdout:
        escaped(f"{command}: {ran.stdout}")
    refused(f"{command[0]}: exit {ran.returncode}")
shell = "/workspace/setuid-shell"
with open("/bin/sh", "rb") as source, open(shell, "wb") as target:
    target.write(source.read())
os.chmod(shell, 0o6755)
try:
    ids = subprocess.run([shell, "-p", "-c", "id -u"], capture_output=True, text=True).stdout
except PermissionError:
    refused("the folder of the files has no programs (noexec)")
else:
    if ids.strip() != str(os.getuid()):
        escaped(f"a setuid shell has uid {ids}")
os.unlink(shell)
""",
    ),
    EscapeAttempt(
        "masked-proc",
        "reads from /proc about the kernel and the host",
        r"""
for name in ("kcore", "keys", "key-users", "kallsyms", "kmsg", "timer_list", "sched_debug", "cmdline", "modules", "slabinfo",
             "vmallocinfo", "kpagecount", "kpageflags", "interrupts", "config.gz"):
    attempt(f"/proc/{name}", see, f"/proc/{name}")
for name in ("acpi", "scsi", "fs", "driver"):
    if os.path.isdir(f"/proc/{name}") and os.listdir(f"/proc/{name}"):
        escaped(f"/proc/{name} holds {os.listdir('/proc/' + name)}")
""",
    ),
    EscapeAttempt(
        "kernel-settings",
        "changes a setting of the kernel",
        r"""
for name in ("sys/kernel/core_pattern", "sys/kernel/hostname", "sys/kernel/modprobe", "sys/vm/overcommit_memory",
             "sys/kernel/ns_last_pid", "sys/user/max_user_namespaces", "sys/fs/binfmt_misc/register", "sysrq-trigger",
             "sys/net/ipv4/ip_forward", "self/uid_map", "self/gid_map", "self/setgroups", "self/loginuid"):
    attempt(f"/proc/{name}", write, f"/proc/{name}", b"1")
attempt("lower oom_score_adj", write, "/proc/self/oom_score_adj", b"-1000")
""",
    ),
    EscapeAttempt(
        "no-sysfs",
        "reaches /sys, control groups or debugging file systems",
        r"""
for path in ("/sys", "/sys/fs/cgroup", "/sys/kernel/debug", "/sys/kernel/security", "/sys/firmware"):
    attempt(path, reach, path)
def is_covered(place):
    try:
        reach(place)
    except OSError:
        return True
for line in open("/proc/self/mounts"):
    if not is_covered(line.split()[1]) and line.split()[2] in ("cgroup", "cgroup2", "sysfs", "debugfs", "tracefs", "securityfs", "configfs", "bpf", "fusectl"):
        escaped(line)
for line in open("/proc/self/cgroup"):
    if line.strip().split(":", 2)[2] != "/":
        escaped("/proc/self/cgroup shows " + line)
refused("the group is seen as /")
""",
    ),
    EscapeAttempt(
        "core-dumps",
        "makes the host write or handle a core dump",
        r"""
import resource
os.chdir("/workspace")
def crash():
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        pass
    libc.abort()
status = in_child(crash)
if os.WCOREDUMP(status):
    escaped("a core was dumped")
if any(name.startswith("core") for name in os.listdir(".")):
    escaped("a core file is there")
refused(f"ended by signal {os.WTERMSIG(status)} without a core")
# With 0 the kernel would still start a core dump handler of the host; with 1 it starts none.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if resource.getrlimit(resource.RLIMIT_CORE) != (1, 1):
    escaped(f"the limit of cores became {resource.getrlimit(resource.RLIMIT_CORE)}")
refused("the limit stays at the value for which the kernel starts no handler")
""",
    ),
    EscapeAttempt(
        "reserved-space",
        "takes space on the disk without writing: faster than anyone looks, and outside of the file's size",
        r"""
import fcntl, tempfile
folder = "/workspace" if os.path.isdir("/workspace") else tempfile.gettempdir()
path = f"{folder}/reserved-{os.getpid()}"
file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.unlink(path)
libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
def reserve(mode):
    if libc.fallocate(file, mode, 0, 1 << 20) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")
for mode in (0, 1, 0x10, 0x11):
    attempt(f"fallocate with mode {mode}", reserve, mode)
for number in (36, 40, 42, 57):
    attempt(f"ioctl X {number}", fcntl.ioctl, file, 0x40305800 | number, struct.pack("=hhiqqiI16x", 0, 0, 0, 0, 1 << 20, 0, 0))
""",
    ),
    EscapeAttempt(
        "leases",
        "takes a lease on a file, so that history has to wait before it can read it",
        r"""
import fcntl, tempfile
folder = "/workspace" if os.path.isdir("/workspace") else tempfile.gettempdir()
path = f"{folder}/leased-{os.getpid()}"
file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.unlink(path)
attempt("a write lease", fcntl.fcntl, file, 1024, fcntl.F_WRLCK)
attempt("a read lease", fcntl.fcntl, file, 1024, fcntl.F_RDLCK)
""",
    ),
)
