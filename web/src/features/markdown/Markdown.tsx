import { isValidElement, memo, useMemo, type ReactElement, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { unhidden } from "../../ui/unhidden";
import { go } from "../shell/route";
import { blocksOf } from "./blocks.logic";
import { Code } from "./Code";
import { hostToTell, targetOf } from "./links.logic";
import "./markdown.css";

const PLUGINS = [remarkGfm];

function words(children: ReactNode): string {
  if (typeof children === "string" || typeof children === "number") return String(children);
  if (Array.isArray(children)) return children.map(words).join("");
  return isValidElement<{ children?: ReactNode }>(children) ? words(children.props.children) : "";
}

function Link({ href, children }: { href: string; children: ReactNode }) {
  const target = targetOf(href);
  if (target.kind === "none") return <span className="no-link">{children}</span>;
  if (target.kind === "file") {
    const to = `/files?path=${encodeURIComponent(target.path)}`;
    return (
      <a
        href={to}
        title={target.path}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          go(to);
        }}
      >
        {children}
      </a>
    );
  }
  const host = hostToTell(words(children), target);
  return (
    <>
      <a href={target.href} target="_blank" rel="noopener noreferrer" title={target.href}>
        {children}
      </a>
      {host && <span className="leads-to"> (leads to {unhidden(host)})</span>}
    </>
  );
}

/** Only what a message is made of: no raw HTML, no picture from elsewhere, nothing to press but links and "Copy". */
function parts(live: boolean): Components {
  return {
    a: ({ href, children }) => <Link href={href ?? ""}>{children}</Link>,
    img: ({ src, alt }) => <Link href={typeof src === "string" ? src : ""}>[image{alt ? `: ${alt}` : ""}]</Link>,
    input: ({ checked }) => <span role="img" aria-label={checked ? "done" : "open"}>{checked ? "☑" : "☐"}</span>,
    // The page has headings of its own above these.
    h1: ({ children }) => <h3 className="heading-1">{children}</h3>,
    h2: ({ children }) => <h4 className="heading-2">{children}</h4>,
    h3: ({ children }) => <h5 className="heading-3">{children}</h5>,
    h4: ({ children }) => <h6 className="heading-3">{children}</h6>,
    h5: ({ children }) => <h6 className="heading-3">{children}</h6>,
    h6: ({ children }) => <h6 className="heading-3">{children}</h6>,
    code: ({ children }) => <code>{unhidden(words(children))}</code>,
    table: ({ children }) => (
      <div className="table" tabIndex={0} role="group" aria-label="Table">
        <table>{children}</table>
      </div>
    ),
    pre: ({ children }) => {
      const code = isValidElement(children) ? (children as ReactElement<{ className?: string; children?: ReactNode }>).props : {};
      const language = /language-([\w+#.-]{1,30})/.exec(code.className ?? "")?.[1] ?? "";
      return <Code text={words(code.children).replace(/\n$/, "")} language={language} live={live} />;
    },
  };
}

const SETTLED = parts(false);
const GROWING = parts(true);
// Links and images decide for themselves where they may lead.
const asIs = (url: string) => url;

const Block = memo(function Block({ text, live }: { text: string; live: boolean }) {
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={live ? GROWING : SETTLED} urlTransform={asIs}>
      {text}
    </ReactMarkdown>
  );
});

/** Words of an agent. Those that still come are read piece by piece: what is settled is not drawn again. */
export const Markdown = memo(function Markdown({ text, live = false }: { text: string; live?: boolean }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className="markdown" dir="auto">
      {blocks.map((block, index) => (
        <Block key={index} text={block} live={live && index === blocks.length - 1} />
      ))}
    </div>
  );
});
