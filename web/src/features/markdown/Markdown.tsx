import { isValidElement, memo, type ReactElement, type ReactNode, useDeferredValue, useMemo, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { CopyButton } from "../../ui/CopyButton";
import { PlainText } from "../../ui/PlainText";
import { PlainTextBoundary } from "../../ui/PlainTextBoundary";
import { filePath, followLink } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { codeOf, splitBlocks } from "./blocks.logic";
import { CodeBlock } from "./CodeBlock";
import { blocksWithin, FIRST_LENGTH, isTooComplex, PAGE_LENGTH } from "./limits.logic";
import { linkTarget, misleadingHost } from "./links.logic";
import "./markdown.css";

const PLUGINS = [remarkGfm];

/** The text of elements. The depth of a block is limited, so this ends. */
function plainText(children: ReactNode): string {
  if (typeof children === "string" || typeof children === "number") return String(children);
  if (Array.isArray(children)) return children.map(plainText).join("");
  return isValidElement<{ children?: ReactNode }>(children) ? plainText(children.props.children) : "";
}

function Link({ href, children }: { href: string; children: ReactNode }) {
  const target = linkTarget(href);
  if (target.kind === "none") return <span className="markdown-no-link">{children}</span>;
  if (target.kind === "file") {
    const to = filePath(target.path);
    return (
      <a href={to} title={target.path} onClick={(event) => followLink(event, to)}>
        {children}
      </a>
    );
  }
  const host = misleadingHost(plainText(children), target);
  return (
    <>
      <a href={target.href} target="_blank" rel="noopener noreferrer" title={target.href}>
        {children}
      </a>
      {host && <span className="markdown-host"> (opens {visibleText(host)})</span>}
    </>
  );
}

/** The elements of a message. Raw HTML and remote images are not among them. */
function components(live: boolean): Components {
  return {
    a: ({ href, children }) => <Link href={href ?? ""}>{children}</Link>,
    img: ({ src, alt }) => <Link href={typeof src === "string" ? src : ""}>[image{alt ? `: ${alt}` : ""}]</Link>,
    input: ({ checked }) => (
      <span role="img" aria-label={checked ? "done" : "to do"}>
        {checked ? "☑" : "☐"}
      </span>
    ),
    // The page has higher headings of its own.
    h1: ({ children }) => <h3 className="markdown-heading-1">{children}</h3>,
    h2: ({ children }) => <h4 className="markdown-heading-2">{children}</h4>,
    h3: ({ children }) => <h5 className="markdown-heading-3">{children}</h5>,
    h4: ({ children }) => <h6 className="markdown-heading-3">{children}</h6>,
    h5: ({ children }) => <h6 className="markdown-heading-3">{children}</h6>,
    h6: ({ children }) => <h6 className="markdown-heading-3">{children}</h6>,
    code: ({ children }) => <code>{visibleText(plainText(children))}</code>,
    table: ({ children }) => (
      <div className="markdown-table" tabIndex={0} role="group" aria-label="Table">
        <table>{children}</table>
      </div>
    ),
    pre: ({ children }) => {
      const code = isValidElement(children)
        ? (children as ReactElement<{ className?: string; children?: ReactNode }>).props
        : {};
      const language = /language-([\w+#.-]{1,30})/.exec(code.className ?? "")?.[1] ?? "";
      return <CodeBlock text={plainText(code.children).replace(/\n$/, "")} language={language} live={live} />;
    },
  };
}

const SETTLED = components(false);
const LIVE = components(true);
// `linkTarget` decides where links and images may lead.
const asIs = (url: string) => url;

const Block = memo(function Block({ text, live }: { text: string; live: boolean }) {
  const code = codeOf(text);
  if (code !== null) return <CodeBlock text={code.text} language={code.language} live={live} />;
  if (isTooComplex(text)) return <PlainText text={text} note="This part is too complex to format." />;
  return (
    <PlainTextBoundary text={text}>
      <ReactMarkdown remarkPlugins={PLUGINS} components={live ? LIVE : SETTLED} urlTransform={asIs}>
        {text}
      </ReactMarkdown>
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
