import { useMemo, useState } from "react";
import { Icon, type IconName } from "../../../ui/Icon";
import { unhidden } from "../../../ui/unhidden";
import { DiffTable } from "../../history/Diff";
import { Copy } from "../../markdown/Code";
import { workspacePath } from "../../markdown/links.logic";
import { go } from "../../shell/route";
import { useFold, useShared } from "./context";
import { changedLines, countLines } from "./lines.logic";
import { endOf, type Item, type ToolPart } from "./transcript.logic";

type Tool = Extract<Item, { kind: "tool" }>;

const ICONS: Record<string, IconName> = { read: "file", edit: "edit", delete: "trash", move: "link", search: "search", execute: "terminal", think: "thought", fetch: "network", switch_mode: "settings" };
const WORDS: Record<string, string> = { pending: "waiting", in_progress: "running", completed: "done", failed: "failed" };
const TONES: Record<string, string> = { failed: "alarm", in_progress: "leaf", pending: "amber" };

/** One call of a tool: what and how it went on a line, what came of it folded. Everything in it is text. */
export function ToolCard({ item }: { item: Tool }) {
  const { ended } = useShared();
  const edits = useMemo(() => item.parts.flatMap((part) => (part.type === "diff" ? [{ path: part.path, ...changedLines(part.old, part.now) }] : [])), [item.parts]);
  const [open, fold] = useFold(item.key, edits.length > 0);
  const outputs = item.parts.filter((part): part is Extract<ToolPart, { type: "text" }> => part.type === "text");
  const unfinished = item.status !== "completed" && item.status !== "failed";
  const status = unfinished && ended.has(item.turn) ? "stopped" : item.status;
  const count = edits.map((edit) => countLines(edit.lines)).reduce((sum, one) => ({ added: sum.added + one.added, removed: sum.removed + one.removed }), { added: 0, removed: 0 });
  const places = item.locations.filter((path) => !edits.some((edit) => edit.path === path));
  const empty = edits.length === 0 && outputs.length === 0 && item.input === "" && places.length === 0;
  return (
    <section role="group" className="tool" data-status={status} aria-label={`Tool: ${unhidden(item.title)}`}>
      <button className="tool-head" aria-expanded={empty ? undefined : open} disabled={empty} onClick={fold}>
        <Icon name={ICONS[item.does] ?? "tool"} size={16} />
        <span className="tool-title">{unhidden(item.title)}</span>
        {edits.length > 0 && (
          <span className="lines">
            <ins>+{count.added}</ins> <del>−{count.removed}</del>
          </span>
        )}
        {status === "completed" ? (
          <span className="tool-done" role="img" aria-label="done">
            <Icon name="check" size={14} />
          </span>
        ) : (
          <span className="chip" data-tone={TONES[status]}>
            {WORDS[status] ?? status}
          </span>
        )}
        {!empty && <Icon name="chevron" size={14} />}
      </button>
      {open && !empty && (
        <div className="tool-body">
          {places.length > 0 && (
            <p className="tool-places">
              {places.slice(0, 20).map((path) => (
                <Place key={path} path={path} />
              ))}
            </p>
          )}
          {item.input !== "" && <Output text={item.input} label="Given" />}
          {edits.map((edit, index) => (
            <figure key={index} className="tool-edit">
              <figcaption>
                <Place path={edit.path} />
              </figcaption>
              {edit.lines.length === 0 ? <p className="quiet">Nothing in it changed.</p> : <DiffTable lines={edit.lines.map((line) => ({ ...line, text: unhidden(line.text) }))} more={edit.more} />}
            </figure>
          ))}
          {outputs.map((part, index) => (
            <Output key={index} text={part.text} label="Output" />
          ))}
        </div>
      )}
    </section>
  );
}

/** A path inside; one of the workspace leads to Files. */
export function Place({ path }: { path: string }) {
  const file = workspacePath(path);
  if (file === null) return <span className="path">{unhidden(path)}</span>;
  const to = `/files?path=${encodeURIComponent(file)}`;
  return (
    <a
      className="path"
      href={to}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go(to);
      }}
    >
      {unhidden(file)}
    </a>
  );
}

function Output({ text, label }: { text: string; label: string }) {
  const [all, setAll] = useState(false);
  const { shown, hidden } = useMemo(() => endOf(text), [text]);
  const words = unhidden(all ? text : shown);
  return (
    <figure className="tool-output">
      <figcaption>
        <span>{label}</span>
        {hidden > 0 && (
          <button className="text-button" onClick={() => setAll(!all)}>
            {all ? "Show the end" : `Show ${hidden} more lines above`}
          </button>
        )}
        <Copy text={words} />
      </figcaption>
      <pre tabIndex={0} aria-label={label}>
        {words}
      </pre>
    </figure>
  );
}
