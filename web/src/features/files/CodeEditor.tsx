import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { useEffect, useRef } from "react";
import { languageOf } from "./content.logic";
import { EDITOR_THEME, HIGHLIGHT_STYLE, LANGUAGE_LOADERS } from "./languages";

interface EditorProps {
  path: string;
  text: string;
  /** The line to go to; null for none. */
  line: number | null;
  onChange: (text: string) => void;
  /** With the text of the editor: the last `onChange` may not be drawn yet. */
  onSave: (text: string) => void;
}

/**
 * A text editor in a shadow root. There its styles are constructed sheets, which the content policy allows. Outside of
 * one they would be style elements, which it forbids.
 */
export default function CodeEditor({ path, text, line, onChange, onSave }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ onChange, onSave });
  useEffect(() => {
    latest.current = { onChange, onSave };
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: `text` is the start; after that the editor has the text
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
          syntaxHighlighting(HIGHLIGHT_STYLE),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": `Contents of ${path}` }),
          EditorState.lineSeparator.of(text.includes("\r\n") ? "\r\n" : "\n"),
          EDITOR_THEME,
          language.of([]),
          keymap.of([
            {
              key: "Mod-s",
              run: ({ state }) => {
                latest.current.onSave(state.sliceDoc());
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
    const known = languageOf(path, text);
    let current = true;
    if (known !== null)
      void LANGUAGE_LOADERS[known]().then(
        (found) => current && editor.dispatch({ effects: language.reconfigure(found) }),
      );
    return () => {
      current = false;
      editor.destroy();
      view.current = null;
    };
  }, [path]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.sliceDoc() === text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [text]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another file has other lines
  useEffect(() => {
    const editor = view.current;
    if (editor === null || line === null) return;
    const { from } = editor.state.doc.line(Math.max(1, Math.min(line, editor.state.doc.lines)));
    editor.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    editor.focus();
  }, [line, path]);

  return <div ref={host} className="files-editor" data-keys="editor" />;
}
