import { memo, useDeferredValue, useMemo, useState } from "react";
import { CopyButton } from "../../ui/CopyButton";
import { lazyComponent } from "../../ui/lazyComponent";
import { PlainText } from "../../ui/PlainText";
import { PlainTextBoundary } from "../../ui/PlainTextBoundary";
import { codeOf, splitBlocks } from "./blocks.logic";
import { CodeBlock } from "./CodeBlock";
import { DraftText } from "./DraftText";
import { blocksWithin, FIRST_LENGTH, isTooComplex, PAGE_LENGTH } from "./limits.logic";
import "./markdown.css";

// The parser is most of the code of a conversation. Until it is loaded, the words are shown without it.
const FormattedText = lazyComponent(() => import("./FormattedText"), DraftText);

const Block = memo(function Block({ text, live }: { text: string; live: boolean }) {
  const code = codeOf(text);
  if (code !== null) return <CodeBlock text={code.text} language={code.language} live={live} />;
  if (isTooComplex(text)) return <PlainText text={text} note="This part is too complex to format." />;
  return (
    <PlainTextBoundary text={text}>
      <FormattedText text={text} live={live} />
    </PlainTextBoundary>
  );
});

/** The Markdown of an agent's message. While it grows, only the last block is parsed again. */
export const Markdown = memo(function Markdown({ text, live = false }: { text: string; live?: boolean }) {
  const blocks = useMemo(() => splitBlocks(text), [text]);
  const { first, end, showMore } = useShownBlocks(blocks, live);
  return (
    <div className="markdown" data-live={live || undefined} dir="auto">
      {live && showMore !== null && <p className="quiet">The start of this message is shown when it is complete.</p>}
      {blocks.slice(first, end).map((block, index) => (
        <Block key={first + index} text={block} live={live && first + index === blocks.length - 1} />
      ))}
      {showMore !== null && !live && (
        <p className="markdown-more">
          <button type="button" className="text-button" onClick={showMore}>
            Show more of this message
          </button>
          <CopyButton text={text} label="Copy all" />
        </p>
      )}
    </div>
  );
});

interface ShownBlocks {
  first: number;
  end: number;
  /** Shows another page; null when there is none. */
  showMore: (() => void) | null;
}

/**
 * The blocks that are drawn: as many as one page holds, and more when the owner asks. A message that is being written
 * shows its end, a complete one its start.
 */
function useShownBlocks(blocks: readonly string[], live: boolean): ShownBlocks {
  const [pages, setPages] = useState(1);
  const ordered = live ? blocks.toReversed() : blocks;
  // React draws a deferred value piece by piece, and lets the owner act in between.
  const wanted = blocksWithin(ordered, pages * PAGE_LENGTH);
  const count = useDeferredValue(wanted, blocksWithin(ordered, FIRST_LENGTH));
  const showMore = wanted < blocks.length ? () => setPages(pages + 1) : null;
  if (live) return { first: Math.max(0, blocks.length - count), end: blocks.length, showMore };
  return { first: 0, end: Math.min(count, blocks.length), showMore };
}
