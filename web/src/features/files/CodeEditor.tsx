import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting, type LanguageSupport } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { languageOf, type Language } from "./content.logic";

const LOADERS: Record<Language, () => Promise<LanguageSupport>> = {
  javascript: () => import("@codemirror/lang-javascript").then((found) => found.javascript({ jsx: true })),
  typescript: () => import("@codemirror/lang-javascript").then((found) => found.javascript({ jsx: true, typescript: true })),
  python: () => import("@codemirror/lang-python").then((found) => found.python()),
  json: () => import("@codemirror/lang-json").then((found) => found.json()),
  markdown: () => import("@codemirror/lang-markdown").then((found) => found.markdown()),
  css: () => import("@codemirror/lang-css").then((found) => found.css()),
  html: () => import("@codemirror/lang-html").then((found) => found.html()),
};

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--leaf)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--amber)" },
  { tag: [tags.comment, tags.meta], color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--alarm)" },
  { tag: [tags.heading, tags.definition(tags.function(tags.variableName)), tags.className], fontWeight: "600" },
  { tag: [tags.tagName, tags.propertyName, tags.attributeName], color: "var(--leaf)" },
  { tag: tags.link, textDecoration: "underline" },
]);

const LOOK = EditorView.theme({
  "&": { height: "100%", fontSize: "0.875rem", backgroundColor: "var(--card)", color: "var(--ink)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--leaf)" },
  ".cm-cursor": { borderLeftColor: "var(--leaf)" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", border: "0" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--leaf) 7%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--leaf) 28%, transparent)" },
  ".cm-panels": { backgroundColor: "var(--sunk)", color: "var(--ink)" },
  ".cm-specialChar": { color: "var(--alarm)" },
});

interface EditorProps {
  path: string;
  text: string;
  onChange: (text: string) => void;
  onSave: () => void;
}

/**
 * The editor lives in a shadow root: there its styles are constructed sheets, which the content policy allows, and not
 * style elements, which it forbids.
 */
export default function CodeEditor({ path, text, onChange, onSave }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ onChange, onSave });
  useEffect(() => {
    latest.current = { onChange, onSave };
  });

  useEffect(() => {
    if (host.current === null) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const language = new Compartment();
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightSpecialChars(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          indentOnInput(),
          bracketMatching(),
          search({ top: true }),
          syntaxHighlighting(COLOURS),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": `Contents of ${path}` }),
          EditorState.lineSeparator.of(text.includes("\r\n") ? "\r\n" : "\n"),
          LOOK,
          language.of([]),
          keymap.of([
            {
              key: "Mod-s",
              run: () => {
                latest.current.onSave();
                return true;
              },
            },
            ...defaultKeymap,
            ...historyKeymap,
            ...searchKeymap,
            indentWithTab,
          ]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.sliceDoc());
          }),
        ],
      }),
    });
    view.current = editor;
    const known = languageOf(path);
    let current = true;
    if (known !== null) void LOADERS[known]().then((found) => current && editor.dispatch({ effects: language.reconfigure(found) }));
    return () => {
      current = false;
      editor.destroy();
      view.current = null;
    };
    // The text given is where it begins; what is typed after that is the editor's.
  }, [path]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.sliceDoc() === text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [text]);

  return <div ref={host} className="editor-host" data-keys="editor" />;
}
