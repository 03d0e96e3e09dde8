import { defaultKeymap } from "@codemirror/commands";
import { syntaxHighlighting } from "@codemirror/language";
import { Change, getChunks, MergeView, presentableDiff } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension, type Range, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  WidgetType,
} from "@codemirror/view";
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";
import { languageOf } from "./content.logic";
import { EDITOR_THEME, HIGHLIGHT_STYLE, LANGUAGE_LOADERS } from "./languages";
import { squeeze, unsqueeze } from "./squeeze.logic";
import "./files.css";

/** A line of one of the two versions. */
export interface CommentedLine {
  path: string;
  side: "old" | "new";
  line: number;
  quote: string;
}

export interface Comment extends CommentedLine {
  text: string;
}

export interface ChangeStepper {
  /** Goes to the next change in a direction. False when there is none. */
  step: (direction: 1 | -1) => boolean;
}

interface SideBySideProps {
  path: string;
  ignoresSpace: boolean;
  before: string;
  after: string;
  comments: readonly Comment[];
  onComment: (line: CommentedLine) => void;
  ref: Ref<ChangeStepper>;
}

const LIMITS = { scanLimit: 500, timeout: 150 };

/** What changed, but for white space within lines. */
function diffOfWords(before: string, after: string): readonly Change[] {
  const [a, b] = [squeeze(before), squeeze(after)];
  return presentableDiff(a.text, b.text, LIMITS).map(
    ({ fromA, toA, fromB, toB }) => new Change(...unsqueeze(a, fromA, toA), ...unsqueeze(b, fromB, toB)),
  );
}

const setComments = StateEffect.define<readonly Comment[]>();

class CommentWidget extends WidgetType {
  constructor(
    private readonly comment: Comment,
    private readonly open: (comment: Comment) => void,
  ) {
    super();
  }
  override eq(other: CommentWidget): boolean {
    return other.comment.text === this.comment.text && other.comment.line === this.comment.line;
  }
  override toDOM(): HTMLElement {
    const made = document.createElement("button");
    made.className = "files-comment";
    made.textContent = this.comment.text;
    made.addEventListener("click", () => this.open(this.comment));
    // The editor measures heights without margins, so the space is padding of a box around it.
    const around = document.createElement("div");
    around.className = "files-comment-place";
    around.append(made);
    return around;
  }
  override ignoreEvent(): boolean {
    return true;
  }
}

const MERGE_THEME = EditorView.theme({
  "&": { height: "auto", fontSize: "0.8125rem" },
  ".cm-scroller": { overflow: "visible" },
  ".cm-lineNumbers .cm-gutterElement": { cursor: "pointer", minWidth: "2.5rem" },
  ".cm-lineNumbers .cm-gutterElement:hover": { color: "var(--leaf)", textDecoration: "underline" },
  "&.cm-merge-a .cm-changedLine, &.cm-merge-a .cm-deletedLine": { backgroundColor: "var(--alarm-wash)" },
  "&.cm-merge-b .cm-changedLine, &.cm-merge-b .cm-insertedLine": { backgroundColor: "var(--leaf-wash)" },
  // What changed within a line is underlined: a darker colour behind it would leave too little contrast.
  "&.cm-merge-a .cm-changedText": { background: "none", boxShadow: "inset 0 -2px var(--alarm)" },
  "&.cm-merge-b .cm-changedText": { background: "none", boxShadow: "inset 0 -2px var(--leaf)" },
  ".cm-collapsedLines": {
    background: "var(--sunk)",
    color: "var(--quiet)",
    padding: "0.35rem 0.75rem",
    cursor: "pointer",
  },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: "none" },
  ".files-comment-place": { padding: "0.25rem 0.5rem" },
  ".files-comment": {
    display: "block",
    font: "0.875rem/1.45 system-ui, sans-serif",
    whiteSpace: "pre-wrap",
    textAlign: "left",
    color: "var(--ink)",
    background: "var(--amber-wash)",
    border: "1px solid var(--amber)",
    borderRadius: "8px",
    padding: "0.4rem 0.75rem",
    cursor: "pointer",
    maxWidth: "100%",
  },
});

/** Both versions beside each other. They are in a shadow root because of the content policy (see CodeEditor). */
export default function SideBySide({ path, ignoresSpace, before, after, comments, onComment, ref }: SideBySideProps) {
  const host = useRef<HTMLDivElement>(null);
  const merge = useRef<MergeView | null>(null);
  const latest = useRef({ comments, onComment });
  useEffect(() => {
    latest.current = { comments, onComment };
  });

  useEffect(() => {
    if (host.current === null) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(
      ".cm-mergeView { height: 100%; overflow: auto; background: var(--card); } .cm-mergeViewEditor + .cm-mergeViewEditor { border-left: 1px solid var(--line); }",
    );
    const side = (name: "old" | "new"): Extension => {
      const comment = (view: EditorView, at: number) => {
        const line = view.state.doc.lineAt(at);
        latest.current.onComment({ path, side: name, line: line.number, quote: line.text });
        return true;
      };
      return [
        EditorState.readOnly.of(true),
        EditorView.contentAttributes.of({
          "aria-label": `${path}, ${name === "old" ? "before" : "after"}`,
          "aria-readonly": "true",
        }),
        lineNumbers({ domEventHandlers: { click: (view, line) => comment(view, line.from) } }),
        highlightSpecialChars(),
        highlightSelectionMatches(),
        search({ top: true }),
        syntaxHighlighting(HIGHLIGHT_STYLE),
        EditorView.lineWrapping,
        EDITOR_THEME,
        MERGE_THEME,
        commentField(name, (comment) => latest.current.onComment(comment)),
        keymap.of([
          { key: "c", run: (view) => comment(view, view.state.selection.main.head) },
          ...searchKeymap,
          ...defaultKeymap,
        ]),
      ];
    };
    const made = new MergeView({
      root,
      parent: root,
      a: { doc: before, extensions: side("old") },
      b: { doc: after, extensions: side("new") },
      collapseUnchanged: { margin: 3, minSize: 6 },
      diffConfig: ignoresSpace ? { override: diffOfWords } : LIMITS,
    });
    // Added last, so that it overrides the sheets of the editors.
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    merge.current = made;
    showComments(made, latest.current.comments);
    const known = languageOf(path, before) === null ? null : languageOf(path, after);
    let current = true;
    if (known !== null)
      void LANGUAGE_LOADERS[known]().then((found) => {
        if (current)
          for (const view of [made.a, made.b]) view.dispatch({ effects: StateEffect.appendConfig.of(found) });
      });
    return () => {
      current = false;
      made.destroy();
      root.adoptedStyleSheets = root.adoptedStyleSheets.filter((one) => one !== sheet);
      merge.current = null;
    };
  }, [path, ignoresSpace, before, after]);

  useEffect(() => {
    if (merge.current !== null) showComments(merge.current, comments);
  }, [comments]);

  useImperativeHandle(
    ref,
    () => ({
      step(direction) {
        const view = merge.current?.b;
        const chunks = view === undefined ? null : getChunks(view.state);
        if (view === undefined || chunks === null) return false;
        const head = view.hasFocus ? view.state.selection.main.head : direction === 1 ? -1 : Infinity;
        const starts = chunks.chunks.map((chunk) => Math.min(chunk.fromB, view.state.doc.length));
        const to = direction === 1 ? starts.find((start) => start > head) : starts.findLast((start) => start < head);
        if (to === undefined) return false;
        view.dispatch({ selection: { anchor: to }, effects: EditorView.scrollIntoView(to, { y: "center" }) });
        view.focus();
        return true;
      },
    }),
    [],
  );

  return <div ref={host} className="files-side-by-side" data-keys="diff" />;
}

function showComments(merge: MergeView, comments: readonly Comment[]) {
  for (const view of [merge.a, merge.b]) view.dispatch({ effects: setComments.of(comments) });
}

function commentField(side: "old" | "new", open: (comment: Comment) => void): Extension {
  return StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(shown, transaction) {
      for (const effect of transaction.effects) {
        if (!effect.is(setComments)) continue;
        const { doc } = transaction.state;
        const made: Range<Decoration>[] = effect.value
          .filter((one) => one.side === side && one.line <= doc.lines)
          .map((one) =>
            Decoration.widget({ widget: new CommentWidget(one, open), block: true, side: 1 }).range(
              doc.line(one.line).to,
            ),
          );
        return Decoration.set(made, true);
      }
      return shown.map(transaction.changes);
    },
    provide: (field) => EditorView.decorations.from(field),
  });
}
