// The packages of JavaScript isolates: loaded in the zygote, or in each isolate if they would be the same in all of them.
const { isBuiltin, syncBuiltinESMExports } = require('node:module');

const DRAWING = [
  'randomBytes', 'pseudoRandomBytes', 'prng', 'rng', 'randomFill', 'randomFillSync', 'generateKey', 'generateKeySync',
  'generateKeyPair', 'generateKeyPairSync', 'generatePrime', 'generatePrimeSync', 'createDiffieHellman', 'createECDH',
];

// Packages are loaded once, for all isolates. One that draws random numbers while it is loaded would draw the same in each
// of them for ever: those are loaded anew in each isolate. So are ES modules, because Node cannot load them a second time.
function loadPackages(names) {
  const late = names.filter(isModulePackage), early = names.filter((name) => !late.includes(name));
  if (!early.length) return late;
  const known = new Set(Object.keys(require.cache)), watch = watchDraws();
  for (const name of early)
    try { require(name); }
    catch (error) { fs.writeSync(2, `${name} cannot be loaded: ${String(error?.message).split('\n')[0]}\n`); exit(1); }
  watch.end();
  if (!watch.drawn) return late;
  for (const file of Object.keys(require.cache)) if (!known.has(file)) delete require.cache[file];
  return names;
}
function isModulePackage(name) {
  let file;
  try { file = require.resolve(name); } catch (error) { return error.code === 'ERR_PACKAGE_PATH_NOT_EXPORTED'; }
  if (isBuiltin(file)) return false;
  if (/\.[mc]js$/.test(file)) return file.endsWith('.mjs');
  for (let folder = dirname(file); folder !== '/'; folder = dirname(folder))
    try { return JSON.parse(fs.readFileSync(`${folder}/package.json`, 'utf8')).type === 'module'; } catch { /* further up */ }
  return false;
}
// Until `end`, nothing is drawn from what V8 and Node keep for all isolates: the state of Math.random, and random bytes.
function watchDraws() {
  const crypto = require('node:crypto'), watch = { drawn: false }, undo = [];
  let watches = true;
  const replace = (owner, name, draw) => {
    const real = owner[name];
    owner[name] = function (...given) {
      if (!watches) return real.apply(this, given);
      watch.drawn = true;
      return draw(real.bind(this), ...given);
    };
    undo.push(() => { owner[name] = real; });
  };
  const fraction = () => Number(crypto.randomBytes(8).readBigUInt64LE() >> 11n) / 2 ** 53;
  const uncached = (real, options) => real({ ...options, disableEntropyCache: true });
  const plain = (real, ...given) => real(...given);
  replace(Math, 'random', fraction);
  const known = (names) => names.filter((one) => crypto[one]);
  for (const name of known(DRAWING)) replace(crypto, name, plain);
  for (const name of known(['randomUUID', 'randomUUIDv7'])) replace(crypto, name, uncached);
  replace(crypto, 'randomInt', (real, ...given) => {
    const [low, high] = typeof given[1] === 'number' ? given : [0, given[0]], drawn = low + Math.floor(fraction() * (high - low));
    return typeof given.at(-1) === 'function' ? process.nextTick(given.at(-1), undefined, drawn) : drawn;
  });
  const web = Object.getPrototypeOf(crypto.webcrypto);
  replace(web, 'randomUUID', () => crypto.randomUUID());
  replace(web, 'getRandomValues', plain);
  replace(Object.getPrototypeOf(crypto.webcrypto.subtle), 'generateKey', plain);
  syncBuiltinESMExports();
  watch.end = () => { watches = false; undo.forEach((action) => action()); syncBuiltinESMExports(); };
  return watch;
}
// In the isolate. The reason of a failure is the answer to its request. What only `import` can load is loaded by it.
function loadLatePackages() {
  for (const name of latePackages)
    try { require(name); }
    catch (error) {
      if (!/^ERR_(?:PACKAGE_PATH_NOT_EXPORTED|REQUIRE_ESM|REQUIRE_ASYNC_MODULE)$/.test(error?.code))
        return `${name} cannot be loaded: ${String(error?.message).split('\n')[0]}`;
    }
  return null;
}
