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

const MAX_LENGTH = 60_000;

export interface Span {
  text: string;
  /** The CSS classes of the highlighting; empty for plain text. */
  className: string;
}

export function isKnownLanguage(language: string): boolean {
  return Object.hasOwn(LOADERS, language.toLowerCase());
}

/** The highlighted pieces of code; null when the language is unknown or the code is too long. */
export async function highlight(code: string, language: string): Promise<Span[] | null> {
  const load = isKnownLanguage(language) ? LOADERS[language.toLowerCase()] : undefined;
  if (load === undefined || code.length > MAX_LENGTH) return null;
  const [{ classHighlighter, highlightTree }, parser] = await Promise.all([import("@lezer/highlight"), load()]);
  const spans: Span[] = [];
  let end = 0;
  highlightTree(parser.parse(code), classHighlighter, (from, to, className) => {
    if (from > end) spans.push({ text: code.slice(end, from), className: "" });
    spans.push({ text: code.slice(from, to), className });
    end = to;
  });
  if (end < code.length) spans.push({ text: code.slice(end), className: "" });
  return spans;
}
