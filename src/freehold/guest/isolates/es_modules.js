// What a script lacks of a module: `import`, `export`, and `await` and `return` at the top. The zygote is this and zygote.js.
'use strict';
// What the code of a cell declares must not change what runs the next one.
const { Buffer, performance, process, setImmediate } = globalThis;
const { dirname } = require('node:path');
const { pathToFileURL } = require('node:url');

// The parser that Node has for its own console. A Node that was built without it has no `import` at the top of code.
const parse = (() => {
  const source = process.binding?.('natives')?.['internal/deps/acorn/acorn/dist/acorn'];
  if (!source) return null;
  const acorn = { exports: {} };
  new Function('exports', 'module', source)(acorn.exports, acorn);
  const options = { ecmaVersion: 'latest', allowAwaitOutsideFunction: true, allowReturnOutsideFunction: true, allowImportExportEverywhere: true, allowHashBang: true };
  return (code) => acorn.exports.parse(code, options);
})();

const importers = new Map();
function importerAt(folder) {
  if (!importers.has(folder)) {
    const loader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
    if (!loader) throw new Error(`Node ${process.version} cannot import here; 20.12 and later can`);
    const script = new vm.Script('(specifier, options) => import(specifier, options)', { filename: `${folder}/code`, importModuleDynamically: loader });
    importers.set(folder, script.runInThisContext());
  }
  return importers.get(folder);
}
// The folder from which the code imports what has a relative name: that of its file, if it is one.
const folderOf = (name) => name.startsWith('/') ? dirname(name) : process.cwd();
// Node looks for modules only beside those that import them, and not in NODE_PATH, which has the prepared packages.
async function importModule(specifier, folder, attributes) {
  if (/^[^./:][^:]*$/.test(specifier)) {
    const name = specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
    const place = (process.env.NODE_PATH ?? '').split(':').find((one) => one && fs.existsSync(`${one}/${name}`));
    if (place) folder = dirname(place);
  }
  return importerAt(folder)(specifier, { with: { ...attributes } });
}

function* childrenOf(node) {
  for (const value of Object.values(node))
    for (const one of Array.isArray(value) ? value : [value])
      if (typeof one?.type === 'string') yield one;
}
const isFunction = (node) => /Function/.test(node.type);
function* namesIn(pattern) {
  if (pattern?.type === 'Identifier') yield pattern.name;
  else if (pattern?.type === 'AssignmentPattern') yield* namesIn(pattern.left);
  else if (pattern) for (const one of pattern.properties ?? pattern.elements ?? [pattern.value ?? pattern.argument]) yield* namesIn(one);
}

// Code as the body of an async function, as in Node's console: what it declares at the top is a variable of the context, and
// its last expression is returned. Lines stay lines. Such a variable can be declared again, so a cell can run again.
class ModuleRewriter {
  constructor(code, file) {
    Object.assign(this, { code, file, edits: [], names: new Set(), functions: [], imports: [], isAsync: false });
  }
  // null: the code is a script as it is.
  rewrite() {
    const tree = parse(this.code);
    for (const node of tree.body) this.visitTop(node);
    if (/\bimport\s*\.\s*meta\b/.test(this.code)) this.replaceMeta(tree);
    if (!this.isAsync) return null;
    this.returnLast(tree.body.at(-1));
    if (this.code.startsWith('#!')) this.replace(0, 2, '//');
    const variables = [...this.names, ...this.functions];
    const globals = this.functions.map((name) => `this.${name} = ${name}; `);
    const head = (variables.length ? `var ${variables.join(', ')}; ` : '') + `(async () => { ${globals.join('')}${this.imports.join('')}`;
    return { code: `${head}${this.applyEdits()}\n})()`, offset: head.length };
  }
  applyEdits() {
    let at = 0, text = '';
    for (const [from, to, words] of this.edits.sort((one, other) => one[0] - other[0] || one[1] - other[1])) {
      text += this.code.slice(at, from) + words;
      at = to;
    }
    return text + this.code.slice(at);
  }
  replace(from, to, words) { this.edits.push([from, to, words + this.code.slice(from, to).replace(/[^\n]/g, '')]); }
  insert(at, words) { this.edits.push([at, at, words]); }
  visitTop(node) {
    if (node.type === 'ImportDeclaration') this.takeImport(node);
    else if (/^Export/.test(node.type)) this.takeExport(node);
    else if (node.type === 'FunctionDeclaration') this.functions.push(node.id.name);
    else if (node.type === 'ClassDeclaration') {
      this.names.add(node.id.name);
      this.insert(node.start, `${node.id.name} = `);
      this.insert(node.end, ';');
      this.visit(node);
    } else this.visit(node, null, true);
  }
  // What is not inside a function.
  visit(node, parent = null, isTop = false) {
    if (isFunction(node) || node.type === 'StaticBlock') return;
    if (/^(Await|Return)/.test(node.type) || node.await) this.isAsync = true;
    if (node.type === 'VariableDeclaration' && (node.kind === 'var' || (isTop && /^(let|const)$/.test(node.kind)))) this.takeVariables(node, parent);
    for (const child of childrenOf(node)) this.visit(child, node);
  }
  takeVariables(node, parent) {
    for (const { id } of node.declarations) for (const name of namesIn(id)) this.names.add(name);
    if (parent?.left === node) return this.replace(node.start, node.start + node.kind.length, '');
    this.replace(node.start, node.start + node.kind.length, 'void (');
    for (const one of node.declarations) if (!one.init && node.kind === 'let') this.insert(one.end, ' = undefined');
    this.insert(node.declarations.at(-1).end, parent?.init === node || this.code[node.end - 1] === ';' ? ')' : ');');
  }
  takeImport({ start, end, source, specifiers, attributes = [] }) {
    const parts = [], wanted = [], from = this.importOf(source, attributes);
    for (const { type, imported, local } of specifiers) {
      this.names.add(local.name);
      if (type === 'ImportNamespaceSpecifier') { parts.push(`${local.name} = __module; `); continue; }
      wanted.push(type === 'ImportDefaultSpecifier' ? 'default' : imported.name ?? imported.value);
      parts.push(`${local.name} = __module[${JSON.stringify(wanted.at(-1))}]; `);
    }
    const check = wanted.length ? `for (const name of ${JSON.stringify(wanted)}) if (!(name in __module)) throw new SyntaxError(${JSON.stringify(`The module ${source.raw} has no export named `)} + name); ` : '';
    this.imports.push(`{ const __module = ${from}; ${check}${parts.join('')}} `);
    this.replace(start, end, ';');
  }
  importOf(source, attributes = []) {
    this.isAsync = true;
    const given = attributes.map(({ key, value }) => `${JSON.stringify(key.name ?? key.value)}: ${value.raw}`);
    return `await import(${source.raw}${given.length ? `, { with: { ${given.join(', ')} } }` : ''})`;
  }
  // Nobody imports the code, so what it exports is declared, and a default that has no name is the value of its expression.
  takeExport(node) {
    this.isAsync = true;
    const { declaration } = node;
    if (!declaration) {
      if (node.source) this.imports.push(`${this.importOf(node.source, node.attributes)}; `);
      this.replace(node.start, node.end, ';');
    } else if (/Declaration$/.test(declaration.type) && (declaration.id || declaration.declarations)) {
      this.replace(node.start, declaration.start, ';');
      this.visitTop(declaration);
    } else {
      this.replace(node.start, declaration.start, ';(');
      this.insert(declaration.end, ');');
      this.visit(declaration);
    }
  }
  returnLast(node) {
    if (node?.type === 'ExportDefaultDeclaration' && !node.declaration.id) {
      const edit = this.edits.find(([from]) => from === node.start);
      edit[2] = edit[2].replace(';(', 'return (');
    }
    if (node?.type !== 'ExpressionStatement') return;
    this.insert(node.start, 'return (');
    this.insert(this.code[node.end - 1] === ';' ? node.end - 1 : node.end, ')');
  }
  replaceMeta(node) {
    if (node.type === 'MetaProperty' && node.meta.name === 'import') {
      this.isAsync = true;
      this.replace(node.start, node.end, `(${JSON.stringify({ dirname: dirname(this.file), filename: this.file, url: String(pathToFileURL(this.file)) })})`);
    }
    for (const child of childrenOf(node)) this.replaceMeta(child);
  }
}

const isSyntaxError = (error, words, code) => error instanceof SyntaxError && words.test(code);
function compile(code, name) {
  const options = { filename: name };
  if (/\bimport\b/.test(code)) options.importModuleDynamically = (specifier, _, attributes) => importModule(specifier, folderOf(name), attributes);
  let failure = null;
  if (parse && /\b(?:await|import|export|return)\b/.test(code)) {
    // `return` is in most code, and seldom at the top: a script is tried first.
    if (!/\b(?:await|import|export)\b/.test(code)) try { return new vm.Script(code, options); } catch { /* perhaps it is */ }
    try {
      const found = new ModuleRewriter(code, `${folderOf(name)}/${name.split('/').at(-1)}`).rewrite();
      if (found) return new vm.Script(found.code, { ...options, columnOffset: -found.offset });
    } catch (error) { failure = error; }
  }
  try { return new vm.Script(code, options); }
  catch (error) {
    if (failure && isSyntaxError(error, /^\s*(?:import|export)\b/m, code)) throw failure;
    if (!isSyntaxError(error, /\bawait\b|\breturn\b/, code)) throw error;
    return new vm.Script(`(async () => { ${code}\n})()`, { ...options, columnOffset: -15 });
  }
}
