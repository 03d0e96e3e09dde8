"""Attempts of one session against another: both are in the same computer and have the same uid."""

from freehold.computer.escapes.escape import EscapeAttempt

NEIGHBOUR = r"""
import os, socket, sys, tempfile, threading
token = os.environ["FREEHOLD_BAIT"]
kept = tempfile.TemporaryFile("w+")
kept.write(token)
kept.flush()
reading, writing = os.pipe()
os.write(writing, token.encode())
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0freehold-neighbour-%d" % os.getpid())
listener.listen()
def tell():
    while True:
        connection, _ = listener.accept()
        connection.sendall(token.encode())
        connection.close()
threading.Thread(target=tell, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    print("here", flush=True)
"""
"""A process of another session. It has the bait's token in its environment, files, pipes and sockets, and answers each line."""

NEIGHBOURS = (
    EscapeAttempt(
        "another-sessions-secrets",
        "reads memory, environment or files of a process of another session",
        r"""
pid = bait["neighbour"]
def look(path):
    with open(path, "rb", buffering=0) as file:
        print(file.read(65536))
def peek():
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            start = int(line.split("-")[0], 16)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(start)
        print(memory.read(64))
def poke():
    descriptor = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    os.close(descriptor)
for folder in (f"/proc/{pid}", f"/proc/{pid}/task/{pid}"):
    for name in ("environ", "mem", "maps", "smaps", "numa_maps", "pagemap", "auxv", "io", "stack", "syscall", "personality"):
        if os.path.exists(f"{folder}/{name}"):
            attempt(f"{folder}/{name}", look, f"{folder}/{name}")
    for name in ("cwd", "root", "exe"):
        attempt(f"{folder}/{name}", os.readlink, f"{folder}/{name}")
    for name in os.listdir(f"{folder}/fd"):
        attempt(f"{folder}/fd/{name}", os.readlink, f"{folder}/fd/{name}")
        attempt(f"open {folder}/fd/{name}", os.open, f"{folder}/fd/{name}", os.O_RDONLY | os.O_NONBLOCK)
        attempt(f"write {folder}/fd/{name}", os.open, f"{folder}/fd/{name}", os.O_WRONLY | os.O_NONBLOCK)
attempt("read its memory", peek)
attempt("write its memory", poke)
attempt("walk into its root", os.listdir, f"/proc/{pid}/root/")
PTRACE = 101 if X86 else 117
attempt("attach", syscall, PTRACE, 16, pid, 0, 0)
attempt("seize", syscall, PTRACE, 0x4206, pid, 0, 0)
vector = ctypes.create_string_buffer(struct.pack("=QQ", 0, 8))
attempt("process_vm_readv", syscall, 310 if X86 else 270, pid, vector, 1, vector, 1, 0)
attempt("pidfd_getfd", syscall, 438, os.pidfd_open(pid), 1, 0)
print(read(f"/proc/{pid}/cmdline"), read(f"/proc/{pid}/status"))
""",
        beside_another=True,
    ),
    EscapeAttempt(
        "another-sessions-signals",
        "kills, stops or signals a process of another session",
        r"""
pid = bait["neighbour"]
SCOPES = 6
if syscall(444, 0, 0, 1) < SCOPES:
    refused("this kernel (before 6.12) does not keep signals apart; what is read is kept apart all the same")
else:
    for name in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGHUP", "SIGSEGV", "SIGUSR1", "SIGCONT"):
        number = getattr(signal, name)
        attempt(f"{name}", os.kill, pid, number)
        attempt(f"{name} to its group", os.killpg, os.getpgid(pid), number)
        attempt(f"{name} by descriptor", signal.pidfd_send_signal, os.pidfd_open(pid), number)
        attempt(f"{name} to its thread", syscall, 234 if X86 else 131, pid, pid, number)
    attempt("is it there", os.kill, pid, 0)
    # A pipe that sends SIGKILL to its owner when data arrives: the kernel accepts it and then sends nothing.
    import fcntl
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writing, b"x")
    with socket.socket(socket.AF_UNIX) as client:
        attempt("a socket without a path", client.connect, "\0freehold-neighbour-%d" % pid)
""",
        beside_another=True,
    ),
)
