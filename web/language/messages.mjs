/**
 * Finds the words that the page shows, in its sources, and makes them translatable.
 *
 * A message is its English text. What is put into it has a number: "{0} of {1} files". Found are: the text of JSX; the
 * attributes of JSX that are shown or read out; texts in code that begin with a capital letter or have a space, unless
 * they are compared, are a name of something, or are in a call of `UNSHOWN_CALLS`; what a condition between two tags
 * gives; the values of tables whose name ends in `WORDS`; the nouns of `countOf`; and what is given to `translate`.
 */
import { parseAst } from "rolldown/parseAst";

/** Attributes whose text nobody sees. */
const UNSHOWN_ATTRIBUTES =
  /^(className|class|id|href|src|type|role|name|key|rel|target|method|action|autoComplete|autoCapitalize|inputMode|enterKeyHint|d|viewBox|fill|stroke|style|htmlFor|form|pattern|accept|sandbox|allow|step|min|max|data-.*|aria-(keyshortcuts|current|live|haspopup|controls|labelledby|describedby|orientation|autocomplete|sort|relevant|pressed|expanded))$/;

/** Attributes whose text is always words. In the others a text must look like one for the owner. */
const SHOWN_ATTRIBUTES = /^(aria-label|aria-valuetext|title|placeholder|label|alt|text|hint|description)$/;

/** Elements whose text is not language. */
const UNSHOWN_ELEMENTS = /^(code|kbd|pre|samp|style)$/;

/** Calls whose texts are not for the owner, by the name of what is called. */
const UNSHOWN_CALLS =
  /^(Error|TypeError|RangeError|RegExp|URL|Set|Map|Event|CustomEvent|DOMException|querySelector|querySelectorAll|closest|matches|getItem|setItem|removeItem|addEventListener|removeEventListener|includes|startsWith|endsWith|indexOf|split|join|replace|replaceAll|test|match|matchMedia|setAttribute|getAttribute|getElementById|createElement|warn|log|debug|append|get|set|has|glob|register|postMessage|define|setProperty|translate)$/;

/** Texts in code that look like words and are none: headers, methods, names of keys and of formats. */
const UNSHOWN_TEXT =
  /^(Accept|Authorization|Content-[\w-]+|Bearer .*|Escape|Enter|Tab|Shift|Control|Meta|Alt|Delete|Backspace|Home|End|PageUp|PageDown|Arrow\w+|F\d+|[A-Z]+|[A-Z]\w*[A-Z]\w*|Ctrl K|Basic .*|DPoP .*|allow-[\w -]+|Infinity|NaN|Mod-.*|Mac|Digit\d|Key[A-Z]|use strict)$/;

/** Whether a text has a word. Braces are for what is put into a message. */
const hasWord = (text) => /\p{L}\p{Ll}/u.test(text) && !/[{}]/.test(text);

/** Whether a text in code is one for the owner. */
function isShown(text) {
  if (!hasWord(text) || UNSHOWN_TEXT.test(text) || /[\p{Cc}]|^inset /u.test(text.replaceAll("\n", ""))) return false;
  if (
    /^[/.#@$&?<[(]|^--|^https?:|^[\w-]+\/[\w.+*-]+(;|$)|[{}<>|=\\]|^\w+\(|^(var|calc|rgb|color-mix|max|min)\b|: \w+;/.test(
      text,
    )
  )
    return false;
  return /^[\p{Lu}“]/u.test(text) || (/\p{L}{2} |\p{L}, /u.test(text) && / \p{L}/u.test(text));
}

/** The text of JSX as React shows it: line ends and what is around them are not seen. */
function jsxText(raw) {
  const lines = raw.split(/\r?\n/);
  const kept = lines.map((line, at) => {
    let text = line;
    if (at > 0) text = text.replace(/^[ \t]+/, "");
    if (at < lines.length - 1) text = text.replace(/[ \t]+$/, "");
    return text;
  });
  return kept.filter((line) => line !== "").join(" ");
}

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };
const decode = (text) => text.replaceAll(/&(\w+);/g, (whole, name) => ENTITIES[name] ?? whole);

function calleeName(node) {
  const callee = node.callee;
  return callee?.type === "Identifier" ? callee.name : callee?.type === "MemberExpression" ? callee.property.name : "";
}

/** Whether a text at this place in the code is never shown. */
function isUnshownPlace(node, parents) {
  const parent = parents.at(-1);
  if (parent === undefined) return true;
  switch (parent.type) {
    case "ImportDeclaration":
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration":
    case "ImportExpression":
    case "ExpressionStatement":
    case "SwitchCase":
    case "TSLiteralType":
    case "TSEnumMember":
    case "TaggedTemplateExpression":
      return true;
    case "BinaryExpression":
      if (/^([!=]==?|in)$/.test(parent.operator)) return true;
      break;
    case "MemberExpression":
      return true;
    case "Property":
    case "PropertyDefinition":
      if (parent.key === node) return true;
      if (
        /^(id|key|path|kind|code|type|name|method|className|role|class|slot|feature|load|icon|guide|run|credentials|mode|cache|behavior|block|inline|parent|backgroundColor|color|font\w*|padding|margin|border|\w*[cC]olor|outline|height|width|dateStyle|timeStyle|weekday|month|day|hour|minute)$/.test(
          parent.key.name ?? parent.key.value ?? "",
        )
      )
        return true;
      break;
    case "NewExpression":
    case "CallExpression":
      if (UNSHOWN_CALLS.test(calleeName(parent))) return true;
      break;
    case "JSXAttribute":
      return UNSHOWN_ATTRIBUTES.test(attributeName(parent));
  }
  // Inside of a call or an attribute that shows nothing, nothing is shown.
  for (let at = parents.length - 1; at >= 0; at -= 1) {
    const one = parents[at];
    if (one.type === "JSXAttribute" && UNSHOWN_ATTRIBUTES.test(attributeName(one))) return true;
    if (one.type === "ThrowStatement") return false;
    if (/^TS(TypeAliasDeclaration|InterfaceDeclaration|TypeAnnotation|LiteralType|TypeReference)$/.test(one.type))
      return true;
    if (one.type === "ArrayExpression" && ["NewExpression", "MemberExpression"].includes(parents[at - 1]?.type ?? "")) {
      const user = parents[at - 1];
      if (
        user.type === "MemberExpression"
          ? UNSHOWN_CALLS.test(user.property.name ?? "")
          : UNSHOWN_CALLS.test(calleeName(user))
      )
        return true;
    }
    if (/Function|Statement|JSXElement|Program/.test(one.type)) break;
  }
  return false;
}

/** Whether what is at this place is drawn as it is: it is between two tags, or a condition there gives it. */
function isDrawn(node, parents) {
  let inner = node;
  for (let at = parents.length - 1; at > 0; at -= 1) {
    const one = parents[at];
    if (one.type === "JSXExpressionContainer") return /^JSX(Element|Fragment)$/.test(parents[at - 1].type);
    const isGiven =
      (one.type === "ConditionalExpression" && one.test !== inner) ||
      (one.type === "LogicalExpression" && one.right === inner) ||
      one.type === "ParenthesizedExpression";
    if (!isGiven) return false;
    inner = one;
  }
  return false;
}

/** Whether a text is a value of a table of words. */
function isInTable(node, parents) {
  const [table, object, property] = [parents.at(-3), parents.at(-2), parents.at(-1)];
  return (
    property?.type === "Property" &&
    property.value === node &&
    object.type === "ObjectExpression" &&
    table?.type === "VariableDeclarator" &&
    /WORDS$/.test(table.id.name)
  );
}

const attributeName = (node) => (node.name.type === "JSXNamespacedName" ? "data-" : node.name.name);

/** The messages of a source, with what replaces each: texts, and ranges of the source that stay. */
export function findMessages(source, file) {
  const program = parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" });
  const found = [];
  const add = (node, message, parts) => found.push({ start: node.start, end: node.end, message, parts });
  const visit = (node, parents) => {
    if (node.type === "JSXElement" && UNSHOWN_ELEMENTS.test(node.openingElement.name.name ?? "")) return;
    if (node.type === "JSXElement" || node.type === "JSXFragment") visitChildren(node, add);
    else if (node.type === "CallExpression" && calleeName(node) === "countOf") visitCount(node, found);
    else if (node.type === "CallExpression" && calleeName(node) === "translate") visitTranslate(node, found);
    else if (node.type === "Literal" && typeof node.value === "string") {
      const parent = parents.at(-1);
      const inAttribute = parent?.type === "JSXAttribute";
      const isWords =
        (inAttribute && SHOWN_ATTRIBUTES.test(attributeName(parent))) ||
        isDrawn(node, parents) ||
        isInTable(node, parents);
      const shown = isWords ? hasWord(node.value) : isShown(node.value);
      if (shown && !isNounOfCount(node, parents) && !isUnshownPlace(node, parents)) {
        const call = `__t(${JSON.stringify(node.value)})`;
        add(node, node.value, [inAttribute ? `{${call}}` : call]);
      }
    } else if (node.type === "TemplateLiteral") visitTemplate(node, parents, add);
    for (const child of childrenOf(node)) visit(child, [...parents, node]);
  };
  visit(program, []);
  return found;
}

function* childrenOf(node) {
  for (const name in node) {
    const value = node[name];
    if (Array.isArray(value)) {
      for (const one of value) if (one !== null && typeof one === "object" && "type" in one) yield one;
    } else if (value !== null && typeof value === "object" && "type" in value) yield value;
  }
}

/** The text between two tags is one message, with what is put into it. */
function visitChildren(element, add) {
  const { children } = element;
  const isPlain = element.openingElement?.name.name === "option";
  const texts = children.map((child) => (child.type === "JSXText" ? decode(jsxText(child.raw ?? child.value)) : null));
  if (!texts.some((text) => text !== null && hasWord(text))) return;
  const parts = [];
  let message = "";
  let count = 0;
  children.forEach((child, at) => {
    if (texts[at] !== null) message += texts[at];
    else if (child.type === "JSXExpressionContainer") {
      const inner = child.expression;
      if (inner.type === "JSXEmptyExpression") return;
      if (inner.type === "Literal" && typeof inner.value === "string") message += inner.value;
      else {
        message += `{${count++}}`;
        parts.push(", ", [inner.start, inner.end]);
      }
    } else {
      message += `{${count++}}`;
      parts.push(", ", [child.start, child.end]);
    }
  });
  const [before] = /^\s*/.exec(message);
  const [after] = /\s*$/.exec(message);
  const key = message.trim();
  const range = { start: children[0].start, end: children.at(-1).end };
  const space = (text) => (text === "" ? "" : `{${JSON.stringify(text)}}`);
  const call = [`{${count === 0 || isPlain ? "__t" : "__n"}(${JSON.stringify(key)}`, ...parts, ")}"];
  add(range, key, [space(before), ...call, space(after)]);
}

/** `countOf(3, "file")` shows one of two nouns. */
function visitCount(node, found) {
  const [, noun, plural] = node.arguments;
  if (noun?.type !== "Literal") return;
  const many = plural?.type === "Literal" ? plural.value : `${noun.value}s`;
  for (const message of [noun.value, many]) found.push({ start: -1, end: -1, message, parts: [] });
}

/** Such a noun is looked up by `countOf` itself. */
const isNounOfCount = (node, parents) => {
  const call = parents.at(-1);
  return call?.type === "CallExpression" && calleeName(call) === "countOf" && call.arguments.indexOf(node) > 0;
};

/** A call in the source, for words that nothing else marks as such. */
function visitTranslate(node, found) {
  const [message] = node.arguments;
  if (message?.type === "Literal") found.push({ start: -1, end: -1, message: message.value, parts: [] });
}

function visitTemplate(node, parents, add) {
  const texts = node.quasis.map((quasi) => quasi.value.cooked ?? "");
  const sample = texts.join("0").replace(/^0/, "A");
  const shown = isDrawn(node, parents) ? hasWord(sample) : isShown(sample);
  if (!texts.some((text) => /\p{Ll}{2}/u.test(text)) || !shown || isUnshownPlace(node, parents)) return;
  if (/^px\b/.test(texts[1] ?? "")) return;
  if (!texts.some((text) => /(^|\s)[\p{L}’']{2,}(\s|[.,:;…?!”)]|$)/u.test(text))) return;
  let text = "";
  texts.forEach((one, at) => {
    text += (at === 0 ? "" : `{${at - 1}}`) + one;
  });
  const call = [`__t(${JSON.stringify(text)}`];
  for (const expression of node.expressions) call.push(", ", [expression.start, expression.end]);
  add(node, text, [...call, ")"]);
}

/** A source in which each message is looked up when it is shown. Null when it has none. */
export function translateSource(source, file) {
  const edits = findMessages(source, file)
    .filter((one) => one.start >= 0)
    .sort((one, other) => one.start - other.start || other.end - one.end);
  if (edits.length === 0) return null;
  const emit = (start, end, from) => {
    let text = "";
    let at = start;
    let next = from;
    while (next < edits.length && edits[next].start < end) {
      const edit = edits[next];
      if (edit.start < at) {
        next += 1;
        continue;
      }
      text += source.slice(at, edit.start);
      for (const part of edit.parts) text += typeof part === "string" ? part : emit(part[0], part[1], next + 1);
      at = edit.end;
      next += 1;
    }
    return text + source.slice(at, end);
  };
  const code = emit(0, source.length, 0);
  // What has no elements in its messages does not need React.
  const nodes = code.includes("__n(") ? `import { translateNodes as __n } from "/src/language/nodes.ts";` : "";
  return `import { translate as __t } from "/src/language/translation.ts";${nodes}${code}`;
}

/** The plugin of Vite that does it for the sources of the page. */
export function translations() {
  return {
    name: "freehold-translations",
    enforce: "pre",
    transform(source, id) {
      if (!isSource(id)) return null;
      const code = translateSource(source, id);
      return code === null ? null : { code, map: null };
    },
  };
}

/** Whether a file is a source of the page with words of its own. */
export const isSource = (path) =>
  /\/src\/(app|client|data|features|ui)\/.*\.tsx?$/.test(path) && !/\.test\.tsx?$|\/api\.ts$/.test(path);
