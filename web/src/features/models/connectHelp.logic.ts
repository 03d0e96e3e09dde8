/** A part of the help: text, or lines for freehold.toml that can be copied. */
export interface HelpPart {
  kind: "text" | "toml";
  text: string;
}

/** Splits the help at empty lines. Indented lines are for freehold.toml. */
export function splitHelp(help: string): HelpPart[] {
  const parts: HelpPart[] = [];
  for (const block of help.split(/\n[ \t]*\n/)) {
    const lines = block.split("\n").filter((line) => line.trim() !== "");
    if (lines.length === 0) continue;
    const isToml = lines.every((line) => /^\s{2}/.test(line));
    parts.push(
      isToml
        ? { kind: "toml", text: lines.map((line) => line.slice(2)).join("\n") }
        : { kind: "text", text: lines.join("\n") },
    );
  }
  return parts;
}
