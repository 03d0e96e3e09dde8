import { visibleText } from "../../ui/visibleText";
import { draftOf } from "./draft.logic";

/** A block of Markdown without its marks, until the parser is loaded. It has no links. */
export function DraftText({ text }: { text: string }) {
  const { kind, level, lines } = draftOf(text);
  if (kind === "heading")
    return <p className={`markdown-heading-${Math.min(level, 3)}`}>{visibleText(lines.join(" "))}</p>;
  if (kind === "paragraph") return <p>{visibleText(lines.join(" "))}</p>;
  return <p className="markdown-draft-lines">{visibleText(lines.join("\n"))}</p>;
}
