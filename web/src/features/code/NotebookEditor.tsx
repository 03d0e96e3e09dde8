import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { EDITOR_THEME, HIGHLIGHT_STYLE, LANGUAGE_LOADERS } from "../files/languages";
import type { Language } from "./notebook.logic";

interface NotebookEditorProps {
  id: string;
  code: string;
  name: string;
  language: Language;
  focusRequests: number;
  onChange: (code: string) => void;
  onRun: () => void;
  onRunAndGoOn: () => void;
}

/** The editor of a cell, as tall as its code. It is in a shadow root for the reason that `CodeEditor` gives. */
export default function NotebookEditor({ id, code, name, language, focusRequests, ...actions }: NotebookEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const support = useRef(new Compartment());
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: `code` is the start; after that the editor has the text
  useEffect(() => {
    const place = host.current;
    if (place === null) return;
    const root = place.shadowRoot ?? place.attachShadow({ mode: "open" });
    const act = (action: "onRun" | "onRunAndGoOn") => () => {
      latest.current[action]();
      return true;
    };
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: code,
        extensions: [
          history(),
          drawSelection(),
          highlightSpecialChars(),
          indentOnInput(),
          bracketMatching(),
          syntaxHighlighting(HIGHLIGHT_STYLE),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": `Code of ${name}` }),
          EDITOR_THEME,
          support.current.of([]),
          Prec.highest(
            keymap.of([
              { key: "Shift-Enter", run: act("onRunAndGoOn") },
              { key: "Mod-Enter", run: act("onRun") },
            ]),
          ),
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.sliceDoc());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => {
      editor.destroy();
      view.current = null;
    };
  }, [id]);

  // After the one above, so that an editor that was asked for before it was there gets the focus too.
  useEffect(() => {
    if (focusRequests > 0) view.current?.focus();
  }, [focusRequests]);

  useEffect(() => {
    let current = true;
    const show = (found: Parameters<Compartment["reconfigure"]>[0]) =>
      current && view.current?.dispatch({ effects: support.current.reconfigure(found) });
    if (language === "wasm") show([]);
    else void LANGUAGE_LOADERS[language]().then(show);
    return () => {
      current = false;
    };
  }, [language]);

  return <div ref={host} className="notebook-editor" data-keys="editor" />;
}
