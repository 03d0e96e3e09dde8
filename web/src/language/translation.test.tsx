import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { findMessages, isSource, translateSource } from "../../language/messages.mjs";
import german from "./de.json";
import english from "./en.json";
import { translateNodes } from "./nodes";
import { chooseLanguage, translate } from "./translation";

const SRC = dirname(dirname(new URL(import.meta.url).pathname));
const places = (text: string) => [...text.matchAll(/\{\d+\}/g)].map(([place]) => place).sort();
const spaceAround = (text: string) => [/^\s*/.exec(text)?.[0], /\s*$/.exec(text)?.[0]];

test("the catalogue has every text of the page, and no other (npm run messages)", () => {
  const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .sort()
    .map((file) => join(SRC, file));
  const found = files
    .filter(isSource)
    .flatMap((file) => findMessages(readFileSync(file, "utf8"), file).map((one) => one.message));
  expect(english).toEqual([...new Set(found)]);
  expect(english.length).toBeGreaterThan(1_500);
});

test("German has every text of the catalogue, and no other", () => {
  expect(Object.keys(german)).toEqual(english);
});

test("a translation has the places of its text, and the space around it", () => {
  const wrong = Object.entries(german).filter(
    ([text, translated]) =>
      JSON.stringify([places(text), spaceAround(text)]) !==
      JSON.stringify([places(translated), spaceAround(translated)]),
  );
  expect(wrong).toEqual([]);
});

test("the language is the one that was chosen, else the first of the browser's that is there", () => {
  expect(chooseLanguage("de", ["en-US"])).toBe("de");
  expect(chooseLanguage(null, ["fr", "de-AT", "en"])).toBe("de");
  expect(chooseLanguage("klingon", ["fr"])).toBe("en");
  expect(chooseLanguage("constructor", [])).toBe("en");
});

test("values and elements take their places in a text", () => {
  expect(translate("{0} of {1}", 3, "{0}")).toBe("3 of {0}");
  expect(renderToStaticMarkup(translateNodes("Run {0} in {1}.", <b key="b">it</b>, "<i>"))).toBe(
    "Run <b>it</b> in &lt;i&gt;.",
  );
});

const messagesOf = (source: string) => findMessages(source, "one.tsx").map((one) => one.message);

test("what the page shows is found: text between tags as one message, words of attributes, texts in code", () => {
  const page = `const page = <p title="A title" className="A class">Run <b>this</b> {count} times<code>no words</code></p>;`;
  expect(messagesOf(page)).toEqual(["Run {0} {1} times{2}", "A title", "this"]);
  expect(messagesOf(`toast(\`Saved \${name} to disk\`, countOf(3, "file"));`)).toEqual([
    "Saved {0} to disk",
    "file",
    "files",
  ]);
});

test("words that are nothing but small letters are found where they can only be shown", () => {
  const page = `const page = <p title={kind}>{isOpen ? "open" : isOld && \`used \${age}\`}</p>;`;
  expect(messagesOf(page)).toEqual(["open", "used {0}"]);
  expect(messagesOf(`const STATE_WORDS = { ok: "works" }; const TONES = { ok: "leaf" };`)).toEqual(["works"]);
  expect(messagesOf(`const words = translate("for {0}", duration);`)).toEqual(["for {0}"]);
});

test("a noun that is counted is looked up once", () => {
  const source = `const words = countOf(connections, "open connection");`;
  expect(messagesOf(source)).toEqual(["open connection", "open connections"]);
  expect(translateSource(source, "one.tsx")).toBeNull();
});

test("what is not language is left alone: names, keys that are compared, paths, headers, sandboxes", () => {
  const code = `
    import { A } from "Some Module";
    if (event.key === "Escape" || kind === "Some Kind") request("/v1/Some Path", { method: "POST" });
    element.setAttribute("Some Name", "Some Value");
    const frame = <iframe sandbox="allow-scripts allow-forms" style={{ width: \`\${width}px\` }} />;
  `;
  expect(messagesOf(code)).toEqual([]);
  expect(translateSource(code, "one.tsx")).toBeNull();
});

test("a source keeps everything but its texts", () => {
  const source = `const page = <p>Undo <a href="/x">{name}</a> “now”</p>;`;
  expect(translateSource(source, "one.tsx")).toBe(
    `import { translate as __t } from "/src/language/translation.ts";` +
      `import { translateNodes as __n } from "/src/language/nodes.ts";` +
      `const page = <p>{__n("Undo {0} “now”", <a href="/x">{name}</a>)}</p>;`,
  );
});
