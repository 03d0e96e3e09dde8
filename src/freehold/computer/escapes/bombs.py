"""Attempts to exhaust a resource. A limit must stop each, and no other computer may be affected.

Each bomb runs in a new computer with small limits, and has enough time to reach them.
"""

from dataclasses import dataclass

from freehold.computer.contract.spec import MIB, Limits

SMALL = Limits(
    memory=192 * MIB,
    processes=48,
    cpus=1.0,
    open_files=256,
    file_size=64 * MIB,
    disk=24 * MIB,
    inodes=1500,
    output=MIB,
    cpu_time=20,
    wall_time=25,
    tmp=16 * MIB,
)


@dataclass(frozen=True)
class Bomb:
    """`limit` must stop it; None if it must only have no effect on others.

    The program (after PRELUDE) prints REFUSED if the kernel refused it. A program that was killed prints nothing.
    """

    name: str
    claim: str
    limit: str | None
    program: str
    seconds: float = 15.0


BOMBS = (
    Bomb(
        "memory",
        "takes all memory in one process",
        "memory",
        r"""
kept = []
try:
    while True:
        kept.append(bytearray(b"x") * (4 << 20))
except MemoryError:
    size = len(kept) * 4
    kept.clear()
    refused(f"MemoryError after {size} MiB")
    if size > 1024:
        escaped(f"{size} MiB were taken")
""",
    ),
    Bomb(
        "memory-of-many",
        "takes all memory in many processes that are each small",
        "memory",
        r"""
for _ in range(30):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kept = bytearray(b"x") * (16 << 20)
        time.sleep(1)
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
""",
    ),
    Bomb(
        "memory-in-files",
        "takes all memory as temporary files",
        None,
        r"""
for folder in ("/tmp", "/dev/shm", "/run"):
    with open(f"{folder}/fill", "wb", buffering=0) as file:
        try:
            for _ in range(1024):
                file.write(bytes(1 << 20))
        except OSError as error:
            refused(f"{folder}: {errno.errorcode[error.errno]} after {file.tell() >> 20} MiB")
        else:
            escaped(f"a gibibyte in {folder}")
""",
    ),
    Bomb(
        "memory-without-name",
        "takes all memory as files that have no name",
        "memory",
        r"""
kept = []
try:
    while len(kept) < 200:
        memory = os.memfd_create("x")
        kept.append(memory)
        for _ in range(16):
            os.write(memory, bytes(1 << 20))
except OSError as error:
    refused(errno.errorcode[error.errno])
else:
    escaped("3 GiB were taken")
""",
    ),
    Bomb(
        "memory-that-stays",
        "leaves memory behind that no process holds",
        None,
        r"""
attempt("a large shared segment", lambda: libc.shmget(0, 64 << 20, 0o1600) >= 0 or (_ for _ in ()).throw(OSError(ctypes.get_errno(), "shmget")))
attempt("a large set of semaphores", lambda: libc.semget(0, 32000, 0o1600) >= 0 or (_ for _ in ()).throw(OSError(ctypes.get_errno(), "semget")))
if libc.shmget(0, 4096, 0o1600) < 0:
    refused("even a small one")
""",
    ),
    Bomb(
        "fork",
        "forks without end",
        "processes",
        r"""
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
        seconds=2.0,
    ),
    Bomb(
        "fork-of-daemons",
        "forks without end, each process in a new Unix session",
        "processes",
        r"""
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            os.environ.clear()
            if os.fork():
                os._exit(0)
    except OSError:
        pass
""",
        seconds=2.0,
    ),
    Bomb(
        "threads",
        "starts threads without end",
        "processes",
        r"""
import threading
try:
    while True:
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
except RuntimeError as error:
    refused(error)
""",
    ),
    Bomb(
        "disk",
        "fills the disk with files",
        "disk",
        r"""
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
number = 0
while number < 2000:
    try:
        with open(f"/workspace/fill-{number % 40}-{number}", "wb", buffering=0) as file:
            file.write(bytes(1 << 20))
    except OSError as error:
        refused(errno.errorcode[error.errno])
        break
    number += 1
    time.sleep(0.005)
else:
    escaped("2 GiB were written")
""",
    ),
    Bomb(
        "disk-one-file",
        "makes one file larger than allowed",
        None,
        r"""
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("/home/agent/large", "wb", buffering=0) as file:
    attempt("a sparse file of a tebibyte", file.truncate, 1 << 40)
    attempt("a hole before a byte", os.pwrite, file.fileno(), b"x", 1 << 40)
    attempt("space ahead", os.posix_fallocate, file.fileno(), 0, 1 << 30)
""",
    ),
    Bomb(
        "disk-by-mapping",
        "fills holes through a mapping, which the file size limit does not see",
        "disk",
        r"""
import mmap
files = []
for number in range(16):
    file = open(f"/workspace/hole-{number}", "w+b")
    file.truncate(60 << 20)
    files.append(mmap.mmap(file.fileno(), 60 << 20))
for offset in range(0, 60 << 20, 4096):
    for mapping in files:
        mapping[offset] = 1
    if offset % (1 << 18) == 0:
        files[0].flush()
        time.sleep(0.02)
escaped("960 MiB of holes were filled")
""",
    ),
    Bomb(
        "disk-deleted-files",
        "fills the disk with a file that was deleted and is still open",
        "disk",
        r"""
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = open("/workspace/deleted", "wb", buffering=0)
os.unlink("/workspace/deleted")
for _ in range(60 * 16):
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
    try:
        file.write(bytes(1 << 16))
    except OSError:
        pass
    time.sleep(0.005)
escaped("60 MiB that no folder shows were kept")
""",
    ),
    Bomb(
        "disk-deleted-mappings",
        "fills the disk with a deleted file that is only mapped",
        "disk",
        r"""
import mmap
file = open("/workspace/mapped", "w+b")
os.unlink("/workspace/mapped")
file.truncate(60 << 20)
mapping = mmap.mmap(file.fileno(), 60 << 20)
file.close()
for offset in range(0, 60 << 20, 4096):
    mapping[offset] = 1
    if offset % (1 << 18) == 0:
        mapping.flush()
        time.sleep(0.02)
escaped("60 MiB that no folder shows were kept")
""",
    ),
    Bomb(
        "names",
        "gives one file so many names that no program can list them",
        "inodes",
        r"""
os.mkdir("/workspace/names")
os.close(os.open("/workspace/file", os.O_CREAT | os.O_WRONLY))
for number in range(40000):
    os.link("/workspace/file", f"/workspace/names/{number}")
    if number % 100 == 0:
        time.sleep(0.01)
escaped("40,000 names")
""",
    ),
    Bomb(
        "inodes",
        "fills the disk with empty files",
        "inodes",
        r"""
os.mkdir("/workspace/many")
for number in range(1000000):
    os.close(os.open(f"/workspace/many/{number}", os.O_CREAT | os.O_WRONLY))
    if number % 100 == 0:
        time.sleep(0.01)
escaped("a million files")
""",
    ),
    Bomb(
        "deep-folders",
        "nests folders so deeply that no program can walk them",
        "inodes",
        r"""
os.chdir("/workspace")
for number in range(1400):
    os.mkdir("d")
    os.chdir("d")
time.sleep(3)
""",
    ),
    Bomb(
        "hidden-folders",
        "hides files in folders without read permission",
        "disk",
        r"""
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
os.mkdir("/workspace/hidden")
files = [open(f"/workspace/hidden/{number}", "wb", buffering=0) for number in range(64)]
os.chmod("/workspace/hidden", 0)
try:
    for _ in range(60):
        for file in files:
            file.write(bytes(1 << 20))
            time.sleep(0.005)
except OSError as error:
    refused(errno.errorcode[error.errno])
else:
    escaped("3 GiB were written")
""",
    ),
    Bomb(
        "open-files",
        "opens files without end",
        None,
        r"""
kept = []
try:
    while len(kept) < 100000:
        kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    refused(f"{errno.errorcode[error.errno]} after {len(kept)}")
else:
    escaped("100,000 descriptors")
""",
    ),
    Bomb(
        "output",
        "prints without end",
        "output",
        r"""
line = b"x" * 79 + b"\n"
block = line * 800
end = time.monotonic() + 2
while time.monotonic() < end:
    os.write(1, block)
    os.write(2, block)
""",
    ),
    Bomb(
        "zombies",
        "leaves dead child processes behind",
        None,
        r"""
for _ in range(12):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
os.execv("/bin/sh", ["sh", "-c", "sleep 0.3; echo REFUSED they lie in this computer only"])
""",
    ),
    Bomb(
        "terminals-and-watches",
        "opens terminals and watches without end",
        None,
        r"""
for label, act in (("terminals", lambda: os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)), ("inotify", libc.inotify_init),
                   ("events", lambda: libc.eventfd(0, 0)), ("pipes", lambda: os.pipe()[0])):
    kept = []
    try:
        while len(kept) < 10000:
            kept.append(act())
            if kept[-1] < 0:
                raise OSError(ctypes.get_errno() or errno.EMFILE, label)
    except OSError as error:
        refused(f"{label}: {errno.errorcode[error.errno]} after {len(kept)}")
    else:
        escaped(label)
    os.closerange(3, 4096)
""",
    ),
)
