/** Made from the API by `python -m tools.generate`: change the routes in src/freehold/gateway/routes/. */

/** Something in freehold.toml that stops nothing and may be better otherwise. */
export interface AdviceRow {
  code: string;
  message: string;
  hint: string;
}

/** As the agent last told. With `own` false it told another session of its: what is chosen there is not chosen here. */
export interface AgentOffer {
  options: OfferedOptions | null;
  /** What may follow a slash at the beginning of a prompt. */
  commands: OfferedCommand[];
  own: boolean;
}

/** An agent whose programs are gone; its sessions stay. */
export interface AgentRemoved {
  name: string;
}

/** An agent. `asks` is false for one that acts without asking; `problem` says why it cannot start. */
export interface AgentRow {
  name: string;
  title: string;
  installed: boolean;
  version: string | null;
  asks: boolean;
  default: boolean;
  problem: string | null;
}

/** What an agent did when it was tried: seconds to each step, its memory in bytes, and what it says it can do. */
export interface AgentTrial {
  name: string;
  version: string;
  capabilities: Record<string, boolean>;
  start: number;
  session: number;
  first_update: number | null;
  turn: number;
  memory: number;
  words: string;
}

export interface Alive {
  alive?: true;
}

export interface AnswerApproval {
  answer: "once" | "session" | "always" | "reject";
  /** To a question that asks for words, the words or the choice (with answer `once`); else the next prompt. */
  note?: string | null;
}

export interface AnswerDevice {
  allow: boolean;
}

export interface AnswerQuestion {
  answer: "once" | "session" | "always" | "never";
}

/** Deny wins over ask, ask over allow; what no rule names is asked. */
export interface ApprovalPolicy {
  rules: PolicyRule[];
}

/**
 * A question: `details` holds the exact command or change, hidden characters spelled out.
 *
 * With `details.kind` "question" it is words that are asked for: `details.input` is the question, `details.options`
 * are the choices, and `details.free_text` says whether other words are taken; with neither it is yes or no.
 * `note` is what the owner said. `options` are the answers that mean something here.
 */
export interface ApprovalView {
  id: string;
  session: string;
  turn: number | null;
  at: string;
  state: "pending" | "answered" | "withdrawn" | "granted";
  answer: "once" | "session" | "always" | "reject" | null;
  note: string | null;
  options: ("once" | "session" | "always" | "reject")[];
  tool: string | null;
  kind: string;
  title: string;
  details: Record<string, unknown>;
}

export interface AskForCertificate {
  /** One line, as in id_ed25519.pub. */
  public_key: string;
  /** Fewer than the manifest's ssh.lifetime, if wished. */
  hours?: number | null;
  /** What it is called in the list. */
  label?: string;
}

export interface AskForKey {
  kind?: "ed25519" | "rsa";
  /** Fewer than the manifest's ssh.lifetime, if wished. */
  hours?: number | null;
  label?: string;
}

/** A program that wants a token. */
export interface AskForToken {
  /** What the token will be called. */
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "admin")[];
}

/** Show `code` and `address` to the owner, and ask for the answer every `interval` seconds. */
export interface Asked {
  device: string;
  code: string;
  address: string;
  interval: number;
  expires_in: number;
}

/** One escape that was tried. Unclear is no better than escaped: the attempt told nothing. */
export interface Attempt {
  name: string;
  claim: string;
  outcome: "refused" | "escaped" | "unclear";
  seen: string;
}

/** Where the browser was when it was shown the door. */
export interface BeginSignIn {
  /** A page of ours; it is led there afterwards. */
  way?: string;
}

/**
 * One limit: of a provider, or of all of them (`*`). `unpriced` requests have no known price and count as nothing.
 *
 * `reached`: something was refused or cut for it, and will be again until it is lifted or raised.
 */
export interface BudgetRow {
  scope: string;
  limit: "day_cost" | "month_cost" | "day_tokens" | "month_tokens";
  period: string;
  of: number;
  spent: number;
  unpriced: number;
  lifted: boolean;
  reached: boolean;
}

export interface BudgetsState {
  budgets: BudgetRow[];
}

export interface ChangeSession {
  title?: string | null;
  archived?: boolean | null;
}

export interface CollectToken {
  device: string;
}

/** The owner's answer; `token` comes once, with `allowed`. */
export interface Collected {
  answer: "waiting" | "allowed" | "denied";
  token?: string | null;
}

/** What differs in one path; `text` is a unified diff, empty when `note` says why there is none. */
export interface ComparedFile {
  path: string;
  word: "added" | "changed" | "removed";
  old_mode: number | null;
  new_mode: number | null;
  old_size: number | null;
  new_size: number | null;
  binary: boolean;
  added: number | null;
  removed: number | null;
  text: string;
  note: string;
}

/** One component, as it last answered. What went wrong is told only to the owner. */
export interface ComponentRow {
  name: string;
  state: "ok" | "degraded" | "failed" | "off" | "starting";
  since: string;
  last_error: string | null;
  required: boolean;
}

/** What the last examination found. `problem` says why it did not come to its end. */
export interface DoctorReport {
  at: string;
  who: string;
  quick: boolean;
  seconds: number;
  ok: boolean;
  problem: string | null;
  facts: Record<string, string>;
  missing_walls: MissingWall[];
  manifest_errors: string[];
  isolation: IsolationFacts | null;
  attempts: Attempt[];
}

/** An examination under way; `total` is 0 until it is known. */
export interface DoctorRun {
  since: number;
  quick: boolean;
  total: number;
  attempts: Attempt[];
}

export interface DoctorState {
  running: DoctorRun | null;
  last: DoctorReport | null;
}

export interface Done {
  done?: boolean;
}

/** A host name, `*.` and a host name, or an address, with an optional port. */
export interface EgressRule {
  verdict: "allow" | "deny";
  pattern: string;
}

/** The mode, the rules in force, what waits for an answer and what was decided last. */
export interface EgressState {
  mode: "deny" | "ask" | "allow";
  rules: Record<string, unknown>[];
  pending: Record<string, unknown>[];
  recent: Record<string, unknown>[];
  connections: number;
  counters: Record<string, number>;
}

/** How many were ended. */
export interface Ended {
  ended: number;
}

/** Entries in order; `next` is the `after` (or, going backwards, the `before`) of the next page, null at the end. */
export interface EventPage {
  events: EventRow[];
  /** Give this as `after`, or as `before` when that was given, for the next page. */
  next: number | null;
}

/** One entry of the timeline. */
export interface EventRow {
  seq: number;
  at: string;
  kind: string;
  who: string;
  data: Record<string, unknown>;
  hash: string;
}

/** `quick` leaves out the attempts to use up memory, disk and processes. */
export interface Examine {
  quick?: boolean;
}

export interface FileList {
  path: string;
  entries: FileRow[];
}

/** A file, folder or link. */
export interface FileRow {
  name: string;
  kind: "file" | "folder" | "link" | "other";
  size: number;
  modified: number;
  mode: number;
  target?: string | null;
  /** Changes when the contents do; give it back when writing. */
  etag: string;
}

/** Everything below a folder in the order of a walk: `[path, kind, size]`, folders before what is in them. */
export interface FileTree {
  path: string;
  rows: [string, string, number][];
  complete: boolean;
}

export interface FilesDone {
  path: string;
}

export interface FilesFound {
  hits: TextHit[];
  more: boolean;
}

export interface HealthReport {
  ready: boolean;
  components: ComponentRow[];
}

/** What one entry changed, path by path. */
export interface HistoryChanges {
  entry: HistoryEntry;
  changes: Record<string, string>[];
  total: number;
}

/** What differs between two states. `old` is null for the state before all entries; `total` counts what was left out, too. */
export interface HistoryComparison {
  old: HistoryEntry | null;
  new: HistoryEntry;
  files: ComparedFile[];
  total: number;
}

/** What one entry changed, line by line. */
export interface HistoryDiff {
  entry: HistoryEntry;
  files: Record<string, unknown>[];
  total: number;
}

/** One state of the files: who made it, why, when, and how much it changed. */
export interface HistoryEntry {
  id: number;
  at: number;
  kind: string;
  who: Record<string, string>;
  why: string;
  added: number;
  changed: number;
  removed: number;
  lines_added: number | null;
  lines_removed: number | null;
  good: boolean;
  /** The entry whose state this one has; its own id unless it is an undo or redo. */
  equals: number;
  notes: string[];
}

/** What was done, as an entry of its own, and what could not be settled. */
export interface HistoryOutcome {
  entry: HistoryEntry;
  done: number;
  unsettled: Record<string, string>[];
}

/** Entries, the newest first. */
export interface HistoryPage {
  entries: HistoryEntry[];
}

/** What would happen to every path; nothing has happened yet. */
export interface HistoryPlan {
  kind: string;
  target: number;
  steps: Record<string, string>[];
  total: number;
  conflicts: Record<string, string>[];
  /** Others worked at the same time as the turn taken back: some of it may be theirs. */
  shared?: boolean;
}

/** How much room history takes. */
export interface HistorySize {
}

export interface Image {
  mime: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  /** Base64. */
  data: string;
}

/** What really holds a computer; `limits` says by which mechanism each limit is held. */
export interface IsolationFacts {
  backend: string;
  version: string;
  uid: number;
  walls: string[];
  limits: Record<string, string>;
}

/** Lets a limit rest until the day or month is over. */
export interface LiftBudget {
  scope: string;
  limit: "day_cost" | "month_cost" | "day_tokens" | "month_tokens";
}

/** The token that was made, with its secret, this once. */
export interface MadeToken {
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "admin")[];
  created: string;
  expires: string | null;
  used: string | null;
  secret: string;
}

export interface MakeFolder {
  path: string;
}

/** The caller, as Freehold knows them. */
export interface Me {
  who: string;
  did: string | null;
  handle: string | null;
  session: string | null;
  /** The scopes of the API token used; null for a browser, which has all. */
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "admin")[] | null;
  /** The keeper's own page, which answers when the gateway does not; only on the machine itself. */
  recovery: string;
}

/** What this Freehold is. */
export interface Meta {
  version: string;
  manifest_checksum: string;
  slots: Record<string, string>;
  metrics: string;
}

/** One cause that holds back readiness. */
export interface Missing {
  name: string;
  state: "absent" | "degraded" | "failed" | "off" | "starting";
  /** What went wrong; told only to the owner. */
  reason: string | null;
}

/** A wall that cannot be built on this machine, and what to do about it. */
export interface MissingWall {
  wall: string;
  message: string;
  hint: string;
}

/**
 * A provider of the manifest. `problem` says why it cannot be asked right now.
 *
 * `key` is the manifest's word for its key (`secret:NAME` or `env:NAME`), never the key; null when it wants none.
 * `default` is the one that a session uses which names none.
 */
export interface ModelRow {
  name: string;
  kind: "openai" | "anthropic" | "gemini" | "openai-compatible";
  address: string;
  model: string | null;
  inside: string;
  key: string | null;
  default: boolean;
  problem: string | null;
}

/** What a provider answered when it was asked for its models, with its key: what costs nothing. */
export interface ModelTrial {
  name: string;
  ok: boolean;
  status: number;
  milliseconds: number;
  words: string;
  models: string[];
}

/** The providers; without any, how to connect one. */
export interface ModelsState {
  models: ModelRow[];
  help: string | null;
  stopped: boolean;
}

export interface MoveFile {
  path: string;
  to: string;
  replace?: boolean;
}

/** A token to make. */
export interface NewToken {
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "admin")[];
  /** Days until it ends; null for never. */
  days?: number | null;
}

/** An empty object. */
export interface Nothing {
}

/** How one can sign in here. */
export interface Offer {
  atproto: OwnerOffer | null;
  link: boolean;
}

export interface OfferedChoice {
  id: string;
  name: string;
  description: string;
}

export interface OfferedCommand {
  name: string;
  description: string;
}

/** An option of the agent's own; without choices it is on or off. */
export interface OfferedOption {
  id: string;
  name: string;
  category: string;
  type: string;
  value: string | boolean | null;
  choices: OfferedChoice[];
}

/** Modes in which the agent would act unasked are not among them; `asks` says whether it asks now. */
export interface OfferedOptions {
  mode: string | null;
  modes: OfferedChoice[];
  model: string | null;
  models: OfferedChoice[];
  config: OfferedOption[];
  asks: boolean;
}

/** The token of a one-time link. */
export interface OneTimeToken {
  token: string;
}

export interface OpenPreview {
  /** Where to go there. */
  path?: string;
}

export interface OpenSession {
  /** By default the manifest's agents.default. */
  agent?: string | null;
  title?: string | null;
  /** A name under [models], or what its provider calls a model. */
  model?: string | null;
}

export interface OpenTerminal {
  rows?: number;
  columns?: number;
  folder?: string;
}

/** Signing in with the owner's account. */
export interface OwnerOffer {
  handle: string | null;
  /** Where the sign-in must begin: servers answer to 127.0.0.1, not to localhost. */
  origin: string;
}

/** An action to look at before it is done. */
export interface PlanHistory {
  action: "undo" | "redo" | "restore" | "revert";
  entry?: number | null;
  paths?: string[] | null;
  choose?: Record<string, "old" | "mine"> | null;
  since?: number | null;
  of?: WholeTurn | null;
}

/** `exact` rules match one subject, others a pattern with `*`. Those with a session end with it. */
export interface PolicyRule {
  id: number;
  effect: "allow" | "ask" | "deny";
  kind: string;
  pattern: string;
  exact: boolean;
  session: string | null;
}

export interface Port {
  name: string;
  host: string;
  port: number;
}

/** `address` opens once, within half a minute; `origin` is where it leads. */
export interface PreviewAddress {
  address: string;
  origin: string;
}

/** A port inside that something listens on. `process` and `service` are null when they are not known. */
export interface PreviewPort {
  port: number;
  process: string | null;
  service: string | null;
}

/** What can be looked at now, by port; also the messages of the topic `ports`. */
export interface PreviewPorts {
  ports: PreviewPort[];
}

export interface Problem {
  error: { code: string; message: string; hint: string; error_id?: string };
}

/** One program. `since` is when it came into its state, `memory` in bytes, `next_start_in` seconds to its next try. */
export interface ProgramRow {
  name: string;
  state: "stopped" | "starting" | "ready" | "unhealthy" | "waiting" | "crash-looping" | "stopping";
  required: boolean;
  pid: number | null;
  since: number;
  restarts: number;
  memory: number | null;
  last_error: string | null;
  next_start_in: number | null;
  can_restart: boolean;
}

/** Every program, and what holds the computer. `usage` is what it uses now; null is what cannot be told. */
export interface ProgramsState {
  version: string;
  home: string;
  ready: boolean;
  since: string | null;
  missing: string[];
  programs: ProgramRow[];
  ports: Port[];
  isolation: IsolationFacts | null;
  usage: Record<string, number | null> | null;
  limits: Record<string, number>;
  advice: AdviceRow[];
}

/** The turn that a prompt became, and whether it waits for the one before. */
export interface PromptTaken {
  turn: number;
  queued: boolean;
}

/** Whether Freehold is ready, since when, and if not, for want of what. */
export interface Readiness {
  ready: boolean;
  since?: string | null;
  requirements?: string[];
  missing?: Missing[];
}

/** Where the browser must go next. */
export interface Redirect {
  redirect: string;
}

export interface Redo {
}

export interface RemoveFile {
  path: string;
  recursive?: boolean;
}

/** `begun` is false when this very gateway is restarted: the answer comes before it. */
export interface RestartAsked {
  name: string;
  begun: boolean;
  state: "stopped" | "starting" | "ready" | "unhealthy" | "waiting" | "crash-looping" | "stopping" | null;
}

export interface Restore {
  entry: number;
  /** Only these; everything when empty. */
  paths?: string[];
}

export interface Revert {
  entry: number;
  /** All that changed after this entry, up to the other. */
  since?: number | null;
  /** The turn that this takes back, kept with the new entry; with `since`, only what was done for it. */
  of?: WholeTurn | null;
  /** For each path in conflict, which side stays. */
  choose?: Record<string, "old" | "mine">;
}

export interface Rewind {
  turn: number;
  what: "files" | "chat" | "both";
  dry_run?: boolean;
}

/** What was, or with `dry_run` would be, taken back. `files` is history's own account. */
export interface Rewound {
  turn: number;
  what: "files" | "chat" | "both";
  dry_run: boolean;
  files: Record<string, unknown> | null;
  events: number;
}

export interface SecretNamed {
  name: string;
}

/** A secret by its name. Its value is shown to nobody. */
export interface SecretRow {
  name: string;
  set_at: number;
  used_at: number | null;
}

export interface SeenSession {
  /** The number of the last event that the owner has had before their eyes. */
  seq: number;
}

export interface SendPrompt {
  text: string;
  files?: string[];
  images?: Image[];
  /** Chosen by you: the same key never makes a second turn. */
  key: string;
  /** While it works: `steer` stops the turn under way, the others wait for it. */
  when?: "now" | "queue" | "steer";
}

/** A session that is gone. */
export interface SessionDeleted {
  id: string;
}

/** Something that happened in a session; see the guide for the kinds and what each holds. */
export interface SessionEvent {
  seq: number;
  at: string;
  turn: number | null;
  kind: string;
  data: Record<string, unknown>;
}

/** Events, oldest first; `next` is the `after` that gives more, null at the end. */
export interface SessionEvents {
  events: SessionEvent[];
  next: number | null;
  /** What is being said now; only beside the newest events. */
  streaming: Streaming[];
}

/** Sessions, the last changed first; give `next` as `cursor` for more. */
export interface SessionPage {
  sessions: SessionView[];
  next: string | null;
}

/**
 * One conversation with one agent. `seq` is the number of its last event.
 *
 * `unread`: it says, asks or has ended something after the last number that was told to be seen.
 */
export interface SessionView {
  id: string;
  title: string;
  agent: string;
  model: string | null;
  status: "idle" | "working" | "needs_you" | "failed" | "queued";
  created: string;
  updated: string;
  archived: boolean;
  cost: number | null;
  seq: number;
  parent: string | null;
  unread: boolean;
}

/** The limits of a provider or of all (`*`), in place of the manifest's; what is left out has no bound. */
export interface SetBudget {
  scope: string;
  day_cost?: number | null;
  month_cost?: number | null;
  day_tokens?: number | null;
  month_tokens?: number | null;
}

export interface SetGood {
  good?: boolean;
}

export interface SetOption {
  id: string;
  value: string | boolean;
}

export interface SetSecret {
  value: string;
}

/** A file as it was; of a large one the beginning, and `more` is true. */
export interface ShownFile {
  path: string;
  what: string;
  mode: number;
  mtime: number;
  size: number;
  base64?: string | null;
  more?: boolean;
}

/** One signed-in browser. */
export interface SignInRow {
  id: string;
  label: string;
  address: string;
  method: string;
  created: string;
  seen: string;
  expires: string;
  current: boolean;
}

/** The certificate and what a client needs to use it. */
export interface SshCertificate {
  id: string;
  certificate: string;
  key_id: string;
  expires: string;
  known_hosts: string;
  config: string;
}

/** A certificate, or a bare key made for a client that knows no certificates. */
export interface SshCredential {
  id: string;
  kind: "certificate" | "key";
  label: string;
  key_id: string;
  fingerprint: string;
  created: string;
  expires: string;
  used: string | null;
  used_from: string | null;
  revoked: boolean;
}

/** Where the server is, and the key it shows. */
export interface SshDoor {
  enabled: boolean;
  host: string;
  port: number;
  user: string;
  fingerprint: string;
  known_hosts: string;
  forwarding: boolean;
  /** Connections that are open now; null when the server does not answer. */
  connected: number | null;
}

/** A pair that was made here: the private half is in this answer and nowhere else. */
export interface SshKey {
  id: string;
  private_key: string;
  public_key: string;
  expires: string;
  known_hosts: string;
  config: string;
}

/** Its live connections end within a second. */
export interface SshRevoked {
  id: string;
}

export interface Stop {
  why?: string;
}

/** Whether the owner has stopped everything. */
export interface StopState {
  stopped: boolean;
  at: string | null;
  who: string | null;
  why: string | null;
}

/** Words that are still coming: a message or thought that is no event yet. What follows comes as deltas. */
export interface Streaming {
  kind: "message" | "thought";
  id: string;
  /** Where in the message this begins, in characters. */
  at: number;
  text: string;
}

export interface TerminalClosed {
  id: string;
}

/** A terminal that is open, or has ended and was not yet looked at. */
export interface TerminalRow {
  id: string;
  command: string[];
  rows: number;
  columns: number;
  began: number;
  viewers: number;
  ended: boolean;
}

/** A line that matched; lines and columns count from 1. */
export interface TextHit {
  path: string;
  line: number;
  column: number;
  text: string;
}

/** One API token; its secret is shown only when it is made. */
export interface TokenRow {
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "admin")[];
  created: string;
  expires: string | null;
  used: string | null;
}

export interface Undo {
  /** Go back to before this entry; the last one when not said. */
  entry?: number | null;
}

/** Rows by day, by day, provider and model, by provider and model, session, or session and turn; the newest first. */
export interface UsageReport {
  by: "day" | "day_model" | "model" | "provider" | "session" | "turn";
  rows: UsageRow[];
}

/** What was used; `cost` is null when a price among it is unknown, and `priced` what the rest cost. */
export interface UsageRow {
  key: (string | null)[];
  requests: number;
  input: number;
  output: number;
  cached: number;
  cost: number | null;
  priced: number;
}

/** The program that waits, as the owner sees it before answering. */
export interface WaitingDevice {
  code: string;
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "admin")[];
  address: string;
}

/** A turn of a session, whose work can be more than one entry. */
export interface WholeTurn {
  session: string;
  turn: number;
}

export interface WritePolicy {
  rules: WriteRule[];
}

export interface WriteRule {
  effect: "allow" | "ask" | "deny";
  kind: string;
  pattern: string;
  exact?: boolean;
}

export interface Written {
  path: string;
  size: number;
  etag: string;
}
