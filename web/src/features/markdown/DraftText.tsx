import { visibleText } from "../../ui/visibleText";
import { type DraftPiece, draftOf } from "./draft.logic";

/** A block of Markdown without its marks, until the parser is loaded. It has no links. */
export function DraftText({ text }: { text: string }) {
  const { kind, level, lines } = draftOf(text);
  const words = lines.map((pieces, index) => (
    <DraftLine key={index} pieces={pieces} end={index === lines.length - 1 ? "" : kind === "lines" ? "\n" : " "} />
  ));
  if (kind === "heading") return <p className={`markdown-heading-${Math.min(level, 3)}`}>{words}</p>;
  return <p className={kind === "lines" ? "markdown-draft-lines" : undefined}>{words}</p>;
}

function DraftLine({ pieces, end }: { pieces: readonly DraftPiece[]; end: string }) {
  return (
    <>
      {pieces.map((piece, index) => (
        <DraftWords key={index} piece={piece} />
      ))}
      {end}
    </>
  );
}

/** Bold words, code and links look as they do later, so that a line keeps its size. */
function DraftWords({ piece: { kind, text } }: { piece: DraftPiece }) {
  const shown = visibleText(text);
  switch (kind) {
    case "strong":
      return <strong>{shown}</strong>;
    case "code":
      return <code>{shown}</code>;
    case "link":
      return <span className="markdown-draft-link">{shown}</span>;
    case "text":
      return shown;
  }
}
