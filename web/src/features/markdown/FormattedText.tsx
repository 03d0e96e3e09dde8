import { isValidElement, type ReactElement, type ReactNode } from "react";
import formatMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { filePath, followLink } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { CodeBlock } from "./CodeBlock";
import { linkTarget, misleadingHost } from "./links.logic";

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

const format = (text: string, components: Components): ReactElement =>
  formatMarkdown({ children: text, remarkPlugins: PLUGINS, components, urlTransform: asIs });

const MAX_REMEMBERED = 500;
const MAX_REMEMBERED_LENGTH = 4_000;
/** Blocks that were formatted, the oldest first. A session that is opened again is not parsed again. */
const remembered = new Map<string, ReactElement>();

/** A block of Markdown as elements. It is its own chunk, because the parser is large. */
export default function FormattedText({ text, live }: { text: string; live: boolean }): ReactElement {
  if (live) return format(text, LIVE);
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const formatted = format(text, SETTLED);
  if (text.length > MAX_REMEMBERED_LENGTH) return formatted;
  remembered.set(text, formatted);
  const [oldest] = remembered.keys();
  if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
  return formatted;
}
