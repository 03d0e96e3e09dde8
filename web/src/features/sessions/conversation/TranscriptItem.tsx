import { memo } from "react";
import { AboutError } from "../../../ui/AboutError";
import { ErrorBoundary } from "../../../ui/ErrorBoundary";
import { Icon } from "../../../ui/Icon";
import { PlainText } from "../../../ui/PlainText";
import { shortLine } from "../../../ui/plainText.logic";
import { visibleText } from "../../../ui/visibleText";
import { Markdown } from "../../markdown/Markdown";
import { searchableText } from "./find.logic";
import { PicturesItem } from "./PicturesItem";
import { Plan } from "./Plan";
import { PromptItem } from "./PromptItem";
import { ToolCard } from "./ToolCard";
import { TurnSummary } from "./TurnSummary";
import { approvalText, type Item } from "./transcript.logic";
import { useFold } from "./transcriptContext";

const MAX_PREVIEW = 200;

/** One item of a transcript. An item that cannot be drawn is shown as plain text, and the others stay. */
export const TranscriptItem = memo(function TranscriptItem({ item }: { item: Item }) {
  return (
    <ErrorBoundary
      name="This item"
      content={item}
      fallback={<PlainText text={searchableText(item)} note="This could not be drawn. It is shown as plain text." />}
    >
      <ItemContent item={item} />
    </ErrorBoundary>
  );
});

function ItemContent({ item }: { item: Item }) {
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
    case "pictures":
      return <PicturesItem item={item} />;
    case "plan":
      return <Plan item={item} />;
    case "approval":
      return (
        <p className="conversation-aside">
          {approvalText(item)}: <span className="path">{visibleText(shortLine(item.title))}</span>
          {item.note && <> “{shortLine(item.note)}”</>}
        </p>
      );
    case "ended":
      return <TurnSummary item={item} />;
    case "error":
      return (
        <section role="group" className="notice" aria-label="Error">
          <p>
            <strong>{visibleText(shortLine(item.text))}</strong>
          </p>
          {item.hint && <p>{visibleText(shortLine(item.hint))}</p>}
          <AboutError code={item.code} />
        </section>
      );
    case "rewound":
      return <p className="conversation-aside">The conversation was rewound to here</p>;
  }
}

function Thought({ item }: { item: Extract<Item, { kind: "message" | "thought" }> }) {
  const [open, toggle] = useFold(item.key);
  const preview = (item.live ? item.text.slice(-MAX_PREVIEW) : item.text.slice(0, MAX_PREVIEW)).trim().split("\n");
  return (
    <section role="group" className="conversation-thought" aria-label="Thought">
      <button type="button" className="conversation-fold" aria-expanded={open} onClick={toggle}>
        <Icon name="thought" size={16} />
        <span className="conversation-fold-title">
          {item.live ? "Thinking" : "Thought"}
          {!open && (
            <span className="conversation-thought-preview"> {(item.live ? preview.at(-1) : preview[0]) ?? ""}</span>
          )}
        </span>
        <Icon name="chevron" size={14} />
      </button>
      {open && (
        <div className="conversation-thought-text">
          <PlainText text={item.text} label="Text" />
        </div>
      )}
    </section>
  );
}
