// The zygote of JavaScript isolates. The protocol is described in __init__.py; python_zygote.py is the same for Python.
// Runs behind es_modules.js and packages.js, as one program with them, and with --single-threaded: V8 needs no thread then,
// and a forked child, which has none, misses none.
const fs = require('node:fs');
const vm = require('node:vm');
const util = require('node:util');
const v8 = require('node:v8');
const net = require('node:net');
const { isUtf8 } = require('node:buffer');
const { stripTypeScriptTypes } = require('node:module');

const { startSigintWatchdog, stopSigintWatchdog } = process.binding?.('contextify') ?? {};

const addon = { exports: {} };
process.dlopen(addon, '/proc/self/fd/1');
const native = addon.exports;
const { syscall, numbers } = native;
const readPacket = () => { const packet = Buffer.alloc(1 << 18); return packet.subarray(0, fs.readSync(0, packet)); };
const filters = { closed: readPacket(), networked: readPacket() };

const CHANNEL = 100;
const ITEM = 2, RESULT = 3;
const MAX_TEXT = 64 * 1024, MAX_TRACE = 8 * 1024, MAX_MESSAGE = 4 * 1024, MAX_ROWS = 1000, MAX_COLUMNS = 10000;
const MAX_HELD = 16 * 1024;
const SHOWN_TYPES = ['json', 'text', 'bytes', 'table', 'image/png', 'image/jpeg', 'image/svg+xml'];
const REFUSED = 70;
const PID_MARK = Buffer.from([0x34, 0x12, 0x5a, 0x5a]);
const exit = (code) => syscall(numbers.exit_group, code); // process.exit joins threads that a child does not have

// Walls. walls.py says why each is there.

const READ = 1 | 4 | 8, OF_FILES = 1 | 2 | 4 | (1 << 14), CONNECT_TCP = 2, PROXY_PORT = 3128;
const SHARED = ['/usr', '/opt/agents', '/opt/freehold', '/opt/packages', '/lib', '/lib64', '/etc/localtime', '/etc/ssl', '/etc/pki'];
const READABLE_DEVICES = ['/dev/zero', '/dev/urandom', '/dev/random'];
const RLIMIT_FSIZE = 1, RLIMIT_DATA = 2, RLIMIT_NOFILE = 7;
const version = syscall(numbers.landlock_create_ruleset, 0, 0, 1);
if (version < 1) throw new Error('this kernel has no Landlock, which keeps isolates from files');
const rights = (1 << (version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13)) - 1;

function words(...values) {
  const buffer = Buffer.alloc(8 * values.length);
  values.forEach((value, at) => buffer.writeBigUInt64LE(BigInt(value), at * 8));
  return buffer;
}
function check(result, what) {
  if (result < 0) throw new Error(`${what}: ${util.getSystemErrorName(result)}`);
  return result;
}
function allow(ruleset, path, access, needed) {
  let place;
  try { place = fs.openSync(path, 0o10000000 | 0o2000000); } // O_PATH | O_CLOEXEC
  catch (error) { if (needed) throw error; return; }
  if (!fs.statSync(path).isDirectory()) access &= OF_FILES;
  const rule = Buffer.alloc(12);
  rule.writeBigUInt64LE(BigInt(access & rights));
  rule.writeInt32LE(place, 8);
  check(syscall(numbers.landlock_add_rule, ruleset, 1, rule, 0), `Landlock, ${path}`);
  fs.closeSync(place);
}
function makeRuleset(grants, network) {
  if (network && version < 4) throw new Error('the network grant needs Linux 6.7 or later, whose Landlock can hold it to one port');
  const handled = words(rights, ...(version >= 4 ? [3] : []), ...(version >= 6 ? [3] : []));
  const ruleset = check(syscall(numbers.landlock_create_ruleset, handled, handled.length, 0), 'Landlock');
  for (const path of SHARED) allow(ruleset, path, READ, false);
  for (const path of READABLE_DEVICES) allow(ruleset, path, 4, false);
  allow(ruleset, '/dev/null', 2 | 4, false);
  for (const [path, mode] of grants) allow(ruleset, path, mode === 'rw' ? rights : READ, true);
  if (network) check(syscall(numbers.landlock_add_rule, ruleset, 2, words(CONNECT_TCP, PROXY_PORT), 0), 'Landlock');
  return ruleset;
}
const sharedRuleset = makeRuleset([], false);

function setLimit(kind, value) { check(syscall(numbers.setrlimit, kind, words(value, value)), 'a resource limit'); }
const openStatm = () => fs.openSync('/proc/self/statm', 'r');
function dataSize(statm) {
  const text = Buffer.allocUnsafe(256);
  return Number(text.latin1Slice(0, fs.readSync(statm, text, 0, 256, 0)).split(' ')[5]) * 4096;
}
function ownFilter(program) {
  const own = Buffer.alloc(4);
  own.writeInt32LE(syscall(numbers.getpid));
  const copy = Buffer.from(program);
  for (let at = copy.indexOf(PID_MARK); at >= 0; at = copy.indexOf(PID_MARK, at + 4)) own.copy(copy, at);
  return copy;
}
function seal(request, { filter, statm }) {
  const { limits, grants = [], network = false, folder = '/' } = request;
  setLimit(RLIMIT_DATA, dataSize(statm) + limits.memory);
  fs.closeSync(statm);
  setLimit(RLIMIT_FSIZE, limits.file_size);
  setLimit(RLIMIT_NOFILE, limits.open_files);
  const ruleset = grants.length || network ? makeRuleset(grants, network) : sharedRuleset;
  check(syscall(numbers.landlock_restrict_self, ruleset, 0), 'Landlock');
  for (const one of new Set([ruleset, sharedRuleset])) syscall(numbers.close, one);
  check(native.seal(network ? ownFilter(filters.networked) : filter), 'the system-call filter');
  process.chdir(folder);
}

// Once, so that every isolate has it: the compiler, the type stripper and the modules that most snippets need.

for (const name of ['crypto', 'events', 'stream', 'buffer', 'zlib', 'url', 'assert', 'timers/promises', 'readline', 'fs/promises', 'perf_hooks', 'path', 'os', 'string_decoder', 'querystring'])
  require('node:' + name);
const latePackages = loadPackages(process.argv.splice(1));
if (stripTypeScriptTypes)
  for (let round = 0; round < 40; round++)
    stripTypeScriptTypes(`interface P<T> { a: T; b?: string } type Q = P<number>; const f${round} = <T,>(x: T): T => x; class C { private x: number = ${round}; m(a: string, b = 2): void { console.log(a as unknown as number, b!); } }`);
if (parse)
  for (let round = 0; round < 20; round++)
    try { compile(`import a, { b } from 'c${round}'; const { x, y: [z] } = await a; class C {}\nfor (const i of x) b(i); export let v = 1; z`, 'warm'); } catch { /* a parser or a V8 that does not know all of it */ }
for (let round = 0; round < 50; round++)
  vm.runInThisContext(`(() => { const a = [1, 2, 3].map((x) => x * ${round}); return JSON.stringify({ a }); })()`);
util.inspect({ a: [1, new Map([[1, 2]])] });
util.format('%s', 'x');

// The life of an isolate.

function writeAll(descriptor, data) {
  let at = 0;
  while (at < data.length) {
    try { at += fs.writeSync(descriptor, data, at); }
    catch (error) { if (error.code !== 'EAGAIN') return; }
  }
}
let held = []; // a small record that goes together with the next, so that the guest wakes once
function record(kind, ...parts) {
  const head = Buffer.alloc(5);
  head.writeUInt8(kind);
  head.writeUInt32LE(parts.reduce((sum, part) => sum + part.length, 0), 1);
  return Buffer.concat([head, ...parts]);
}
function sendRecord(kind, ...parts) {
  const data = Buffer.concat([...held, record(kind, ...parts)]);
  held = [];
  writeAll(CHANNEL, data);
}
function sendItem(head, content) {
  const description = Buffer.from(JSON.stringify(head) + '\n');
  if (head.role === 'value' && content.length <= MAX_HELD) held.push(record(ITEM, description, content));
  else sendRecord(ITEM, description, content);
}
// The form of a data frame of Python. An array of objects stays JSON: a program that asked for it gets every row, unchanged.
class Table {
  constructor(columns, rows, total) { Object.assign(this, { columns, rows, total }); }
}
function table(rows, columns) {
  const all = Array.from(rows);
  for (const row of all)
    if (row === null || typeof row !== 'object') throw new TypeError('table() takes rows that are objects or arrays');
  const names = columns === undefined ? [...new Set(all.flatMap(Object.keys))] : Array.from(columns, String);
  return new Table(names, all.slice(0, MAX_ROWS).map((row) => names.map((name) => cellOf(row[name]))), all.length);
}
function cellOf(value) {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  return util.inspect(value, { breakLength: Infinity }).slice(0, MAX_TEXT);
}
function encodeValue(value) {
  if (value instanceof Table) return ['table', Buffer.from(JSON.stringify(value))];
  if (value instanceof Uint8Array) return ['bytes', Buffer.from(value.buffer, value.byteOffset, value.byteLength)];
  if (value instanceof ArrayBuffer) return ['bytes', Buffer.from(value)];
  try {
    const text = typeof value === 'function' ? undefined : JSON.stringify(value);
    if (text !== undefined) return ['json', Buffer.from(text)];
  } catch { /* a cycle, a BigInt, a toJSON that throws */ }
  return ['text', Buffer.from(util.inspect(value).slice(0, MAX_TEXT))];
}
function display(value, type) {
  const isRaw = value instanceof Uint8Array || typeof value === 'string';
  if (type === undefined || !isRaw) { const [kind, content] = encodeValue(value); return sendItem({ role: 'display', type: kind }, content); }
  const content = Buffer.from(value);
  sendItem({ role: 'display', type: typeFor(String(type), content) }, content);
}
// The host knows few types, and reads what is said to be JSON or a table. Everything else is text.
function typeFor(type, content) {
  if (!SHOWN_TYPES.includes(type)) return 'text';
  if (type !== 'json' && type !== 'table') return type;
  try {
    const found = JSON.parse(content);
    return isUtf8(content) && (type === 'json' || isTable(found)) ? type : 'text';
  } catch { return 'text'; }
}
function isTable({ columns, rows, total, index = [] }) {
  const isRow = (row) => Array.isArray(row) && row.length === columns.length;
  const isShaped = columns.length <= MAX_COLUMNS && columns.every((name) => typeof name === 'string') && rows.every(isRow);
  return isShaped && Array.isArray(index) && Number.isSafeInteger(total) && total >= rows.length;
}
function sendFiles(patterns) {
  for (const pattern of patterns)
    for (const name of fs.globSync ? fs.globSync(pattern).sort() : [pattern])
      if (fs.statSync(name, { throwIfNoEntry: false })?.isFile()) sendItem({ role: 'file', name }, fs.readFileSync(name));
}
function isOutOfMemory(error) {
  return error?.code === 'ERR_MEMORY_ALLOCATION_FAILED' || (error instanceof RangeError && /allocat/i.test(error.message));
}
function describeError(error) {
  try { return [String(error?.name ?? 'Error'), String(error?.message ?? error).slice(0, MAX_MESSAGE), String(error?.stack ?? '').slice(0, MAX_TRACE)]; }
  catch { return ['Error', '', '']; }
}

let prepared, sealed = false, count = 0, current = null;

function handle(request, inputs) {
  if (!sealed) {
    try {
      if (prepared?.failure) throw new Error(prepared.failure);
      seal(request, prepared);
    } catch (error) { sendRecord(RESULT, Buffer.from(JSON.stringify({ refused: String(error.message) }))); exit(REFUSED); }
    sealed = true;
  }
  const execution = { request, began: performance.now() };
  current = execution;
  try {
    let at = 0;
    for (const [name, size] of request.inputs ?? []) { fs.writeFileSync(name, inputs.subarray(at, at + size)); at += size; }
    const name = request.name ?? `<cell ${++count}>`;
    process.argv = [process.execPath, request.name ?? '', ...request.arguments ?? []];
    let { code } = request;
    if (request.typescript) {
      if (!stripTypeScriptTypes) throw new Error(`Node ${process.version} has no TypeScript; 22.13 and later have it`);
      code = stripTypeScriptTypes(code, { mode: 'strip' });
    }
    // A context must survive an endless loop. The watcher costs a thread, so isolates for one execution have none.
    if (request.keep && !request.rehearsal) keepWatcher();
    const value = compile(code, name).runInThisContext(request.keep ? { breakOnSigint: true } : {});
    if (value === null || typeof value?.then !== 'function') return finish(execution, false, value);
    if (request.keep) process.once('SIGINT', interrupted);
    value.then((result) => finish(execution, false, result), (error) => finish(execution, true, error));
  } catch (error) { finish(execution, true, error); }
}
// Node starts its watcher of SIGINT for each script and ends it after. In a context it is kept, which saves that thread
// each time. A listener takes the signal from it, so that after one it is started anew.
let watches = false, listened = false;
function keepWatcher() {
  if (!startSigintWatchdog) return; // a later Node
  if (watches && (listened || process.listenerCount('SIGINT'))) { stopSigintWatchdog(); watches = listened = false; }
  if (watches || process.listenerCount('SIGINT')) return;
  startSigintWatchdog();
  watches = true;
}
function interrupted() {
  if (current) finish(current, true, { name: 'Interrupted', message: 'The execution was interrupted' });
}
function finish(execution, failed, outcome) {
  if (current !== execution) return; // it was interrupted before its promise settled
  current = null;
  process.removeListener('SIGINT', interrupted);
  const result = { seconds: (performance.now() - execution.began) / 1000 };
  try {
    if (failed) {
      result.error = describeError(outcome);
      if (isOutOfMemory(outcome)) result.limit = 'memory';
    } else {
      if (outcome !== undefined) { const [type, content] = encodeValue(outcome); sendItem({ role: 'value', type }, content); }
      sendFiles(execution.request.outputs ?? []);
    }
  } catch (failure) { result.error = describeError(failure); }
  sendRecord(RESULT, Buffer.from(JSON.stringify(result)));
  if (execution.request.rehearsal) return;
  if (execution.request.keep) setImmediate(take);
  else exit(0);
}

// After the first request the channel is read by the event loop, so that timers and promises go on between requests.
let socket, inbox = Buffer.alloc(0);
function take() {
  if (!socket) {
    socket = new net.Socket({ fd: CHANNEL, readable: true, writable: false });
    socket.on('data', (data) => { inbox = inbox.length ? Buffer.concat([inbox, data]) : data; take(); });
    socket.on('close', () => exit(0));
    socket.on('error', () => exit(0));
  }
  if (current || inbox.length < 4) return;
  const size = inbox.readUInt32LE(0);
  if (inbox.length < 4 + size) return;
  const request = JSON.parse(inbox.toString('utf8', 4, 4 + size));
  const wanted = (request.inputs ?? []).reduce((sum, [, length]) => sum + length, 0);
  if (inbox.length < 4 + size + wanted) return;
  const inputs = inbox.subarray(4 + size, 4 + size + wanted);
  inbox = inbox.subarray(4 + size + wanted);
  handle(request, inputs);
}
function readExactly(size) {
  const buffer = Buffer.allocUnsafe(size);
  for (let at = 0; at < size;) {
    const got = fs.readSync(CHANNEL, buffer, at, size - at, null);
    if (!got) exit(0);
    at += got;
  }
  return buffer;
}
function isAsked(channel) {
  const wanted = Buffer.alloc(8), atOnce = Buffer.alloc(16);
  wanted.writeInt32LE(channel);
  wanted.writeInt16LE(1, 4); // POLLIN
  return syscall(numbers.ppoll, wanted, 1, atOnce, 0, 0) > 0;
}
function live([channel, out, err]) {
  // While it is parked: one pass more, so that the pages that a request writes are its own already.
  if (!isAsked(channel)) rehearse(1);
  const nothing = fs.openSync('/dev/null', 'r');
  for (const [from, to] of [[nothing, 0], [out, 1], [err, 2], [channel, CHANNEL]]) check(native.move(from, to), 'a descriptor');
  for (const descriptor of [nothing, channel, out, err]) if (descriptor > 2) fs.closeSync(descriptor);
  // Forked isolates would draw the same random numbers. The seed is taken from this flag at the first draw.
  const seed = Buffer.alloc(4);
  if (syscall(numbers.getrandom, seed, 4, 0) !== 4) exit(1);
  v8.setFlagsFromString('--random-seed=' + (1 + seed.readUInt32LE() % (2 ** 31 - 2)));
  Object.defineProperty(process, 'pid', { configurable: true, enumerable: true, value: syscall(numbers.getpid) }); // Node has the zygote's
  process.on('newListener', (name) => { if (name === 'SIGINT') listened = true; });
  process.on('uncaughtException', (error) => {
    if (current && !current.request.keep) finish(current, true, error);
    else writeAll(2, Buffer.from(`Uncaught ${error?.stack ?? error}\n`));
  });
  const failure = loadLatePackages();
  prepared = { failure, filter: ownFilter(filters.closed), statm: openStatm() };
  // The first request is read without the event loop: a parked isolate has neither a thread nor a socket object.
  const request = JSON.parse(readExactly(readExactly(4).readUInt32LE(0)).toString());
  handle(request, readExactly((request.inputs ?? []).reduce((sum, [, length]) => sum + length, 0)));
}

// Everything that a request goes through, so that no isolate has to compile it. What is sent meanwhile leads nowhere.
function rehearse(rounds) {
  const nowhere = fs.openSync('/dev/null', 'w'), { argv } = process;
  check(native.move(nowhere, CHANNEL), 'a descriptor');
  fs.closeSync(nowhere);
  sealed = true;
  for (let round = 0; round < rounds; round++)
    for (const typescript of stripTypeScriptTypes ? [false, true] : [false])
      handle(JSON.parse(JSON.stringify({ code: `[${round}].length`, limits: { memory: 1 }, keep: false, typescript, rehearsal: true })), Buffer.alloc(0));
  fs.closeSync(CHANNEL);
  const statm = openStatm();
  ownFilter(filters.closed);
  try { seal({ limits: { memory: NaN } }, { statm }); } catch { /* it ends at the first limit, and is compiled */ }
  fs.closeSync(statm);
  [sealed, count, process.argv] = [false, 0, argv];
}
// What the code of an isolate finds: its own output, and an exit that answers first.
for (const [name, descriptor] of Object.entries({ log: 1, info: 1, debug: 1, warn: 2, error: 2, trace: 2 }))
  console[name] = (...values) => writeAll(descriptor, Buffer.from(util.format(...values) + '\n'));
for (const [stream, descriptor] of [['stdout', 1], ['stderr', 2]])
  Object.defineProperty(process, stream, { configurable: true, value: { fd: descriptor, isTTY: false, writable: true, write: (text) => { writeAll(descriptor, Buffer.from(text)); return true; }, on() {}, once() {}, emit() {}, end() {} } });
globalThis.require = require;
globalThis.display = display;
globalThis.table = table;
process.exit = process.reallyExit = (code) => {
  const execution = current;
  if (!execution) exit(0);
  current = null;
  sendRecord(RESULT, Buffer.from(JSON.stringify({ exit: (code ?? process.exitCode ?? 0) & 255, seconds: (performance.now() - execution.began) / 1000 })));
  exit(0);
};
rehearse(50);

// The zygote stays in this call. It returns in each child, and without descriptors when the guest is gone.
const descriptors = native.serve(sharedRuleset);
if (!descriptors.length) exit(0);
live(descriptors);
