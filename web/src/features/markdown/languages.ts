import type { Language } from "@codemirror/language";

type Load = () => Promise<Language["parser"]>;

const script = (options: { jsx?: boolean; typescript?: boolean }): Load => async () => (await import("@codemirror/lang-javascript")).javascript(options).language.parser;
const python: Load = async () => (await import("@codemirror/lang-python")).python().language.parser;
const json: Load = async () => (await import("@codemirror/lang-json")).json().language.parser;
const css: Load = async () => (await import("@codemirror/lang-css")).css().language.parser;
const html: Load = async () => (await import("@codemirror/lang-html")).html().language.parser;
const markdown: Load = async () => (await import("@codemirror/lang-markdown")).markdown().language.parser;

/** The editor's own grammars, by the names that people write behind a fence. */
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

const MOST = 60_000;

export interface Span {
  text: string;
  /** The classes of what it is; empty for plain text. */
  look: string;
}

export function isKnown(language: string): boolean {
  return Object.hasOwn(LOADERS, language.toLowerCase());
}

/** The pieces of some code with what each is; null when its language is not known or there is too much of it. */
export async function colour(code: string, language: string): Promise<Span[] | null> {
  const load = isKnown(language) ? LOADERS[language.toLowerCase()] : undefined;
  if (load === undefined || code.length > MOST) return null;
  const [{ classHighlighter, highlightTree }, parser] = await Promise.all([import("@lezer/highlight"), load()]);
  const spans: Span[] = [];
  let at = 0;
  highlightTree(parser.parse(code), classHighlighter, (from, to, look) => {
    if (from > at) spans.push({ text: code.slice(at, from), look: "" });
    spans.push({ text: code.slice(from, to), look });
    at = to;
  });
  if (at < code.length) spans.push({ text: code.slice(at), look: "" });
  return spans;
}
