import { memo } from "react";
import { Icon } from "../../../ui/Icon";
import { visibleText } from "../../../ui/visibleText";
import { Markdown } from "../../markdown/Markdown";
import { PromptItem } from "./PromptItem";
import { ToolCard } from "./ToolCard";
import { TurnSummary } from "./TurnSummary";
import { approvalText, type Item } from "./transcript.logic";
import { useFold } from "./transcriptContext";

/** One item of a transcript. */
export const TranscriptItem = memo(function TranscriptItem({ item }: { item: Item }) {
  switch (item.kind) {
    case "prompt":
      return <PromptItem item={item} />;
    case "message":
      return (
        <article className="conversation-message" aria-label="Agent">
          <Markdown text={item.text} live={item.live} />
          {item.cut && <p className="quiet">This message was too long. The rest was not stored.</p>}
        </article>
      );
    case "thought":
      return <Thought item={item} />;
    case "tool":
      return <ToolCard item={item} />;
    case "plan":
      return <Plan item={item} />;
    case "approval":
      return (
        <p className="conversation-aside">
          {approvalText(item)}: <span className="path">{visibleText(item.title)}</span>
          {item.note && <> “{item.note}”</>}
        </p>
      );
    case "ended":
      return <TurnSummary item={item} />;
    case "error":
      return (
        <section role="group" className="notice" aria-label="Error">
          <p>
            <strong>{visibleText(item.text)}</strong>
          </p>
          {item.hint && <p>{visibleText(item.hint)}</p>}
        </section>
      );
    case "rewound":
      return <p className="conversation-aside">The conversation was rewound to here</p>;
  }
});

function Thought({ item }: { item: Extract<Item, { kind: "message" | "thought" }> }) {
  const [open, toggle] = useFold(item.key);
  const lines = item.text.trim().split("\n");
  const preview = (item.live ? lines.at(-1) : lines[0]) ?? "";
  return (
    <section role="group" className="conversation-thought" aria-label="Thought">
      <button type="button" className="conversation-fold" aria-expanded={open} onClick={toggle}>
        <Icon name="thought" size={16} />
        <span className="conversation-fold-title">
          {item.live ? "Thinking" : "Thought"}
          {!open && <span className="conversation-thought-preview"> {preview.slice(0, 200)}</span>}
        </span>
        <Icon name="chevron" size={14} />
      </button>
      {open && (
        <div className="conversation-thought-text" dir="auto">
          {item.text}
        </div>
      )}
    </section>
  );
}

const STEP_STATES: Record<string, string> = { completed: "done", in_progress: "in progress", pending: "to do" };

function Plan({ item }: { item: Extract<Item, { kind: "plan" }> }) {
  const done = item.entries.filter((entry) => entry.status === "completed").length;
  return (
    <section role="group" className="conversation-plan" aria-label="Plan">
      <p className="conversation-plan-head">
        <Icon name="plan" size={16} /> <strong>Plan</strong>
        <span className="quiet">
          {done} of {item.entries.length} done
        </span>
      </p>
      <ol>
        {item.entries.map((entry, index) => (
          <li key={index} data-status={entry.status}>
            <span className="conversation-plan-mark" role="img" aria-label={STEP_STATES[entry.status] ?? entry.status}>
              {entry.status === "completed" && <Icon name="check" size={12} />}
            </span>
            <span>{visibleText(entry.content)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
