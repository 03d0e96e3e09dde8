/**
 * Makes the documentation site from docs/: static pages without inline script or style, with relative links only.
 *
 *   node web/site/build.mjs OUT
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createElement as h } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import Markdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { escapeHtml, plainText, slugOf, titleOf } from "./text.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const DOCS = resolve(HERE, "../../docs");
/** The pages of the site, in their order. Each is a file below docs/. */
const SECTIONS = JSON.parse(readFileSync(join(HERE, "contents.json"), "utf8"));
const PAGES = SECTIONS.flatMap((section) => section.pages.map((page) => ({ ...page, section: section.title })));
const KNOWN = new Set(PAGES.map((page) => page.source));

/** Where a page of docs/ is on the site. */
const addressOf = (source) => source.replace(/\.md$/, ".html");

/** A link of a page as a link of the site. Null for a file that is not on the site. */
function linkOf(from, href, images) {
  if (/^[a-z]+:/.test(href) || href.startsWith("#")) return href;
  const [path, anchor = ""] = href.split("#");
  const target = posix.normalize(posix.join(posix.dirname(from), path));
  const suffix = anchor === "" ? "" : `#${anchor}`;
  if (KNOWN.has(target)) return relative(from, addressOf(target)) + suffix;
  if (/^images\/[\w-]+\.png$/.test(target) && existsSync(join(DOCS, target))) {
    images.add(target);
    return relative(from, target);
  }
  if (/^(openapi\.json|freehold\.schema\.json|restore-backup\.py)$/.test(target)) {
    images.add(target);
    return relative(from, target);
  }
  return null;
}

function relative(from, to) {
  return posix.relative(posix.dirname(from), to) || posix.basename(to);
}

/** Each heading with the text that follows it, for the table of contents and the search. */
function sectionsOf(source) {
  const found = [];
  let inCode = false;
  for (const line of source.split("\n")) {
    if (/^\s*```/.test(line)) inCode = !inCode;
    const heading = inCode ? null : /^(#{1,4})\s+(.*)$/.exec(line);
    if (heading)
      found.push({ level: heading[1].length, title: plainText(heading[2]), id: slugOf(heading[2]), text: "" });
    else if (found.length > 0) found.at(-1).text += `${line} `;
  }
  return found;
}

function render(page, source, assets) {
  const missing = [];
  let tables = 0;
  const heading = (level) =>
    function Heading({ children, node }) {
      const text = textOf(node);
      return h(`h${level}`, { id: slugOf(isCode(node) ? `\`${text}\`` : text) }, children);
    };
  const components = {
    h1: heading(1),
    h2: heading(2),
    h3: heading(3),
    h4: heading(4),
    a: function Link({ href, children }) {
      const to = linkOf(page.source, href ?? "", assets);
      if (to === null) missing.push(href);
      return to === null ? h("span", null, children) : h("a", { href: to }, children);
    },
    img: function Image({ src, alt }) {
      const to = linkOf(page.source, src ?? "", assets);
      return to === null ? null : h("img", { src: to, alt: alt ?? "", loading: "lazy" });
    },
    table: function Table({ children }) {
      return h(
        "div",
        { className: "table", tabIndex: 0, role: "region", "aria-label": `Table ${++tables}` },
        h("table", null, children),
      );
    },
    th: function Head({ children, style }) {
      return h(children === undefined ? "td" : "th", { style }, children);
    },
    pre: function Block({ children }) {
      return h("pre", { tabIndex: 0 }, children);
    },
  };
  const body = renderToStaticMarkup(h(Markdown, { remarkPlugins: [remarkGfm], components }, source));
  return { body, missing };
}

const textOf = (node) => (node.value ?? "") + (node.children ?? []).map(textOf).join("");
const isCode = (node) => node.children?.length === 1 && node.children[0].tagName === "code";

function navigation(page) {
  return SECTIONS.map((section) => {
    const rows = section.pages
      .map((one) => {
        const current = one.source === page.source ? ' aria-current="page"' : "";
        return `<li><a href="${relative(page.source, addressOf(one.source))}"${current}>${escapeHtml(one.title)}</a></li>`;
      })
      .join("");
    return `<p class="section">${escapeHtml(section.title)}</p><ul>${rows}</ul>`;
  }).join("");
}

function contents(sections) {
  const rows = sections.filter((one) => one.level === 2);
  if (rows.length < 3) return "";
  const links = rows.map((one) => `<li><a href="#${one.id}">${escapeHtml(one.title)}</a></li>`).join("");
  return `<nav class="contents" aria-label="On this page"><p class="section">On this page</p><ul>${links}</ul></nav>`;
}

function neighbours(page) {
  const at = PAGES.findIndex((one) => one.source === page.source);
  const link = (one, word) =>
    one === undefined
      ? "<span></span>"
      : `<a href="${relative(page.source, addressOf(one.source))}"><span class="quiet">${word}</span> ${escapeHtml(one.title)}</a>`;
  return `<nav class="neighbours" aria-label="Pages before and after">${link(PAGES[at - 1], "Before:")}${link(PAGES[at + 1], "Next:")}</nav>`;
}

function layout(page, body, sections) {
  const at = (path) => relative(page.source, path);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(page.title)} · Freehold</title>
<link rel="icon" href="${at("icon.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="${at("site.css")}">
<script src="${at("site.js")}" defer></script>
</head>
<body data-root="${at("index.html").replace(/index\.html$/, "")}">
<a class="skip" href="#page">Skip to the page</a>
<header>
<a class="brand" href="${at("index.html")}"><img src="${at("icon.svg")}" alt="" width="24" height="24"> Freehold</a>
<div class="search" role="search"><input type="search" aria-label="Search the documentation" placeholder="Search" autocomplete="off" aria-controls="found"><div id="found" hidden></div></div>
</header>
<details class="menu"><summary>All pages</summary><nav aria-label="All pages">${navigation(page)}</nav></details>
<div class="columns">
<nav class="pages" aria-label="Documentation">${navigation(page)}</nav>
<main id="page" tabindex="-1"><article>${body}</article>${neighbours(page)}</main>
${contents(sections)}
</div>
</body>
</html>
`;
}

function build(out) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const assets = new Set();
  const index = [];
  const lost = [];
  for (const page of PAGES) {
    const source = readFileSync(join(DOCS, page.source), "utf8").replaceAll(/<!--.*?-->\n?/gs, "");
    const sections = sectionsOf(source);
    const { body, missing } = render(page, source, assets);
    lost.push(
      ...missing
        .filter(
          (href) =>
            /\.md(#|$)/.test(href) &&
            !/^(\.\.\/)*(README|CHANGELOG|CONTRIBUTING|SECURITY)\.md/.test(href) &&
            !/adr\/|reviews\//.test(href),
        )
        .map((href) => `${page.source}: ${href}`),
    );
    const place = join(out, addressOf(page.source));
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, layout({ ...page, title: page.title || titleOf(source) }, body, sections));
    for (const section of sections)
      index.push([
        page.title,
        section.title,
        `${addressOf(page.source)}#${section.id}`,
        plainText(section.text).slice(0, 1_500),
      ]);
  }
  if (lost.length > 0) throw new Error(`These links lead nowhere:\n${lost.join("\n")}`);
  for (const asset of assets) cpSync(join(DOCS, asset), join(out, asset), { recursive: true });
  for (const file of ["site.css", "site.js"]) cpSync(join(HERE, file), join(out, file));
  cpSync(join(HERE, "../public/icon.svg"), join(out, "icon.svg"));
  writeFileSync(join(out, "search.json"), JSON.stringify(index));
}

build(resolve(process.argv[2] ?? "dist/docs"));
