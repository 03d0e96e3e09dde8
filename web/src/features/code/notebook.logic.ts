import type { CodeEnd, CodeItem, CodePart } from "../../client/api";
import type { Problem } from "../../client/http";

export const LANGUAGES = {
  python: "Python",
  javascript: "JavaScript",
  typescript: "TypeScript",
  wasm: "WebAssembly",
} as const;
export type Language = keyof typeof LANGUAGES;

/** What code may do with the workspace. */
export const FILE_ACCESS = {
  none: "No access",
  read: "Read",
  write: "Read and write",
} as const;
export type FileAccess = keyof typeof FILE_ACCESS;

export interface Settings {
  language: Language;
  files: FileAccess;
  network: boolean;
  /** Packages that are loaded before any code runs. They must be prepared in the computer. */
  packages: readonly string[];
}

export type Shown = { kind: "text"; stream: "stdout" | "stderr"; text: string } | { kind: "item"; item: CodeItem };

/** One run of a cell. `number` counts the runs of the notebook. */
export interface CellRun {
  number: number;
  state: "waiting" | "running" | "ended";
  shown: readonly Shown[];
  end: CodeEnd | null;
  problem: Problem | null;
  /** Whether the variables of earlier runs were lost before this one. */
  isFresh: boolean;
}

export interface Cell {
  id: string;
  code: string;
  run: CellRun | null;
}

export interface NotebookState {
  settings: Settings;
  cells: readonly Cell[];
  /** The context that has the variables; null until something runs. */
  context: string | null;
}

export const newRun = (number: number): CellRun => ({
  number,
  state: "waiting",
  shown: [],
  end: null,
  problem: null,
  isFresh: false,
});

/** A run with one more part. Text of the same stream is joined to what is there. */
export function addPart(run: CellRun, part: CodePart): CellRun {
  if (part.end) return { ...run, state: "ended", end: part.end };
  if (part.failure) return { ...run, state: "ended", problem: part.failure };
  if (part.item) return { ...run, shown: [...run.shown, { kind: "item", item: part.item }] };
  if (!part.output) return run;
  const { stream, text } = part.output;
  const last = run.shown.at(-1);
  if (last?.kind === "text" && last.stream === stream)
    return { ...run, shown: [...run.shown.slice(0, -1), { ...last, text: last.text + text }] };
  return { ...run, shown: [...run.shown, { kind: "text", stream, text }] };
}

/** Whether cells after this one may run. */
export const succeeded = (run: CellRun): boolean =>
  run.end !== null && run.end.exit_code === 0 && run.end.limit === null;

/** The body that creates a context with these settings. */
export function contextRequest({ language, files, network, packages }: Settings) {
  const granted = { none: {}, read: { "/workspace": "r" }, write: { "/workspace": "rw" } }[files];
  return { language, label: "Notebook", grants: { files: granted, network, packages } };
}

/** The names in a text, which may be between commas, spaces or both. */
export const packagesOf = (text: string): string[] => [...new Set(text.split(/[\s,]+/).filter(Boolean))];

/** How a run ended, in words; null for one that simply ended. */
export function endText(end: CodeEnd): string | null {
  if (end.limit !== null) return LIMITS[end.limit] ?? `Ended at its limit: ${end.limit}.`;
  if (end.error !== null) return null;
  if (end.exit_code < 0) return `Ended by signal ${-end.exit_code}.`;
  return end.exit_code === 0 ? null : `Ended with exit code ${end.exit_code}.`;
}

const LIMITS: Record<string, string> = {
  memory: "Ended: it needed more than 128 MiB of memory.",
  processor: "Ended: it used 30 seconds of processor time.",
  wall_time: "Ended: it ran for 60 seconds.",
  output: "Ended: it wrote more than 1 MiB.",
  results: "Ended: its results have more than 16 MiB.",
  file_size: "Ended: a file became larger than 16 MiB.",
  files: "Ended: its own files need more than 128 MiB.",
};

export function durationText(seconds: number): string {
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
}

const MAX_ONE_LINE = 100;

/** A value as it is shown: text as it is, everything else as JSON, on several lines if it is long. */
export function valueText(item: CodeItem): string {
  const text = item.text ?? "";
  if (item.type !== "json") return text;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "string") return value;
    return text.length <= MAX_ONE_LINE ? text : JSON.stringify(value, null, 2);
  } catch {
    return text;
  }
}

export interface Table {
  columns: string[];
  rows: unknown[][];
  index: unknown[];
  total: number;
}

/** The table in an item; null if it is not one. */
export function tableOf(item: CodeItem): Table | null {
  if (item.type !== "table") return null;
  try {
    const found = JSON.parse(item.text ?? "") as Partial<Table>;
    if (!Array.isArray(found.columns) || !Array.isArray(found.rows) || !found.rows.every(Array.isArray)) return null;
    const { columns, rows, index = [], total = rows.length } = found;
    return { columns: columns.map(String), rows, index, total };
  } catch {
    return null;
  }
}

export const cellText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

const PICTURES = ["image/png", "image/jpeg", "image/svg+xml"];

/** The address of a picture that is an item; null if it is not one. An SVG in an image runs no script. */
export function pictureOf(item: CodeItem): string | null {
  if (!PICTURES.includes(item.type) || item.role === "file") return null;
  const data = item.data ?? base64Of(new TextEncoder().encode(item.text ?? ""));
  return `data:${item.type};base64,${data}`;
}

function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

export function bytesOf(item: CodeItem): Uint8Array<ArrayBuffer> {
  if (item.data === null) return new TextEncoder().encode(item.text ?? "");
  return Uint8Array.from(atob(item.data), (char) => char.charCodeAt(0));
}

/** What is kept in the browser: the code and the settings, not what the code has written. */
export function storedForm({ settings, cells }: NotebookState): string {
  return JSON.stringify({ settings, cells: cells.map((cell) => cell.code) });
}

export function readStored(text: string | null): { settings: Settings; codes: string[] } {
  const found = parse(text);
  const settings = (found["settings"] ?? {}) as Partial<Settings>;
  const codes = Array.isArray(found["cells"]) ? found["cells"].filter((code) => typeof code === "string") : [];
  return {
    settings: {
      language: settings.language && settings.language in LANGUAGES ? settings.language : "python",
      files: settings.files && settings.files in FILE_ACCESS ? settings.files : "read",
      network: settings.network === true,
      packages: Array.isArray(settings.packages)
        ? settings.packages.filter((name): name is string => typeof name === "string")
        : [],
    },
    codes: codes.length === 0 ? [""] : codes,
  };
}

function parse(text: string | null): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(text ?? "");
    return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
