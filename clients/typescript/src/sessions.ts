/** Sessions, which are conversations with agents: `home.sessions`. */

import type {
  AgentOffer,
  AnswerApproval,
  ApprovalInfo,
  PromptAccepted,
  RewindResult,
  RewindSession,
  SendPrompt,
  SessionDeleted,
  SessionEvent,
  SessionEvents,
  SessionInfo,
  SessionPage,
  Tour,
} from "./api.ts";
import type { Link } from "./freehold.ts";

/** A stored event, or a part of a message that is being written, which has no number. */
export type SessionUpdate = SessionEvent | { seq: null; kind: string; data: Record<string, unknown> };

export interface PromptOptions {
  files?: SendPrompt["files"];
  /** A second prompt with the same key is ignored. */
  key?: string;
  when?: SendPrompt["when"];
}

/** One session. `info` is its state when it was opened or read. */
export class Session {
  readonly info: SessionInfo;
  private readonly link: Link;
  private readonly path: string;

  constructor(link: Link, info: SessionInfo) {
    this.link = link;
    this.info = info;
    this.path = `/v1/sessions/${encodeURIComponent(info.id)}`;
  }

  get id(): string {
    return this.info.id;
  }

  /**
   * Send a prompt and follow its turn to the end. Parts of messages come as updates without a number. Permission requests
   * come as updates, too, and wait for `answer`.
   */
  async *prompt(text: string, options: PromptOptions = {}): AsyncGenerator<SessionUpdate> {
    const { seq } = await this.link.connection.get<SessionInfo>(this.path);
    const body = { text, files: [], key: crypto.randomUUID(), when: "now", ...options };
    const accepted = await this.link.connection.post<PromptAccepted>(`${this.path}/prompt`, body);
    for await (const update of this.follow(seq)) {
      yield update;
      if (update.kind === "turn.ended" && update.seq !== null && update.turn === accepted.turn) return;
    }
  }

  /** All updates from now on, or after an event number. Each stored event comes once and in order. Never ends. */
  async *follow(after: number | null = null): AsyncGenerator<SessionUpdate> {
    let at = after;
    for await (const message of this.link.follow(`session:${this.id}`, after)) {
      if (message.kind === "delta") {
        const data = message.data as Record<string, unknown>;
        yield { seq: null, kind: String(data["kind"]), data };
      } else if (message.kind === "event") {
        if (at !== null && message.seq <= at) continue;
        at = message.seq;
        yield message.data as SessionEvent;
      } else {
        // The socket lost messages: read the missed events page by page.
        for await (const missed of this.events(at ?? message.seq)) {
          at = missed.seq;
          yield missed;
        }
      }
    }
  }

  /** The stored events, the oldest first. */
  async *events(after = 0): AsyncGenerator<SessionEvent> {
    for (let place: number | null = after; place !== null; ) {
      const page: SessionEvents = await this.link.connection.get(`${this.path}/events`, { after: place });
      yield* page.events;
      place = page.next;
    }
  }

  /** Answer a permission request. `note` becomes the next prompt, or is the answer to a question. */
  answer(approval: string, answer: AnswerApproval["answer"], note: string | null = null): Promise<ApprovalInfo> {
    return this.link.connection.post(`/v1/approvals/${encodeURIComponent(approval)}`, { answer, note });
  }

  /** Mark events up to `seq` as read. The session is then not `unread` on any device. */
  see(seq: number): Promise<SessionInfo> {
    return this.link.connection.post(`${this.path}/seen`, { seq });
  }

  /** Stop the running turn and drop the prompts that wait. */
  cancel(): Promise<SessionInfo> {
    return this.link.connection.post(`${this.path}/cancel`, {});
  }

  /** The options and slash commands that the agent offers, whether it runs or not. */
  offer(): Promise<AgentOffer> {
    return this.link.connection.get(`${this.path}/offer`);
  }

  /** Set a mode, model or other option of the agent. */
  setOption(name: string, value: string | boolean): Promise<SessionInfo> {
    return this.link.connection.post(`${this.path}/options`, { id: name, value });
  }

  /** A second session with the same transcript. */
  async fork(): Promise<Session> {
    return new Session(this.link, await this.link.connection.post<SessionInfo>(`${this.path}/fork`, {}));
  }

  /** Rewind to before a turn. `files` and `both` also need the scope `history`. `restoreId` as for `home.history.undo`. */
  rewind(
    turn: number,
    what: RewindSession["what"] = "both",
    { dryRun = false, restoreId }: { dryRun?: boolean; restoreId?: string } = {},
  ): Promise<RewindResult> {
    const body = { turn, what, dry_run: dryRun, restore_id: restoreId };
    return this.link.connection.post(`${this.path}/rewind`, body);
  }

  /** Use another model from the next prompt on: a provider, `provider/model`, or "" for the default. */
  chooseModel(model: string): Promise<SessionInfo> {
    return this.link.connection.patch(this.path, { model });
  }
}

export class Sessions {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Start a session. Without `agent`, the default agent of the owner is used. */
  async open(agent: string | null = null, options: { title?: string; model?: string; folder?: string } = {}): Promise<Session> {
    const body = { agent, ...options };
    return new Session(this.link, await this.link.connection.post<SessionInfo>("/v1/sessions", body));
  }

  /** A session with a script in the place of a model, and the prompt that begins the tour. */
  async openTour(): Promise<[Session, string]> {
    const opened = await this.link.connection.post<Tour>("/v1/tour", {});
    return [await this.get(opened.session), opened.prompt];
  }

  /** An existing session. */
  async get(session: string): Promise<Session> {
    const path = `/v1/sessions/${encodeURIComponent(session)}`;
    return new Session(this.link, await this.link.connection.get<SessionInfo>(path));
  }

  /**
   * Sessions with `query` in their title or messages, the most recently changed first.
   *
   * With `unused` also those that have neither a prompt nor a name.
   */
  list(query = "", options: { archived?: boolean; unused?: boolean; cursor?: string } = {}): Promise<SessionPage> {
    return this.link.connection.get("/v1/sessions", { query, archived: false, unused: false, cursor: "", ...options });
  }

  /** The permission requests that wait for the owner. */
  approvals(): Promise<ApprovalInfo[]> {
    return this.link.connection.get("/v1/approvals");
  }

  /** End the agent and delete the session. */
  async delete(session: string): Promise<void> {
    await this.link.connection.delete<SessionDeleted>(`/v1/sessions/${encodeURIComponent(session)}`);
  }

  /** Delete a session that has neither a prompt nor a name. Throws `session.conflict` for another one. */
  async discard(session: string): Promise<void> {
    await this.link.connection.post<SessionDeleted>(`/v1/sessions/${encodeURIComponent(session)}/discard`, {});
  }
}
