"""Ways out of other sandboxes, as code that runs in an isolate, and what the code then tries with what it got.

A way returns what the published escapes wanted: `process` in JavaScript, the module `posix` in Python. Isolates do not hide
these, so no way is needed. It counts that whoever has them can do nothing with them outside of its own process.
"""

JAVASCRIPT_WAYS = {
    "the constructor of a host function": "return console.log.constructor('return process')()",
    "the constructor of an exception of the engine": (
        "const deep = () => deep(); try { deep() } catch (error) { return error.constructor.constructor('return process')() }"
    ),
    "an exception of the host while a stack is formatted": (
        "const error = new Error(); error.name = Symbol();"
        "return await (async () => error.stack)().catch((seen) => seen.constructor.constructor('return process')())"
    ),
    "call sites of a stack trace": (
        "const before = Error.prepareStackTrace; Error.prepareStackTrace = (_, sites) => sites;"
        "const sites = new Error().stack; Error.prepareStackTrace = before;"
        "return sites.map((site) => site.getThis?.()).find(Boolean).constructor.constructor('return process')()"
    ),
    "a function for inspection that the host calls": (
        "let seized; console.log({ [Symbol.for('nodejs.util.inspect.custom')]: (depth, options, inspect) => {"
        " seized = inspect.constructor('return process')(); return '' } }); return seized"
    ),
    "a proxy that the host reads": (
        "const trap = new Proxy({}, { get: () => ({}) });"
        "try { return `${trap}` } catch (error) { return error.constructor.constructor('return process')() }"
    ),
    "a promise of another species": (
        "let seized; class Species { constructor(run) { run((value) => {}, (error) => {}); seized = run } }"
        "const made = (async () => {})(); made.constructor = { [Symbol.species]: Species }; made.then(() => {});"
        "return seized.constructor('return process')()"
    ),
    "an async generator that is closed": (
        "const deep = () => deep();"
        "const inner = { next: () => ({ done: false, value: 1 }), return: () => ({ then: deep }) };"
        "const outer = (async function* () { yield* { [Symbol.asyncIterator]: () => inner } })(); await outer.next();"
        "try { await outer.return() } catch (error) { return error.constructor.constructor('return process')() }"
    ),
    "an object of the host in another context": (
        "return require('vm').runInNewContext('seen.constructor.constructor(\"return process\")()', { seen: {} })"
    ),
    "the module loader": "return require('module').createRequire('/')('process')",
    "the inspector": (
        "const session = new (require('inspector').Session)(); session.connect();"
        "session.post('Runtime.evaluate', { expression: 'globalThis.seized = process' }); return globalThis.seized"
    ),
    "native code as an addon": "try { process.dlopen({ exports: {} }, given.library) } catch {} return process",
    "native code as an extension of SQLite": (
        "try { new (require('node:sqlite').DatabaseSync)(':memory:', { allowExtension: true }).loadExtension(given.library) }"
        " catch {} return process"
    ),
    "native code as an engine of OpenSSL": "try { require('crypto').setEngine(given.library) } catch {} return process",
}
JAVASCRIPT = """
const given = GIVEN, found = {};
const seized = await (async () => { WAY })();
const load = (name) => seized.getBuiltinModule(name);
const fs = load('fs'), util = load('util');
const attempt = async (what, act) => {
  try { found[what] = 'got ' + String(await act()); } catch (error) { found[what] = 'refused ' + (error.code ?? error); }
};
const check = ({ error }) => { if (error < 0) throw { code: util.getSystemErrorName(error) }; return error; };
for (const path of given.files) await attempt(`read ${path}`, () => fs.readFileSync(path, 'latin1'));
for (const path of given.folders) await attempt(`list ${path}`, () => fs.readdirSync(path));
for (const path of given.folders) await attempt(`write to ${path}`, () => fs.writeFileSync(`${path}/planted`, ''));
for (const pid of [...given.pids, seized.ppid]) {
  for (const part of ['mem', 'environ', 'maps']) await attempt(`${part} of ${pid}`, () => fs.openSync(`/proc/${pid}/${part}`));
  await attempt(`descriptors of ${pid}`, () => fs.readdirSync(`/proc/${pid}/fd`));
  await attempt(`a signal to ${pid}`, () => seized.kill(pid, 9));
  await attempt(`a debugger for ${pid}`, () => seized._debugProcess(pid));
}
await attempt('a connection', () => new Promise((ok, no) =>
  load('net').connect(given.port, '127.0.0.1').on('connect', ok).on('error', no)));
await attempt('a program', () => load('child_process').execFileSync('/bin/sh', ['-c', 'cat /workspace/*']));
await attempt('a program by an internal binding', () => check(seized.binding('spawn_sync').spawn(
  { file: '/bin/sh', args: ['sh', '-c', 'true'], stdio: [{ type: 'ignore' }, { type: 'ignore' }, { type: 'ignore' }] })));
return { found, environment: seized.env, inside: seized.pid === process.pid };
"""
# Pieces of memory that a copy of an interpreter could have got from it: objects, and what was not written since.
JAVASCRIPT_MEMORY = """
const pattern = new RegExp('planted' + '-[0-9a-f]{16}', 'g'), seen = new Set();
const look = (text) => { for (const one of text.match(pattern) ?? []) seen.add(one); };
const parts = [];
for await (const part of require('v8').getHeapSnapshot()) parts.push(String(part));
look(parts.join(''));
for (let round = 0; round < 64; round++) look(Buffer.allocUnsafeSlow(1 << 18).latin1Slice());
for (let round = 0; round < 64; round++) look(Buffer.allocUnsafe(1 << 12).latin1Slice());
return [...seen]
"""

PYTHON_WAYS = {
    "the subclasses of object": """
    importer = next(one for one in ().__class__.__base__.__subclasses__() if one.__name__ == 'BuiltinImporter')
    made = importer.create_module(importer.find_spec('posix'))
    importer.exec_module(made)
    return made""",
    "the globals of a method": """
    class One:
        def method(self): pass
    return One().method.__func__.__globals__['__builtins__'].__import__('posix')""",
    "the frame of a generator": """
    def leak(): yield running.gi_frame.f_back
    running = leak()
    return next(running).f_builtins['__import__']('posix')""",
    "frames of the runner in a traceback": """
    try: raise KeyError
    except KeyError as error: frame = error.__traceback__.tb_frame
    while frame.f_back: frame = frame.f_back
    return frame.f_builtins['__import__']('posix')""",
    "a format string": """
    import string
    class One:
        def __init__(self): pass
    print('{0.__init__.__globals__}'.format(One()))
    return string.Formatter().get_field('0.__init__.__globals__[__builtins__]', (One(),), {})[0].__import__('posix')""",
    "the object of an AttributeError": """
    try: json.missing
    except AttributeError as error: return error.obj.__builtins__['__import__']('posix')""",
    "a forged code object": """
    def load():
        import json as seized
        return seized
    names = tuple('posix' if name == 'json' else name for name in load.__code__.co_names)
    return type(load)(load.__code__.replace(co_names=names), {'__builtins__': __builtins__})()""",
    "everything that the garbage collector knows": """
    import gc
    gc.unfreeze()
    return next(one for one in gc.get_objects() if isinstance(one, type(gc)) and one.__name__ == 'posix')""",
    "a pickle": """
    import pickle
    return pickle.loads(b'cposix\\ngetpid\\n.').__self__""",
    "a tracer": """
    import sys
    frames = []
    sys.settrace(lambda frame, *_: frames.append(frame))
    json.loads('1')
    sys.settrace(None)
    return frames[0].f_builtins['__import__']('posix')""",
    "ctypes": """
    import ctypes
    load = ctypes.pythonapi.PyImport_ImportModule
    load.restype = ctypes.py_object
    return load(b'posix')""",
}
PYTHON = """
import json
given, found = json.loads('''GIVEN'''), {}
def seize():WAY
seized = seize()
def attempt(what, act):
    try: found[what] = f'got {act()!r}'
    except Exception as error: found[what] = f'refused {type(error).__name__}'
def connect():
    import _socket
    _socket.socket().connect(('127.0.0.1', given['port']))
for path in given['files']: attempt(f'read {path}', lambda: open(path).read())
for path in given['folders']: attempt(f'list {path}', lambda: seized.listdir(path))
for path in given['folders']: attempt(f'write to {path}', lambda: open(f'{path}/planted', 'w'))
for pid in [*given['pids'], seized.getppid()]:
    for part in ('mem', 'environ', 'maps'): attempt(f'{part} of {pid}', lambda: open(f'/proc/{pid}/{part}', 'rb'))
    attempt(f'descriptors of {pid}', lambda: seized.listdir(f'/proc/{pid}/fd'))
    attempt(f'a signal to {pid}', lambda: seized.kill(pid, 9))
attempt('a connection', connect)
attempt('a copy', seized.fork)
attempt('a program', lambda: seized.execv('/bin/sh', ['sh', '-c', 'cat /workspace/*']))
attempt('a spawned program', lambda: seized.posix_spawn('/bin/sh', ['sh', '-c', 'true'], {}))
environment = {key.decode(): value.decode() for key, value in seized.environ.items()}
{'found': found, 'environment': environment, 'inside': seized.getpid() == __import__('os').getpid()}
"""
PYTHON_MEMORY = """
import ctypes, gc, re
pattern, seen = re.compile('planted' + '-[0-9a-f]{16}'), set()
gc.unfreeze()
for one in gc.get_objects():
    for part in gc.get_referents(one):
        if isinstance(part, str): seen.update(pattern.findall(part))
        elif isinstance(part, (bytes, bytearray)): seen.update(pattern.findall(part.decode('latin1')))
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
for size in [1 << 18] * 64 + [1 << 12] * 512:
    seen.update(pattern.findall(ctypes.string_at(malloc(size), size).decode('latin1')))
sorted(seen)
"""
# What native code asks the kernel for. Numbers from 424 on are the same on every architecture.
SYSTEM_CALLS = """
import ctypes, errno, json
given, found = json.loads('''GIVEN'''), {}
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
buffer = ctypes.create_string_buffer(64)
class Part(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
part = ctypes.byref(Part(ctypes.addressof(buffer), 64))
def call(what, act):
    found[what] = errno.errorcode[ctypes.get_errno()] if act() == -1 else 'done'
for pid in given['pids']:
    call(f'the memory of {pid}', lambda: libc.process_vm_readv(pid, part, 1, part, 1, 0))
    call(f'writing to {pid}', lambda: libc.process_vm_writev(pid, part, 1, part, 1, 0))
    call(f'a debugger for {pid}', lambda: libc.ptrace(16, pid, None, None))
    call(f'a signal to {pid}', lambda: libc.kill(pid, 9))
    call(f'a descriptor for {pid}', lambda: libc.syscall(434, pid, 0))
call('a copy', libc.fork)
call('a copy by clone3', lambda: libc.syscall(435, buffer, 64))
call('a program', lambda: libc.execve(b'/bin/true', None, None))
call('a socket', lambda: libc.socket(2, 1, 0))
call('a pair of datagram sockets', lambda: libc.socketpair(1, 2, 0, buffer))
call('a ring of requests', lambda: libc.syscall(425, 8, buffer))
call('a descriptor of another', lambda: libc.syscall(438, 0, 0, 0))
call('a new user namespace', lambda: libc.unshare(0x10000000))
call('a namespace of another', lambda: libc.setns(0, 0))
call('a mount', lambda: libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))
call('another root', lambda: libc.chroot(b'/'))
call('a mount by its new interface', lambda: libc.syscall(428, -100, b'/', 0))
call('shared memory of System V', lambda: libc.shmget(1, 4096, 0o1600))
call('a queue of System V', lambda: libc.msgget(1, 0o1600))
found
"""
FORGED_CACHE = """
const vm = require('vm'), code = '(() => [1, 2].map((one) => one * 2))()';
const cached = new vm.Script(code).createCachedData();
for (let at = 64; at < cached.length; at += 7) cached[at] ^= 85;
new vm.Script(code, { cachedData: cached }).runInThisContext()
"""
CRASHES = {
    "source that is nested too deep": "eval('(' * 200_000 + ')' * 200_000)",
    "an object of a wrong type in C": "import ctypes; ctypes.pythonapi.PyList_Append(ctypes.c_void_p(8), ctypes.c_void_p(8))",
    "a jump to nowhere": "import ctypes; ctypes.CFUNCTYPE(None)(8)()",
}
