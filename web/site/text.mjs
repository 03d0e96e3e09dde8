/** The text of a page, without the signs of Markdown. */

export const escapeHtml = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

export const plainText = (markdown) =>
  markdown
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*]|^\|?[\s:|-]+\|$/gm, "")
    .replaceAll("|", " ")
    .replaceAll(/\s+/g, " ")
    .trim();

/** The anchor of a heading, as GitHub makes it. A heading that is a code, such as an error code, keeps its dots. */
export function slugOf(heading) {
  const code = /^`([\w.-]+)`$/.exec(heading.trim());
  if (code) return code[1];
  return plainText(heading)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

export const titleOf = (markdown) => plainText(/^#\s+(.*)$/m.exec(markdown)?.[1] ?? "");
