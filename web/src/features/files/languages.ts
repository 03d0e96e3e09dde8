import { HighlightStyle, type LanguageSupport } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Language } from "./content.logic";

/** The code of a language is loaded when a file of it is first opened. */
export const LANGUAGE_LOADERS: Record<Language, () => Promise<LanguageSupport>> = {
  javascript: () => import("@codemirror/lang-javascript").then((found) => found.javascript({ jsx: true })),
  typescript: () =>
    import("@codemirror/lang-javascript").then((found) => found.javascript({ jsx: true, typescript: true })),
  python: () => import("@codemirror/lang-python").then((found) => found.python()),
  json: () => import("@codemirror/lang-json").then((found) => found.json()),
  markdown: () => import("@codemirror/lang-markdown").then((found) => found.markdown()),
  css: () => import("@codemirror/lang-css").then((found) => found.css()),
  html: () => import("@codemirror/lang-html").then((found) => found.html()),
};

export const HIGHLIGHT_STYLE = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--leaf)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--amber)" },
  { tag: [tags.comment, tags.meta], color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--alarm)" },
  { tag: [tags.heading, tags.definition(tags.function(tags.variableName)), tags.className], fontWeight: "600" },
  { tag: [tags.tagName, tags.propertyName, tags.attributeName], color: "var(--leaf)" },
  { tag: tags.link, textDecoration: "underline" },
]);

export const EDITOR_THEME = EditorView.theme({
  "&": { height: "100%", fontSize: "0.875rem", backgroundColor: "var(--card)", color: "var(--ink)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--leaf)" },
  ".cm-cursor": { borderLeftColor: "var(--leaf)" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", border: "0" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--leaf) 7%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--leaf) 28%, transparent)",
  },
  ".cm-panels": { backgroundColor: "var(--sunk)", color: "var(--ink)" },
  ".cm-specialChar": { color: "var(--alarm)" },
});
