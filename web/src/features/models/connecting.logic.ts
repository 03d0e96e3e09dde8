/** A piece of the words about connecting a model: some prose, or some of freehold.toml to be copied. */
export interface Piece {
  kind: "words" | "toml";
  text: string;
}

/** Indented lines are for the file, the rest is to be read; an empty line between two of one kind parts them. */
export function piecesOf(help: string): Piece[] {
  const pieces: Piece[] = [];
  for (const block of help.split(/\n[ \t]*\n/)) {
    const lines = block.split("\n").filter((line) => line.trim() !== "");
    if (lines.length === 0) continue;
    const isToml = lines.every((line) => /^\s{2}/.test(line));
    pieces.push(isToml ? { kind: "toml", text: lines.map((line) => line.slice(2)).join("\n") } : { kind: "words", text: lines.join("\n") });
  }
  return pieces;
}
