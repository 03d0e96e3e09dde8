import type { CodeContext, CodePart } from "../../client/api";
import { problemOf, RequestFailed } from "../../client/http";
import {
  addPart,
  type Cell,
  type CellRun,
  contextRequest,
  type NotebookState,
  newRun,
  readStored,
  type Settings,
  storedForm,
  succeeded,
} from "./notebook.logic";

const CODE_KEY = "freehold:notebook";
const CONTEXT_KEY = "freehold:notebook-context";
/** Milliseconds between two drawings of output. */
const DRAW_INTERVAL = 30;
/** The context was not used for long, or its process has died: the next run begins without variables. */
const GONE = ["computer.no-context", "computer.context-ended"];

/** What a notebook needs from the outside. */
export interface NotebookConnection {
  request: <T>(path: string, init?: { method?: string; body?: unknown }) => Promise<T>;
  lines: (path: string, body: unknown) => AsyncGenerator<CodePart>;
  /** Keeps the code for the next visit. */
  code: Pick<Storage, "getItem" | "setItem">;
  /** Keeps the id of the context while the tab is open. */
  tab: Pick<Storage, "getItem" | "setItem" | "removeItem">;
}

const addressOf = (context: string): string => `/v1/code/contexts/${encodeURIComponent(context)}`;

/** Cells, and the context in which they run, one at a time. Lives as long as the tab. Knows no React. */
export class Notebook {
  private current: NotebookState;
  private readonly listeners = new Set<() => void>();
  private waiting: string[] = [];
  private running = false;
  private runs = 0;
  private notifyTimer: ReturnType<typeof setTimeout> | undefined;
  private nextId = 1;

  constructor(private readonly connection: NotebookConnection) {
    const { settings, codes } = readStored(connection.code.getItem(CODE_KEY));
    this.current = {
      settings,
      cells: codes.map((code) => this.newCell(code)),
      context: connection.tab.getItem(CONTEXT_KEY),
    };
  }

  readonly state = (): NotebookState => this.current;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  setCode(id: string, code: string): void {
    this.changeCell(id, (cell) => ({ ...cell, code }));
    this.save();
  }

  /** Adds an empty cell after another one, or at the end, and returns its id. */
  addCell(after?: string): string {
    const cell = this.newCell("");
    const at = after === undefined ? this.current.cells.length : this.indexOf(after) + 1;
    this.become({ cells: this.current.cells.toSpliced(at, 0, cell) });
    this.save();
    return cell.id;
  }

  /** The id of the cell after another one, which is made if there is none. */
  nextCell(id: string): string {
    return this.current.cells[this.indexOf(id) + 1]?.id ?? this.addCell(id);
  }

  removeCell(id: string): void {
    this.waiting = this.waiting.filter((one) => one !== id);
    const left = this.current.cells.filter((cell) => cell.id !== id);
    this.become({ cells: left.length === 0 ? [this.newCell("")] : left });
    this.save();
  }

  moveCell(id: string, by: -1 | 1): void {
    const at = this.indexOf(id);
    const cell = this.current.cells[at];
    if (cell === undefined || at + by < 0 || at + by >= this.current.cells.length) return;
    this.become({ cells: this.current.cells.toSpliced(at, 1).toSpliced(at + by, 0, cell) });
    this.save();
  }

  /** Runs cells one after the other. After a failure the others do not run. */
  run(...ids: readonly string[]): void {
    for (const id of ids) {
      const cell = this.find(id);
      if (cell === undefined || cell.code.trim() === "" || this.waiting.includes(id)) continue;
      if (cell.run !== null && cell.run.state !== "ended") continue;
      this.waiting.push(id);
      this.changeRun(id, () => newRun(++this.runs));
    }
    if (!this.running) void this.work();
  }

  runAll(): void {
    this.run(...this.current.cells.map((cell) => cell.id));
  }

  /** Interrupts what runs, and forgets what waits. The variables stay. */
  async stop(): Promise<void> {
    this.forgetWaiting();
    const { context } = this.current;
    if (this.running && context !== null)
      await this.connection.request(`${addressOf(context)}/interrupt`, { method: "POST", body: {} });
  }

  /** Forgets all variables. */
  async reset(): Promise<void> {
    this.forgetWaiting();
    const { context } = this.current;
    this.setContext(null);
    this.become({ cells: this.current.cells.map((cell) => ({ ...cell, run: endRun(cell.run) })) });
    if (context !== null) await this.connection.request(addressOf(context), { method: "DELETE" }).catch(ignoreGone);
  }

  /** Other settings mean another context: the variables go. */
  async configure(settings: Settings): Promise<void> {
    this.become({ settings });
    this.save();
    await this.reset();
  }

  private async work(): Promise<void> {
    this.running = true;
    for (let id = this.waiting.shift(); id !== undefined; id = this.waiting.shift()) {
      const ended = await this.runCell(id);
      if (ended !== null && !succeeded(ended)) this.forgetWaiting();
    }
    this.running = false;
  }

  private async runCell(id: string): Promise<CellRun | null> {
    this.changeRun(id, (run) => run && { ...run, state: "running" });
    try {
      for (let isFresh = false; ; isFresh = true) {
        const known = this.current.context;
        const problem = await this.stream(id, isFresh && known === null);
        if (problem === null) break;
        if (isFresh) throw new RequestFailed(0, problem);
        this.setContext(null);
        // One whose process has died is still listed.
        if (known !== null) void this.connection.request(addressOf(known), { method: "DELETE" }).catch(() => undefined);
      }
    } catch (error) {
      this.changeRun(id, (run) => run && { ...run, state: "ended", problem: problemOf(error) });
    }
    const run = this.find(id)?.run ?? null;
    // A stream that ends without an end: the gateway was restarted.
    if (run !== null && run.state !== "ended") this.changeRun(id, endRun);
    return this.find(id)?.run ?? null;
  }

  /** Runs a cell in the context. Returns the problem if it could not run. */
  private async stream(id: string, isFresh: boolean) {
    const context = this.current.context ?? (await this.createContext());
    const code = this.find(id)?.code ?? "";
    this.changeRun(id, (run) => run && { ...newRun(run.number), state: "running", isFresh });
    try {
      for await (const part of this.connection.lines(`${addressOf(context)}/stream`, { code })) {
        if (part.failure && GONE.includes(part.failure.code)) return part.failure;
        this.current = this.withCell(id, (cell) => ({ ...cell, run: cell.run && addPart(cell.run, part) }));
        this.notifySoon();
      }
      return null;
    } catch (error) {
      const problem = problemOf(error);
      if (GONE.includes(problem.code)) return problem;
      throw error;
    }
  }

  private async createContext(): Promise<string> {
    const body = contextRequest(this.current.settings);
    const { id } = await this.connection.request<CodeContext>("/v1/code/contexts", { method: "POST", body });
    this.setContext(id);
    return id;
  }

  private setContext(context: string | null): void {
    if (context === null) this.connection.tab.removeItem(CONTEXT_KEY);
    else this.connection.tab.setItem(CONTEXT_KEY, context);
    this.become({ context });
  }

  private forgetWaiting(): void {
    const forgotten = new Set(this.waiting);
    this.waiting = [];
    if (forgotten.size === 0) return;
    this.become({ cells: this.current.cells.map((cell) => (forgotten.has(cell.id) ? { ...cell, run: null } : cell)) });
  }

  private newCell(code: string): Cell {
    return { id: `cell-${this.nextId++}`, code, run: null };
  }

  private indexOf(id: string): number {
    return this.current.cells.findIndex((cell) => cell.id === id);
  }

  private find(id: string): Cell | undefined {
    return this.current.cells.find((cell) => cell.id === id);
  }

  private changeRun(id: string, change: (run: CellRun | null) => CellRun | null): void {
    this.changeCell(id, (cell) => ({ ...cell, run: change(cell.run) }));
  }

  private changeCell(id: string, change: (cell: Cell) => Cell): void {
    this.become(this.withCell(id, change));
  }

  private withCell(id: string, change: (cell: Cell) => Cell): NotebookState {
    return { ...this.current, cells: this.current.cells.map((cell) => (cell.id === id ? change(cell) : cell)) };
  }

  private become(change: Partial<NotebookState>): void {
    this.current = { ...this.current, ...change };
    this.notify();
  }

  private notify(): void {
    clearTimeout(this.notifyTimer);
    this.notifyTimer = undefined;
    for (const listener of this.listeners) listener();
  }

  /** Code can write faster than a page can be drawn. */
  private notifySoon(): void {
    this.notifyTimer ??= setTimeout(() => this.notify(), DRAW_INTERVAL);
  }

  private save(): void {
    try {
      this.connection.code.setItem(CODE_KEY, storedForm(this.current));
    } catch {
      // The storage is full or forbidden: the code lives as long as this page.
    }
  }
}

const endRun = (run: CellRun | null): CellRun | null =>
  run === null || run.state === "ended" ? run : { ...run, state: "ended" };

function ignoreGone(error: unknown): void {
  if (!(error instanceof RequestFailed) || !GONE.includes(error.problem.code)) throw error;
}
