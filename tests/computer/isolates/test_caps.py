"""Every cap of isolates, fired: each test does the forbidden act, sees it refused, and sees a neighbour live on.

Ways out of other sandboxes, after the published advisories of isolated-vm, vm2, Monty and others, are in test_escapes.py.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.condition import until

from freehold.computer import CodeContext, CodeLanguage, CodeResult, Computer, Grants, IsolateLimits
from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.isolates.language import LanguageName

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

SHORT = 0.4
OF_A_GRANT = {"outputs": ("none",)}

PYTHON_ENDED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "an endless loop": ("while True: pass", "wall_time", {"timeout": SHORT}),
    "a loop that swallows every exception": (
        "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
        "wall_time",
        {"timeout": SHORT},
    ),
    "a loop that ignores signals": (
        "import signal\nfor n in (2, 15, 24): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        "processor",
        {"limits": IsolateLimits(processor=SHORT)},
    ),
    "threads that share the work": (
        "import threading\ndef work():\n  while True: pass\nt = [threading.Thread(target=work) for _ in range(3)]\n"
        "[x.start() for x in t]\nt[0].join()",
        "processor",
        {"limits": IsolateLimits(processor=SHORT)},
    ),
    "a sleep": ("import time; time.sleep(60)", "wall_time", {"timeout": SHORT}),
    "a regular expression": (
        "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')",
        "wall_time",
        {"timeout": SHORT},
    ),
    "strings in a list": ("x = []\nwhile True: x.append('y' * 1000000)", "memory", {}),
    "one large object": ("x = bytearray(10**9)", "memory", {}),
    "a large number": ("x = 1 << 10**10", "memory", {}),
    "a flood on stdout": ("while True: print('x' * 10000)", "output", {}),
    "a flood on stderr": ("import os\nwhile True: os.write(2, b'x' * 10000)", "output", {}),
    "a value that is too large": ("'x' * 20_000_000", "results", {}),
    "many files": (
        "n = 0\nwhile True:\n  open(str(n), 'wb').write(b'x' * 1000000); n += 1",
        "files",
        {**OF_A_GRANT, "limits": IsolateLimits(memory=32 << 20)},
    ),
    "many empty files": (
        "n = 0\nwhile True:\n  open(str(n), 'wb').close(); n += 1",
        "files",
        {**OF_A_GRANT, "limits": IsolateLimits(memory=8 << 20)},
    ),
    "files beside others that come and go": (
        "import os, threading\ndef work():\n  while True: open('a', 'wb').close(); os.unlink('a')\n"
        "threading.Thread(target=work).start()\n"
        "n = 0\nwhile True:\n  open(str(n), 'wb').write(b'x' * 1000000); n += 1",
        "files",
        {**OF_A_GRANT, "limits": IsolateLimits(memory=32 << 20)},
    ),
    "files where nobody can look": (
        "import os, time\nos.mkdir('a', 0o300)\nfor n in range(50): open(f'a/{n}', 'wb').write(b'x' * 1000000)\n"
        "time.sleep(60)",
        "files",
        {**OF_A_GRANT, "limits": IsolateLimits(memory=32 << 20)},
    ),
    "files that are too deep to be seen": (
        "import os, time\nfor _ in range(30): os.mkdir('a' * 200); os.chdir('a' * 200)\n"
        "for n in range(50): open(str(n), 'wb').write(b'x' * 1000000)\ntime.sleep(60)",
        "files",
        {**OF_A_GRANT, "limits": IsolateLimits(memory=32 << 20)},
    ),
    "a forged length": ("import os; os.write(100, b'\\x02\\xff\\xff\\xff\\x03' + b'x' * 1000)", "results", {}),
}
PYTHON_REFUSED = {
    "fork": "import os; os.fork()",
    "a program": "import subprocess; subprocess.run(['/bin/true'])",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "spawn": "import os; os.posix_spawn('/bin/true', ['true'], {})",
    "ten thousand threads": "import threading, time\nfor i in range(10000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "the proxy": "import socket; socket.create_connection(('127.0.0.1', 3128))",
    "a unix socket": "import socket; socket.socket(socket.AF_UNIX)",
    "a listener": "import socket; socket.create_server(('127.0.0.1', 0))",
    "reading the workspace": "import os; os.listdir('/workspace')",
    "reading a file of the workspace": "open('/workspace/notes.txt')",
    "reading the home": "import os; os.listdir('/home/agent')",
    "writing to /tmp": "open('/tmp/x', 'w')",
    "shared memory files": "open('/dev/shm/x', 'w')",
    "truncating": "import os; os.truncate('/workspace/notes.txt', 0)",
    "removing": "import os; os.unlink('/workspace/notes.txt')",
    "changing a mode": "import os; os.chmod('/workspace/notes.txt', 0)",
    "changing times": "import os; os.utime('/workspace/notes.txt')",
    "setting an attribute": "import os; os.setxattr('/workspace/notes.txt', 'user.a', b'b')",
    "killing the guest": "import os; os.kill(1, 9)",
    "killing everything": "import os; os.kill(-1, 9)",
    "killing the zygote": "import os; os.kill(os.getppid(), 9)",
    "stopping itself": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "signals by the owner of a pipe": "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())",
    "signals by a pidfd": "import os, signal; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
    "the memory of the zygote": "import os; open(f'/proc/{os.getppid()}/mem', 'rb')",
    "its own /proc": "open('/proc/self/maps')",
    "raising its limits": "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2**40, 2**40))",
    "shared anonymous memory": "import mmap; mmap.mmap(-1, 10**9)",
    "shared memory of a device": "import mmap, os; mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 30)",
    "a memory file": "import os; os.memfd_create('x')",
    "memory that looks like a stack": (
        "import ctypes\nmap = ctypes.CDLL(None).mmap\nmap.restype = ctypes.c_void_p\n"
        "if map(None, ctypes.c_size_t(1 << 30), 3, 0x122, -1, 0) == 2**64 - 1: raise MemoryError"
    ),
    "a thousand descriptors": "import os; [os.dup(0) for _ in range(1000)]",
    "endless recursion": "def f(): f()\nf()",
    "a large file": "open('big', 'wb').write(b'x' * 10**8)",
    "a priority": "import os; os.nice(-5)",
    "a new session": "import os; os.setsid()",
}
JAVASCRIPT_ENDED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "an endless loop": ("for (;;);", "wall_time", {"timeout": SHORT}),
    "processor time": ("for (;;);", "processor", {"limits": IsolateLimits(processor=SHORT)}),
    "a regular expression": ("/^(a+)+$/.test('a'.repeat(40) + 'b')", "wall_time", {"timeout": SHORT}),
    "a promise that never settles": ("await new Promise(() => {})", "wall_time", {"timeout": SHORT}),
    "endless microtasks": (
        "const f = () => { Promise.resolve().then(f) }; f(); await new Promise(() => {})",
        "wall_time",
        {"timeout": SHORT},
    ),
    "buffers": ("const x = []; for (;;) x.push(Buffer.alloc(1e7, 1))", "memory", {}),
    "typed arrays": ("const x = []; for (;;) x.push(new Float64Array(1e6).fill(1))", "memory", {}),
    "a flood": ("for (;;) console.log('x'.repeat(10000))", "output", {}),
}
JAVASCRIPT_REFUSED = {
    "a program": "require('child_process').execSync('id')",
    "an asynchronous program": "await new Promise((_, no) => require('child_process').spawn('id').on('error', no))",
    "a fork": "require('child_process').fork('/usr/lib/x.js')",
    "the proxy": "await new Promise((ok, no) => require('net').connect(3128, '127.0.0.1').on('error', no).on('connect', ok))",
    "fetch": "await fetch('http://127.0.0.1:3128')",
    "datagrams": "await new Promise((_, no) => require('dgram').createSocket('udp4').on('error', no).bind())",
    "the workspace": "require('fs').readdirSync('/workspace')",
    "writing to /tmp": "require('fs').writeFileSync('/tmp/x', '')",
    "writing to a device": "require('fs').openSync('/dev/zero', 'r+')",
    "the guest": "process.kill(1, 9)",
    "the zygote": "process.kill(process.ppid, 9)",
    "its own /proc": "require('fs').readFileSync('/proc/self/maps')",
    "a mode": "require('fs').chmodSync('/workspace/notes.txt', 0)",
    "a thousand descriptors": "for (let n = 0; n < 1000; n++) require('fs').openSync('/dev/null')",
    "a worker": "new (require('worker_threads').Worker)('for (;;);', {eval: true}); await new Promise(() => {})",
    "recursion": "function f() { f() }; f()",
    "the constructor of a host function": "console.log.constructor('return process')().kill(1, 9)",
    "the constructor of an exception": "try { null.x } catch (e) { e.constructor.constructor('return process')().kill(1, 9) }",
    "a stack trace with host objects": (
        "Error.prepareStackTrace = (_, s) => s; const s = new Error().stack; s[0].getThis?.()?.process?.kill(1, 9); process.kill(1, 9)"
    ),
    "a proxy as this": "new Proxy({}, {get: () => { throw new Error('caught') }}).x",
    "the internals of Node": "process.binding('process_wrap').Process.prototype.kill.call(null)",
}

# Prints its port, then every word that reaches it by TCP or as a datagram, until the word is "end".
LISTENER = """
import select, socket
tcp = socket.create_server(("127.0.0.1", 0))
datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
datagrams.bind("/workspace/out/datagrams")
print(tcp.getsockname()[1], flush=True)
word = b""
while word != b"end":
    ready = select.select([tcp, datagrams], [], [])[0][0]
    word = ready.accept()[0].recv(9) if ready is tcp else ready.recv(9)
    print(word.decode(), flush=True)
"""
PAIR = (
    "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'pair', '/workspace/out/datagrams')"
)
WAYS_AROUND_A_PORT = {
    "a plain connection": "socket.create_connection(there).send(b'plain')",
    "sending before connecting": "socket.socket().sendto(b'sendto', 0x20000000, there)",
    "a message before connecting": "socket.socket().sendmsg([b'sendmsg'], [], 0x20000000, there)",
    "many messages before connecting": (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
        "libc.sendmmsg(socket.socket().fileno(), None, 0, 0x20000000) and exec('raise OSError(ctypes.get_errno(), str())')"
    ),
    "multipath TCP": "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(there); s.send(b'multipath')",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def witness(computer: Computer) -> AsyncIterator[CodeContext]:
    context = await computer.python.contexts.create()
    await context.execute("n = 41")
    yield context


async def check(result: CodeResult, witness: CodeContext) -> None:
    assert not result.ok, result
    assert await witness.evaluate("n + 1") == 42


@pytest.mark.parametrize("what", PYTHON_ENDED)
async def test_python_is_ended_by(computer: Computer, witness: CodeContext, what: str) -> None:
    code, limit, options = PYTHON_ENDED[what]
    result = await computer.python.execute(code, **options)
    await check(result, witness)
    assert result.limit == limit


@pytest.mark.parametrize("what", PYTHON_REFUSED)
async def test_python_is_refused(computer: Computer, witness: CodeContext, what: str) -> None:
    result = await computer.python.execute(PYTHON_REFUSED[what], outputs=("none",))
    await check(result, witness)
    assert result.error is not None
    assert result.error.name in (
        *("PermissionError", "RuntimeError", "MemoryError", "OSError", "RecursionError", "ValueError"),
    ), result


@pytest.mark.parametrize("what", JAVASCRIPT_ENDED)
async def test_javascript_is_ended_by(computer: Computer, witness: CodeContext, what: str) -> None:
    code, limit, options = JAVASCRIPT_ENDED[what]
    result = await computer.javascript.execute(code, **options)
    await check(result, witness)
    assert result.limit == limit


@pytest.mark.parametrize("what", JAVASCRIPT_REFUSED)
async def test_javascript_is_refused(computer: Computer, witness: CodeContext, what: str) -> None:
    result = await computer.javascript.execute(JAVASCRIPT_REFUSED[what], timeout=20)
    await check(result, witness)
    assert result.error is not None or result.exit_code < 0, result
    assert result.limit != "wall_time"


async def test_a_full_heap_ends_javascript_alone(computer: Computer, witness: CodeContext) -> None:
    """V8 collects garbage for long before it gives up, so that either limit may be met first."""
    limits = IsolateLimits(memory=48 << 20, processor=20)
    code = "const x = []; for (;;) x.push(new Array(1e5).fill(1.5))"
    result = await computer.javascript.execute(code, limits=limits)
    await check(result, witness)
    assert result.limit in ("memory", "processor")


@pytest.mark.parametrize("code", ["import ctypes; ctypes.string_at(0)", "import os; os.abort()"])
async def test_a_crash_ends_its_isolate_alone(computer: Computer, witness: CodeContext, code: str) -> None:
    result = await computer.python.execute(code)
    await check(result, witness)
    assert result.exit_code < 0


@pytest.mark.parametrize("name", ["environ", "mem", "fd", "maps"])
async def test_a_sibling_cannot_be_read(computer: Computer, witness: CodeContext, name: str) -> None:
    sibling = await witness.evaluate("__import__('os').getpid()")
    result = await computer.python.execute(
        f"import os\nos.listdir('/proc/{sibling}/{name}') if {name == 'fd'} else open('/proc/{sibling}/{name}', 'rb')"
    )
    await check(result, witness)
    assert result.error is not None
    assert result.error.name == "PermissionError"
    look = "readdirSync" if name == "fd" else "openSync"
    result = await computer.javascript.execute(f"require('fs').{look}('/proc/{sibling}/{name}')")
    await check(result, witness)
    assert result.error is not None
    assert result.error.message.startswith("EACCES")


@pytest.mark.parametrize(
    "attempt",
    [
        "os.kill(pid, signal.SIGKILL)",
        "os.kill(pid, signal.SIGSTOP)",
        "os.kill(pid, 0)",
        "os.killpg(os.getpgid(pid), signal.SIGKILL)",
        "signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL)",
        "if libc.tgkill(pid, pid, signal.SIGKILL): raise OSError(ctypes.get_errno(), 'tgkill')",
    ],
)
async def test_a_sibling_cannot_be_signalled(computer: Computer, witness: CodeContext, attempt: str) -> None:
    """Not by its pid, which everybody inside can learn. It is not even told whether such a process lives."""
    sibling = await witness.evaluate("__import__('os').getpid()")
    result = await computer.python.execute(
        f"import ctypes, os, signal\nlibc = ctypes.CDLL(None, use_errno=True)\npid = {sibling}\n{attempt}"
    )
    await check(result, witness)
    assert result.error is not None
    assert result.error.name == "PermissionError"


@pytest.mark.parametrize("language", ["javascript", "typescript"])
async def test_a_sibling_of_javascript_cannot_be_signalled(computer: Computer, language: LanguageName) -> None:
    sibling = await computer.javascript.contexts.create()
    await sibling.execute("var n = 41")
    pid = await sibling.evaluate("process.pid")
    for signal in ("'SIGKILL'", "'SIGSTOP'", "0"):
        result = await CodeLanguage(computer._connection, language).execute(f"process.kill({pid}, {signal})")
        assert result.error is not None
        assert "EPERM" in result.error.message
        assert await sibling.evaluate("n + 1") == 42
    await sibling.delete()


async def test_records_that_make_no_sense_end_the_isolate(computer: Computer, witness: CodeContext) -> None:
    await check(
        await computer.python.execute("import os; os.write(100, b'\\xff' * 5); import time; time.sleep(9)"), witness
    )


async def test_output_of_a_thread_does_not_break_an_item_in_the_middle(computer: Computer) -> None:
    """An item of many parts, while another thread writes all the time."""
    result = await computer.python.execute(
        "import os, threading\nstop = False\n"
        "def write():\n  while not stop: os.write(1, b'x' * 100)\n"
        "thread = threading.Thread(target=write); thread.start()\n"
        "for n in range(20): display(bytes([n]) * 300_000)\n"
        "stop = True; thread.join()\nb'end'",
        limits=IsolateLimits(output=64 << 20),
    )
    assert result.ok, result.limit
    assert [item.content for item in result.items[:-1]] == [bytes([n]) * 300_000 for n in range(20)]
    assert set(result.stdout) == {ord("x")}


async def test_an_item_that_never_ends_harms_nobody(computer: Computer, witness: CodeContext) -> None:
    """The isolate announces much, sends little, writes output that looks like records, and dies."""
    code = (
        "import os\nos.write(100, b'\\x02\\xe8\\x03\\0\\0' + b'begun')\n"
        "os.write(1, b'\\xff' * 5000)\nimport time; time.sleep(0.05)\nos._exit(1)"
    )
    async with await computer.spawn(["/bin/cat"]) as other:
        result = await computer.python.execute(code)
        await check(result, witness)
        await other.write(b"here\n")
        assert await other.stdout.read() == b"here\n"


async def test_a_context_that_speaks_unasked_is_ended(computer: Computer, witness: CodeContext) -> None:
    context = await computer.python.contexts.create()
    await context.execute(
        "import threading, time, os\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), os.write(100, b'\\x03\\x02\\0\\0\\0{}'))).start()"
    )

    async def has_ended() -> bool:
        return (await context.info()).state == "ended"

    await until(has_ended)
    assert await witness.evaluate("n") == 41
    await context.delete()


async def test_a_context_that_works_on_in_the_background_is_ended(computer: Computer) -> None:
    context = await computer.python.contexts.create(limits=IsolateLimits(processor=SHORT))
    await context.execute("import threading\ndef work():\n  while True: pass\nthreading.Thread(target=work).start()")

    async def has_ended() -> bool:
        return (await context.info()).state == "ended"

    await until(has_ended)
    await context.delete()


async def test_what_is_granted_can_be_used_and_nothing_else(computer: Computer) -> None:
    reading = Grants({"/workspace/notes.txt": "r"})
    assert await computer.python.evaluate("open('/workspace/notes.txt').read()", grants=reading) == "granted"
    for forbidden in ("open('/workspace/notes.txt', 'w')", "import os; os.listdir('/workspace')"):
        assert (await computer.python.execute(forbidden, grants=reading)).error is not None
    writing = Grants({"/workspace/out": "rw"})
    await computer.javascript.evaluate("require('fs').writeFileSync('/workspace/out/b', 'ok')", grants=writing)
    assert await computer.files.read("out/b") == b"ok"


async def test_a_network_grant_reaches_egress_and_no_other_port(computer: Computer) -> None:
    network = Grants(network=True)
    connect = "import socket; socket.create_connection(('127.0.0.1', {port})).close()"
    assert (await computer.python.execute(connect.format(port=3128), grants=network)).ok
    for refused in (connect.format(port=3129), "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"):
        result = await computer.python.execute(refused, grants=network)
        assert result.error is not None
        assert result.error.name == "PermissionError"


async def test_neither_datagrams_nor_another_way_to_connect_reach_a_program_that_listens(computer: Computer) -> None:
    async with await computer.spawn([GUEST_PYTHON, "-c", LISTENER]) as listener:
        port = int(await listener.stdout.read())
        ways = [f"import socket; there = '127.0.0.1', {port}; {way}" for way in WAYS_AROUND_A_PORT.values()]
        for grants in (Grants(), Grants(network=True)):
            for attempt in (PAIR, *ways):
                result = await computer.python.execute(attempt, grants=grants)
                assert result.error is not None, attempt
                assert result.error.name == "PermissionError", attempt
        for attempt in (ways[0], PAIR, PAIR.replace("b'pair'", "b'end'")):  # what no isolate does is heard
            (await computer.run([GUEST_PYTHON, "-c", attempt], timeout=30)).check()
        assert (await listener.stdout.read_all()).split() == [b"plain", b"pair", b"end"]


async def test_a_parked_isolate_has_built_its_walls_before_it_gets_any_code() -> None:
    """One more filter than the guest: nothing is left to be sealed when the next request like the last one comes."""
    count = "for one in /proc/[0-9]*; do sed -n 's/^Seccomp_filters:\t//p' $one/status; done 2>/dev/null | sort -n"
    async with Computer.start() as alone:
        assert len(set((await alone.run(count)).stdout.split())) == 1
        await alone.python.evaluate("1")

        async def one_is_sealed() -> bool:
            return len(set((await alone.run(count)).stdout.split())) == 2

        await until(one_is_sealed)
        assert await alone.python.evaluate("2") == 2


async def test_a_parked_isolate_is_not_given_to_a_request_with_other_limits_or_grants(computer: Computer) -> None:
    large = "len(bytearray(200_000_000))"
    for _ in range(3):
        refused = await computer.python.execute(large)
        assert refused.limit == "memory"
        assert await computer.python.evaluate(large, limits=IsolateLimits(memory=512 << 20)) == 200_000_000
        granted = Grants(files={"/workspace/notes.txt": "r"})
        assert await computer.python.evaluate("open('/workspace/notes.txt').read()", grants=granted) == "granted"
        assert not (await computer.python.execute("open('/workspace/notes.txt').read()")).ok
        assert await computer.python.evaluate("open('x').read()", inputs={"x": b"y"}, outputs=("x",)) == "y"
