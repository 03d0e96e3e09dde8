import type { Language } from "@codemirror/language";

type Load = () => Promise<Language["parser"]>;

const script =
  (options: { jsx?: boolean; typescript?: boolean }): Load =>
  async () =>
    (await import("@codemirror/lang-javascript")).javascript(options).language.parser;
const python: Load = async () => (await import("@codemirror/lang-python")).python().language.parser;
const json: Load = async () => (await import("@codemirror/lang-json")).json().language.parser;
const css: Load = async () => (await import("@codemirror/lang-css")).css().language.parser;
const html: Load = async () => (await import("@codemirror/lang-html")).html().language.parser;
const markdown: Load = async () => (await import("@codemirror/lang-markdown")).markdown().language.parser;

/** The grammars of the editor by the names that are used in Markdown. */
const LOADERS: Readonly<Record<string, Load>> = {
  js: script({ jsx: true }),
  javascript: script({ jsx: true }),
  jsx: script({ jsx: true }),
  mjs: script({}),
  ts: script({ typescript: true }),
  typescript: script({ typescript: true }),
  tsx: script({ jsx: true, typescript: true }),
  py: python,
  python,
  python3: python,
  json,
  jsonc: json,
  css,
  html,
  xml: html,
  svg: html,
  vue: html,
  md: markdown,
  markdown,
};

const MAX_LENGTH = 20_000;
/** Each span is an element of the page. */
const MAX_SPANS = 4_000;
/** Milliseconds for one block of code. */
const MAX_TIME = 100;
const STEPS_BETWEEN_LOOKS = 64;

export interface Span {
  text: string;
  /** The CSS classes of the highlighting; empty for plain text. */
  className: string;
}

export function isKnownLanguage(language: string): boolean {
  return Object.hasOwn(LOADERS, language.toLowerCase());
}

/** The tree of the code; null when it takes too long to find. */
function parse(code: string, parser: Language["parser"]) {
  const deadline = performance.now() + MAX_TIME;
  const parsing = parser.startParse(code);
  for (let steps = 1; ; steps++) {
    const tree = parsing.advance();
    if (tree !== null) return tree;
    if (steps % STEPS_BETWEEN_LOOKS === 0 && performance.now() > deadline) return null;
  }
}

/** The highlighted pieces of code; null when the language is unknown or the code is too long or too complex. */
export async function highlight(code: string, language: string): Promise<Span[] | null> {
  const load = isKnownLanguage(language) ? LOADERS[language.toLowerCase()] : undefined;
  if (load === undefined || code.length > MAX_LENGTH) return null;
  const [{ classHighlighter, highlightTree }, parser] = await Promise.all([import("@lezer/highlight"), load()]);
  const tree = parse(code, parser);
  if (tree === null) return null;
  const spans: Span[] = [];
  let end = 0;
  highlightTree(tree, classHighlighter, (from, to, className) => {
    if (spans.length > MAX_SPANS) return;
    if (from > end) spans.push({ text: code.slice(end, from), className: "" });
    spans.push({ text: code.slice(from, to), className });
    end = to;
  });
  if (spans.length > MAX_SPANS) return null;
  if (end < code.length) spans.push({ text: code.slice(end), className: "" });
  return spans;
}
