import { memo } from "react";
import { Icon } from "../../../ui/Icon";
import { unhidden } from "../../../ui/unhidden";
import { Markdown } from "../../markdown/Markdown";
import { useFold } from "./context";
import { PromptPart } from "./PromptPart";
import { ToolCard } from "./ToolCard";
import type { Item } from "./transcript.logic";
import { TurnEnd } from "./TurnEnd";

/** One thing of a transcript. */
export const Part = memo(function Part({ item }: { item: Item }) {
  switch (item.kind) {
    case "prompt":
      return <PromptPart item={item} />;
    case "message":
      return (
        <article className="said" data-live={item.live || undefined} aria-label="Agent">
          <Markdown text={item.text} live={item.live} />
          {item.cut && <p className="quiet">It went on; the rest was not kept.</p>}
        </article>
      );
    case "thought":
      return <Thought item={item} />;
    case "tool":
      return <ToolCard item={item} />;
    case "plan":
      return <Plan item={item} />;
    case "approval":
      return <Decision item={item} />;
    case "ended":
      return <TurnEnd item={item} />;
    case "error":
      return (
        <section role="group" className="notice" aria-label="Error">
          <p>
            <strong>{unhidden(item.text)}</strong>
          </p>
          {item.hint && <p>{unhidden(item.hint)}</p>}
        </section>
      );
    case "rewound":
      return <p className="aside">The conversation was taken back to here</p>;
  }
});

function Thought({ item }: { item: Extract<Item, { kind: "message" | "thought" }> }) {
  const [open, fold] = useFold(item.key);
  const lines = item.text.trim().split("\n");
  const hint = (item.live ? lines.at(-1) : lines[0]) ?? "";
  return (
    <section role="group" className="thought" aria-label="Thought">
      <button className="tool-head" aria-expanded={open} onClick={fold}>
        <Icon name="thought" size={16} />
        <span className="tool-title">
          {item.live ? "Thinking" : "Thought"}
          {!open && <span className="thought-hint"> {hint.slice(0, 200)}</span>}
        </span>
        <Icon name="chevron" size={14} />
      </button>
      {open && <div className="thought-body" dir="auto">{item.text}</div>}
    </section>
  );
}

const STEPS: Record<string, string> = { completed: "done", in_progress: "now", pending: "to do" };

function Plan({ item }: { item: Extract<Item, { kind: "plan" }> }) {
  const done = item.entries.filter((entry) => entry.status === "completed").length;
  return (
    <section role="group" className="plan" aria-label="Plan">
      <p className="plan-head">
        <Icon name="plan" size={16} /> <strong>Plan</strong>
        <span className="quiet">
          {done} of {item.entries.length} done
        </span>
      </p>
      <ol>
        {item.entries.map((entry, index) => (
          <li key={index} data-status={entry.status}>
            <span className="plan-mark" role="img" aria-label={STEPS[entry.status] ?? entry.status}>
              {entry.status === "completed" && <Icon name="check" size={12} />}
            </span>
            <span>{unhidden(entry.content)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

const DECIDED: Record<string, string> = {
  once: "You allowed this once",
  session: "You allowed this for the session",
  always: "You always allow this",
  reject: "You said no",
};

function Decision({ item }: { item: Extract<Item, { kind: "approval" }> }) {
  const said = item.state === "withdrawn" ? "Asked, and not answered" : item.asked ? (item.answer === "reject" ? "You did not answer" : "You answered") : item.state === "granted" ? "Allowed by a rule of yours" : (DECIDED[item.answer] ?? item.state);
  return (
    <p className="aside">
      {said}: <span className="path">{unhidden(item.title)}</span>
      {item.note && <> “{item.note}”</>}
    </p>
  );
}
