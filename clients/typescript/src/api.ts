/** Made from the API by `python -m tools.generate`: change the routes in src/freehold/gateway/routes/. */

export interface AcceptWork {
  /** A folder of the workspace; the workspace itself if empty. */
  folder?: string;
  /** Overwrite files that are there and differ. */
  force?: boolean;
}

/**
 * Whether the owner's account names the key of this Freehold: asked of the server of the account just now.
 *
 * `claimed` when that could not be asked, `none` without an account.
 */
export interface AccountRecord {
  did: string | null;
  npub: string;
  proof: "none" | "claimed" | "proven" | "refuted";
}

/** Sign-in with the owner's account. */
export interface AccountSignIn {
  handle: string | null;
  /** The origin of the control center, where the sign-in must begin. */
  origin: string;
}

export interface AddChannel {
  kind: "email" | "matrix" | "nostr" | "telegram" | "webpush";
  /** Default: the kind. */
  name?: string | null;
  settings?: Record<string, string | number>;
  /** The token or password. It is kept in the vault. */
  secret?: string | null;
}

/** A host name, `*.` and a host name, or an address, with an optional port. */
export interface AddEgressRule {
  verdict: "allow" | "deny";
  pattern: string;
}

/** A server for the manifest: either a `command` that runs inside, or the `url` of a remote one. */
export interface AddMcpServer {
  name: string;
  command?: string;
  url?: string;
  /** The name of the secret that is sent to a remote server. */
  key?: string;
  /** Whether you sign in to a remote server by OAuth. */
  oauth?: boolean;
}

/** As the browser gives it. */
export interface AddPushSubscription {
  endpoint: string;
  p256dh: string;
  auth: string;
  label?: string;
}

export interface AddRoutine {
  name: string;
  routine: RoutineSection;
  /** Change the routine of this name, if there is one. */
  replace?: boolean;
}

/** Versions that were looked at before, by their hashes. One that is in use under the same name is replaced. */
export interface AddSkills {
  digests: string[];
}

export interface AddWorktree {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
  /** A name of a branch that git accepts. */
  branch: string;
  is_new?: boolean;
  /** The new folder, below the workspace. */
  place: string;
}

/** An answer that the agent itself offers. `sent_for` says for which answer of the owner it is sent to the agent. */
export interface AgentAnswer {
  name: string;
  kind: string;
  sent_for: "allow" | "reject" | null;
}

/** An agent in the card format of A2A, as far as it fits. Work for it is sent by the mesh and not by A2A. */
export interface AgentCard {
  name: string;
  description: string;
  version: string;
  url: string;
  capabilities: Record<string, boolean>;
  defaultInputModes: string[];
  defaultOutputModes: string[];
  skills: AgentSkill[];
}

/** The agents of one Freehold that take work, and what the one that asks may use there. */
export interface AgentCards {
  agents: AgentCard[];
  grants?: string[];
}

/**
 * An agent. `problem` says why it cannot start.
 *
 * `asks` is true when it is known to ask before it acts, by its last session or because Freehold knows it; false when
 * it is not; null when only its first session can show it. `mode` is the one of that session, or the one it will be
 * put into. `may_act_unasked`: the manifest grants it the exception `unasked-agent`.
 */
export interface AgentInfo {
  name: string;
  title: string;
  installed: boolean;
  version: string | null;
  asks: boolean | null;
  mode: string | null;
  may_act_unasked: boolean;
  /** The model providers that it may use. */
  models: string[];
  /** The provider that it uses when a session names none. */
  model: string | null;
  default: boolean;
  problem: string | null;
}

/** The last offer of the agent. When `own` is false it was made to another session of the same agent. */
export interface AgentOffer {
  options: OfferedOptions | null;
  /** Commands that may follow a slash at the beginning of a prompt. */
  commands: OfferedCommand[];
  own: boolean;
  /** The name of the model that was chosen among the agent's own. The agent uses it, whatever model the session has. */
  chosen_model: string | null;
}

/** An agent whose programs were removed. Its sessions stay. */
export interface AgentRemoved {
  name: string;
}

export interface AgentSkill {
  id: string;
  name: string;
  description: string;
  tags: string[];
}

/**
 * The result of a test turn: seconds to each step, memory in bytes, and the capabilities that the agent reports.
 *
 * `kind` is the model API that it used. `asks`: it is known to ask before it acts, in the `mode` it was put into.
 */
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
  kind: string;
  mode: string | null;
  asks: boolean;
}

export interface Alive {
  alive?: true;
}

export interface AnswerApproval {
  answer: "once" | "conversation" | "always" | "reject";
  /** For a question: the text or the choice (with the answer `once`). Otherwise: the next prompt. */
  note?: string | null;
  /** The digest of the call that was seen. The answer is refused if another call waits. */
  digest?: string | null;
}

export interface AnswerDevice {
  allow: boolean;
}

/** `conversation` holds only for the session that asked, and is refused for a request of no session. */
export interface AnswerNetworkRequest {
  answer: "once" | "conversation" | "until_restart" | "always" | "never";
}

export interface AnswerWorkflow {
  step: string;
  answer: string;
}

/**
 * A permission request. `parts` has everything that the call carries; `digest` identifies all of it.
 *
 * `complete` is false when `hidden_bytes` of it are not shown. `names_nothing`: it names neither a command nor a
 * path. `runs_by_itself`: it touches a file that something runs by itself. `asked_again`: the call changed while the
 * former question waited, and that answer did not count. `details` has the command and its folder, for programs.
 * When `details.kind` is "question" the agent asks for text: `details.input` is the question, `details.options` are
 * the choices, and `details.free_text` says whether other text is accepted. With neither, the answer is yes or no.
 * `note` is the owner's text. `options` are the answers that this request accepts. `lasting_effect` says what
 * `conversation` and `always` allow, which is more than this call; null when there is no such answer, and for a host
 * tool.
 */
export interface ApprovalInfo {
  id: string;
  session: string;
  turn: number | null;
  at: string;
  state: "pending" | "answered" | "withdrawn" | "granted";
  answer: "once" | "conversation" | "always" | "reject" | null;
  note: string | null;
  options: ("once" | "conversation" | "always" | "reject")[];
  tool: string | null;
  kind: string;
  title: string;
  details: Record<string, unknown>;
  digest: string;
  parts: RequestPart[];
  complete: boolean;
  hidden_bytes: number;
  names_nothing: boolean;
  runs_by_itself: boolean;
  asked_again: boolean;
  agent_options: AgentAnswer[];
  lasting_effect: string | null;
}

/** Deny wins over ask, and ask over allow. Without a matching rule the owner is asked. */
export interface ApprovalPolicy {
  rules: PermissionRule[];
}

/** A verification, or a restore as a trial. */
export interface BackupCheck {
  at: string;
  problems: string[];
  /** Packs that were read back. */
  packs?: number | null;
  all_packs?: number | null;
  /** The backup that was restored. */
  number?: number | null;
}

export interface BackupFailure {
  at: string;
  code: string;
  message: string;
  hint: string;
}

export interface BackupStarted {
  work: "now" | "verify";
}

/** The state of the backups. */
export interface BackupState {
  enabled: boolean;
  to: string;
  after: number;
  keep: Record<string, number>;
  state: "off" | "ok" | "warning" | "failing";
  trouble: string | null;
  /** The work that is being done: now, verify, rehearse or prune. */
  running: string | null;
  /** When the first change was made that is in no backup. */
  pending: string | null;
  /** The size of all backups in bytes, as of the last verification. */
  stored: number | null;
  last: LastBackup | null;
  failure: BackupFailure | null;
  verification: BackupCheck | null;
  rehearsal: BackupCheck | null;
  recovery_key: RecoveryKey | null;
}

/** A work item. It is in progress exactly while somebody holds it; blocked while it waits for another item. */
export interface Bead {
  id: string;
  title: string;
  description: string;
  kind: "task" | "bug" | "feature" | "epic" | "chore";
  priority: number;
  status: "open" | "in_progress" | "closed";
  holder: string | null;
  parent: string | null;
  labels: string[];
  needs: string[];
  related: string[];
  sessions: string[];
  blocked: boolean;
  created: string;
  created_by: string;
  updated: string;
  closed: string | null;
  close_reason: string | null;
  evidence: string | null;
  version: number;
}

/** Who calls: the owner, or a token, and who acts by it. */
export interface BeadCaller {
  name: string;
}

/** One change in the history of an item. */
export interface BeadChange {
  version: number;
  at: string;
  who: string;
  action: string;
  fields: Record<string, unknown>;
}

export interface BeadComment {
  number: number;
  at: string;
  author: string;
  text: string;
}

/** An item with everything about it. `blocks` are the items that need it. */
export interface BeadDetails {
  bead: Bead;
  children: string[];
  blocks: string[];
  comments: BeadComment[];
  history: BeadChange[];
}

export interface BeadImport {
  created: number;
  replaced: number;
  /** Items that are as new here as their record, or newer. */
  kept: number;
}

/** Items by priority and age, those that are closed the last one first. Send `cursor` to get the next page; null on the last one. */
export interface BeadPage {
  beads: Bead[];
  cursor: string | null;
}

/** Items as records of beads' own JSON lines. */
export interface BeadRecords {
  records: Record<string, unknown>[];
  cursor: string | null;
}

/** The session that now works on an item. */
export interface BeadSession {
  bead: Bead;
  session: string;
  turn: number;
}

/** A state of the files that history recorded while a session worked on an item: `entry` is its number there. */
export interface BeadWork {
  entry: number;
  at: string;
  session: string;
  added: number;
  changed: number;
  removed: number;
}

/** An empty object. */
export interface BeginRecord {
}

/** The page that the browser wanted to open. */
export interface BeginSignIn {
  /** One of our own pages. The browser is sent there after the sign-in. */
  return_to?: string;
}

/**
 * One limit of a provider or of all (`*`). `unpriced` requests have an unknown price and are not counted in money;
 * `assumed` ones count as the dearest of their provider.
 *
 * `reached`: requests were refused or cut for it, and will be until it is lifted or raised.
 */
export interface BudgetState {
  scope: string;
  limit: "day_cost" | "month_cost" | "day_tokens" | "month_tokens";
  period: string;
  of: number;
  spent: number;
  unpriced: number;
  assumed: number;
  lifted: boolean;
  reached: boolean;
}

export interface BudgetsState {
  budgets: BudgetState[];
}

export interface CallMcpTool {
  tool: string;
  arguments: Record<string, unknown>;
}

export interface ChangeBead {
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

export interface ChangeSession {
  title?: string | null;
  archived?: boolean | null;
  /** Another agent, before the first prompt. */
  agent?: string | null;
  /** From the next prompt on: a name under [models], `NAME/MODEL`, or a model of the agent's provider. Empty for the default. */
  model?: string | null;
}

export interface ChangeSetting {
  key: string;
  /** Null takes the setting out of the manifest: its default is used. */
  value: boolean | number | string | string[] | null;
}

export interface ChangedNode {
  name: string;
  /** How many are on it; of a node that was removed, how many are lost. */
  computers: number;
}

export interface ChangedPath {
  path: string;
}

/**
 * One channel. `owner` is null until it is paired. `settings` has no secret.
 *
 * `waiting` messages are not sent yet; `dropped` had no place. `strangers` counts messages of anybody else, who get no
 * answer. `error` says why it is `away`.
 */
export interface ChannelInfo {
  name: string;
  kind: "email" | "matrix" | "nostr" | "telegram" | "webpush";
  settings: Record<string, unknown>;
  preferences: ChannelPreferences;
  owner: string | null;
  added: string;
  paired: string | null;
  state: "ok" | "away";
  since: string;
  error: string | null;
  waiting: number;
  strangers: number;
  dropped: number;
}

/** How the owner pairs a channel. `code` is null when it was sent through the channel and is typed in the page. */
export interface ChannelPairing {
  words: string;
  code: string | null;
  link: string | null;
  expires: string;
}

/** What is told through a channel, and when. */
export interface ChannelPreferences {
  tells: ("needs_you" | "finished" | "failed" | "budget" | "routine")[];
  quiet_from: string | null;
  quiet_until: string | null;
  zone: string;
  batch: number;
  words: boolean;
}

export interface ChannelRemoved {
  name: string;
}

/** The channel has taken a message. */
export interface ChannelTest {
  sent: boolean;
}

export interface ChosenLetters {
  /** None: all of them. */
  sequences?: number[];
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

export interface ClaimBead {
  /** The same request with the same key has its effect once. */
  key?: string | null;
  /** The owner can set this session on the item: it becomes the holder. */
  session?: string | null;
}

export interface CloseBead {
  reason: string;
  /** What shows that it is done; needed where a session has worked. */
  evidence?: string | null;
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

/** An event as CloudEvents 1.0 writes it in JSON. `sequence` is its place in the log, as 16 digits. */
export interface CloudEvent {
  sequence: string;
  specversion: string;
  id: string;
  source: string;
  type: string;
  time: string;
  datacontenttype: string;
  actor: string;
  subject?: string | null;
  timelineseq?: number | null;
  imported?: boolean;
  data: Record<string, unknown>;
}

/** `ended`: its variables are gone; reset it to go on. */
export interface CodeContext {
  id: string;
  language: string;
  label: string;
  state: "ready" | "busy" | "ended";
  created: string;
  executions: number;
}

export interface CodeContextDeleted {
  id: string;
}

/** `limit` names the limit that ended the code. `exit_code` is negative for a signal. */
export interface CodeEnd {
  error: CodeError | null;
  exit_code: number;
  limit: "memory" | "processor" | "wall_time" | "output" | "results" | "file_size" | "files" | null;
  duration: number;
  processor: number;
}

export interface CodeError {
  name: string;
  message: string;
  traceback: string;
}

/** What the code may reach besides the system's programs and libraries: nothing by default. */
export interface CodeGrants {
  files?: Record<string, "r" | "rw">;
  network?: boolean;
  packages?: string[];
}

/** The value of the last expression, something displayed, or a file. `data` is base64; one of the two is null. */
export interface CodeItem {
  role: "value" | "display" | "file";
  type: "json" | "text" | "bytes" | "table" | "image/png" | "image/jpeg" | "image/svg+xml";
  name: string;
  text: string | null;
  data: string | null;
}

/** What the code may use. Bytes, seconds and counts. */
export interface CodeLimits {
  memory?: number;
  processor?: number;
  wall_time?: number;
  output?: number;
  results?: number;
  file_size?: number;
  open_files?: number;
}

export interface CodeOutput {
  stream: "stdout" | "stderr";
  text: string;
}

/** One line of a stream; exactly one field is there. The last line has `end`, or `failure` if the code could not run. */
export interface CodePart {
  output?: CodeOutput | null;
  item?: CodeItem | null;
  end?: CodeEnd | null;
  failure?: CodeStreamError | null;
}

/** Everything that the code wrote, and how it ended. */
export interface CodeResult {
  error: CodeError | null;
  exit_code: number;
  limit: "memory" | "processor" | "wall_time" | "output" | "results" | "file_size" | "files" | null;
  duration: number;
  processor: number;
  stdout: string;
  stderr: string;
  items: CodeItem[];
}

export interface CodeStreamError {
  code: string;
  message: string;
  hint: string;
}

export interface CollectToken {
  device: string;
}

export interface CommentBead {
  text: string;
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

/** The difference in one path. `text` is a unified diff; it is empty when `note` says why there is none. */
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

/** The last state of one component. Errors and parts are shown only to the owner. */
export interface ComponentHealth {
  name: string;
  state: "ok" | "degraded" | "failed" | "off" | "starting";
  since: string;
  last_error: string | null;
  required: boolean;
  parts?: PartHealth[];
}

export interface ConfirmChannel {
  code: string;
}

/**
 * A provider. Its key is stored in the vault and never shown again.
 *
 * Without a key, one that is connected under this name keeps the key it has, at the same address only.
 */
export interface ConnectModel {
  kind: "openai" | "anthropic" | "gemini" | "openai-compatible";
  /** Needed for openai-compatible only. */
  base_url?: string | null;
  key?: string | null;
  /** Take the key from this variable, which `found` names. */
  variable?: string | null;
  auth?: "key" | "claude-code" | "codex";
  /** The model to use when none was chosen. */
  model?: string | null;
  /** Agents that name no provider use this one. */
  default?: boolean;
}

export interface CreateBead {
  title: string;
  description?: string;
  kind?: "task" | "bug" | "feature" | "epic" | "chore";
  /** 0 is first. */
  priority?: number;
  labels?: string[];
  parent?: string | null;
  needs?: string[];
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

export interface CreateCodeContext {
  language: "python" | "javascript" | "typescript" | "wasm";
  label?: string;
  limits?: CodeLimits;
  grants?: CodeGrants;
}

export interface CreateCommit {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
  message: string;
}

export interface CreateFolder {
  path: string;
}

export interface CreatePairingCode {
  /** What the neighbour may use here. */
  grants?: ("beads" | "pods" | "memory" | "events" | "work" | "register")[];
  /** Its name here; what it calls itself if missing. */
  name?: string | null;
}

/** The new token with its secret, which is not shown again. */
export interface CreatedToken {
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "beads" | "pods" | "memory" | "events" | "orchestrator" | "neighbour" | "routines" | "admin")[];
  created: string;
  expires: string | null;
  used: string | null;
  secret: string;
}

/** A credential of the manifest. Its secret is never shown. */
export interface Credential {
  name: string;
  host: string;
  /** The name of the secret in the vault. */
  secret: string;
  has_secret: boolean;
  header: string;
  /** All when empty. */
  paths: string[];
  /** All when empty. */
  methods: string[];
  writes: "ask" | "allow" | "deny";
  tools: string[];
  /** Variables that hold the placeholder inside the computer. */
  variables: string[];
  /** Whether TLS of sessions to this host ends at Freehold. */
  ends_tls: boolean;
  /** Requests that carried the secret since Freehold started. */
  uses: number;
  /** The last of them, newest first. */
  recent: CredentialUse[];
}

/** One request that carried the secret. `path` has no query. */
export interface CredentialUse {
  at: string;
  session: string;
  method: string;
  path: string;
}

/** An event that the sink did not take. */
export interface DeadLetter {
  sequence: number;
  event: CloudEvent;
  at: string;
  error: string;
  again: boolean;
}

export interface DeadLetterChange {
  count: number;
}

export interface DeadLetterPage {
  letters: DeadLetter[];
  cursor: number | null;
}

/** The digest of the tool as it was shown; null to allow it no longer. */
export interface DecideMcpTool {
  digest: string | null;
}

/** An empty object. */
export interface DecideWork {
}

export interface DeletedDocument {
  path: string;
}

/** Where events are sent, and how far that is. Without a sink they are kept here only. */
export interface Delivery {
  sink: string;
  target: string;
  state: "none" | "ok" | "away";
  since: string;
  delivered: number;
  waiting: number;
  dead: number;
  dropped: number;
  error: string | null;
}

export interface Deregister {
  session: string;
}

/** The result of the last examination. `problem` says why it did not finish. */
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
  attempts: EscapeAttempt[];
  exceptions?: TriedException[];
}

/** A running examination. `total` is 0 until it is known. */
export interface DoctorRun {
  since: string;
  quick: boolean;
  total: number;
  attempts: EscapeAttempt[];
}

export interface DoctorState {
  running: DoctorRun | null;
  last: DoctorReport | null;
}

/** A document or a folder, whose path ends with `/`. */
export interface Document {
  path: string;
  media: string | null;
  etag: string | null;
  size: number | null;
  modified: string | null;
}

/** An address of the API that a browser opens without a header. */
export interface Download {
  address: string;
}

export interface DrainNode {
  draining: boolean;
}

/**
 * The mode, the rules in force, the network requests that wait and the last decisions.
 *
 * `reach` of a rule is `manifest`, `always`, `until_restart` or `conversation`; a `conversation` rule names its
 * `session`. `session` of a network request is the session that asked, or null for a program of no session.
 */
export interface EgressState {
  mode: "deny" | "ask" | "allow";
  rules: Record<string, unknown>[];
  pending: Record<string, unknown>[];
  recent: Record<string, unknown>[];
  connections: number;
  counters: Record<string, number>;
}

/** An empty object. */
export interface EmptyObject {
}

/** How many sign-ins or tokens were ended. */
export interface EndedCount {
  ended: number;
}

/** One escape attempt. `unclear` counts as a failure: the attempt proved nothing. */
export interface EscapeAttempt {
  name: string;
  claim: string;
  outcome: "refused" | "escaped" | "unclear";
  seen: string;
}

export interface EventImport {
  created: number;
  kept: number;
}

/** Send `cursor` as `after` to read on. `missed` events after the cursor you sent are not kept any more. */
export interface EventPage {
  events: CloudEvent[];
  cursor: number;
  missed: number;
}

export interface EventRecords {
  records: Record<string, unknown>[];
  cursor: string | null;
}

/** The neighbour that was evicted. Its requests and streams end within a second. */
export interface EvictedNeighbour {
  name: string;
}

/** Code for a process of its own, what it may use and what it may reach. */
export interface ExecuteCode {
  code?: string;
  file?: string | null;
  module?: string | null;
  call?: string | null;
  arguments?: string[];
  timeout?: number | null;
  inputs?: Record<string, string>;
  outputs?: string[];
  language: "python" | "javascript" | "typescript" | "wasm";
  limits?: CodeLimits;
  grants?: CodeGrants;
}

/** A feature of this Freehold. */
export interface Feature {
  name: string;
  title: string;
  pages: FeaturePage[];
}

/** A page of the control center that belongs to a feature. */
export interface FeaturePage {
  path: string;
  title: string;
}

/**
 * A file that a run has changed. `conflict`: others have changed it too.
 *
 * `mode` has the type and the permissions that the file would have, as `st_mode`; null for one that is removed. `link`
 * is where a link leads. `runs_by_itself` says what starts such a file without anybody asking for it. `traits` is the
 * same in plain words.
 */
export interface FileChange {
  path: string;
  kind: "added" | "changed" | "removed";
  size: number;
  diff: string | null;
  conflict: boolean;
  mode: number | null;
  link: string | null;
  runs_by_itself: string | null;
  traits: string[];
}

/** A file, folder or link. */
export interface FileEntry {
  name: string;
  kind: "file" | "folder" | "link" | "other";
  size: number;
  modified: string;
  mode: number;
  target?: string | null;
  /** Changes when the contents change. Send it as If-Match when writing. */
  etag: string;
}

/** Entries of a folder, in the order of the bytes of their names. `next` is null on the last page. */
export interface FileList {
  path: string;
  entries: FileEntry[];
  /** Send it as `after` for the next page. */
  next: string | null;
}

export interface FileSearchResult {
  hits: TextHit[];
  more: boolean;
}

/** Everything below a folder, as `[path, kind, size]`. A folder comes before its contents. */
export interface FileTree {
  path: string;
  rows: [string, string, number][];
  complete: boolean;
}

/** What the fleet is doing. Empty while this Freehold is not the head of one. */
export interface Fleet {
  enabled: boolean;
  /** Whether room can be found now. Computers that run do not need it. */
  ready: boolean;
  nodes: FleetNode[];
  /** The first 500. */
  computers: FleetComputer[];
  /** The first 500, in the order of their turns. */
  waiting: FleetWait[];
  computer_count: number;
  waiting_count: number;
  machines: FleetMachine[];
  /** Why no machine can be started now. */
  trouble: string;
}

export interface FleetComputer {
  id: string;
  name: string;
  /** Whose share it counts for: the owner, or `session:` and an id. */
  who: string;
  /** The session whose agent works in it. */
  session: string | null;
  node: string;
  state: "waiting" | "copying" | "starting" | "running" | "ended";
  cpus: number;
  memory: number;
  gpus: number;
}

/** A machine that the autoscaler has started. Its name is that of its node. */
export interface FleetMachine {
  name: string;
  kind: string;
  state: "starting" | "joined" | "stopping";
  /** Why the command that ends it has failed. */
  trouble: string;
}

export interface FleetNode {
  name: string;
  address: string;
  state: "ready" | "draining" | "away";
  /** Why it gets no computers, when it is away. */
  trouble: string;
  labels: Record<string, string>;
  computers: number;
  cpus: number;
  free_cpus: number;
  /** The bytes that it offers to computers. */
  memory: number;
  free_memory: number;
  gpus: number;
  free_gpus: number;
}

/** A computer that waits for room. */
export interface FleetWait {
  id: string;
  name: string;
  who: string;
  session: string | null;
  priority: number;
  since: string;
  reason: string;
}

export interface ForgottenMemory {
  id: string;
}

/** A provider that could be connected at once. `variable` has its key; null when it needs none. It is not used yet. */
export interface FoundProvider {
  name: string;
  title: string;
  variable: string | null;
  address: string | null;
  models: string[];
  words: string;
}

/** `names` are branches and tags. */
export interface GitCommit {
  id: string;
  author: string;
  at: string;
  parents: string[];
  names: string[];
  subject: string;
}

/** A unified diff. `is_exact`: its text is the whole diff, so that parts of it can be staged. */
export interface GitDiff {
  text: string;
  is_exact: boolean;
}

/** The commit that HEAD names now; null before the first one. */
export interface GitDone {
  commit: string | null;
}

/** A changed file. `staged` and `unstaged` are git's letters, empty for no change; `?` is a file that git does not know. */
export interface GitFile {
  path: string;
  old_path: string | null;
  staged: string;
  unstaged: string;
  has_conflict: boolean;
}

/** The newest first. Send `next` as `skip` for more; it is null at the end. */
export interface GitLog {
  commits: GitCommit[];
  next: number | null;
}

/** What a model proposes as the message of a commit. */
export interface GitMessage {
  message: string;
}

/** `secret` is the name in the vault of the credentials for its host; null where none can be used: an address of SSH or a folder. */
export interface GitRemote {
  name: string;
  url: string;
  secret: string | null;
  has_credentials: boolean;
}

/** The folders of the workspace that are repositories or worktrees; `.` is the workspace itself. */
export interface GitRepositories {
  folders: string[];
}

/**
 * A repository. `branch` is null when HEAD is no branch; `commit` before the first commit.
 *
 * `is_cut`: it has more changed files. `unfinished` is an operation that waits, such as a merge with conflicts.
 * `message_model` is the model that can write a commit message; null when none is cheap or on this machine.
 */
export interface GitState {
  folder: string;
  commit: string | null;
  branch: string | null;
  upstream: string | null;
  ahead: number;
  behind: number;
  files: GitFile[];
  is_cut: boolean;
  branches: string[];
  worktrees: GitWorktree[];
  remotes: GitRemote[];
  unfinished: string | null;
  message_model: string | null;
}

/** A folder with a branch of the repository. `folder` is below the workspace; null when it is not. */
export interface GitWorktree {
  folder: string | null;
  branch: string | null;
  commit: string;
}

export interface GrantAccess {
  agent: string;
  folder: string;
  mode: "read" | "write";
  key?: string | null;
}

export interface HealthReport {
  ready: boolean;
  components: ComponentHealth[];
}

export interface Heartbeat {
  session: string;
  health?: string;
  load?: number;
}

export interface HeartbeatAnswer {
  alive?: true;
}

/** The changes of one entry, path by path. */
export interface HistoryChanges {
  entry: HistoryEntry;
  changes: Record<string, string>[];
  total: number;
}

/** The difference between two states. `old` is null before the first entry. `total` counts files that were left out too. */
export interface HistoryComparison {
  old: HistoryEntry | null;
  new: HistoryEntry;
  files: ComparedFile[];
  total: number;
}

/** The changes of one entry, line by line. */
export interface HistoryDiff {
  entry: HistoryEntry;
  files: Record<string, unknown>[];
  total: number;
}

/** One recorded state of the files: who, when, why, and how much changed. */
export interface HistoryEntry {
  id: number;
  at: string;
  kind: string;
  /** `by` is the kind of author; `via`, `sign_in`, `token` and `session` tell how an undo or restore was requested. */
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

/** What history has to tell the owner: what it could not store, moved aside, or is about to drop. */
export interface HistoryNotice {
  code: string;
  message: string;
  hint: string;
  at: string;
}

/** What was done: its own entry, the fate of each path, and each path that does not have the planned state. */
export interface HistoryOutcome {
  entry: HistoryEntry;
  /** How many paths were changed. */
  done: number;
  /** The same list as `steps` of the plan, with `failed` where it failed. */
  fates: Record<string, string>[];
  total: number;
  /** How many paths were restored, removed, adjusted, left alone or failed. */
  counts: Record<string, number>;
  /** The counts in words. */
  summary: string;
  unsettled: Record<string, string>[];
  total_unsettled: number;
}

/** Entries, newest first. */
export interface HistoryPage {
  entries: HistoryEntry[];
}

/** What would happen to every path. Nothing is changed. */
export interface HistoryPlan {
  kind: string;
  target: number;
  /** The fate of each path: `fate` is its code, `word` the fate in words, `detail` more about it. */
  steps: Record<string, string>[];
  total: number;
  /** How many paths would be restored, removed, adjusted or left alone. */
  counts: Record<string, number>;
  /** The counts in words. */
  summary: string;
  conflicts: Record<string, string>[];
  /** Others changed files during the reverted turn, so some of the changes may be theirs. */
  shared?: boolean;
}

/** The disk space that history uses. */
export interface HistorySize {
}

/** `run` is null for a message that has begun a run before. */
export interface HookAnswer {
  run: string | null;
}

/** A job of a neighbour. The same id begins it once only. */
export interface HostWork {
  id: string;
  prompt: string;
  title?: string | null;
  /** What it may cost, in US dollars, when that is less than allowed here. */
  budget?: number | null;
  /** What its agent may do at most. It never gets more than is allowed here. */
  permissions?: ("ask" | "network" | "pods" | "memory" | "beads" | "events" | "history" | "runs")[] | null;
}

export interface HostedEvent {
  seq: number;
  at: string;
  kind: string;
  data: Record<string, unknown>;
}

/**
 * How a job stands, and what its agent said and did since `after`.
 *
 * `lost`: this Freehold was restarted while the agent worked. `files`: an archive can be fetched.
 */
export interface HostedWork {
  state: string;
  error: string | null;
  lost: boolean;
  files: boolean;
  agent: string;
  /** In US dollars, as far as it is known. */
  cost: number | null;
  events?: HostedEvent[];
}

export interface ImportBeads {
  records: Record<string, unknown>[];
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

export interface ImportEvents {
  records: Record<string, unknown>[];
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

export interface ImportMemories {
  records: Record<string, unknown>[];
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

export interface ImportPods {
  records: Record<string, unknown>[];
  key?: string | null;
}

/** Of the other Freehold, which has a code that was made here. */
export interface Introduce {
  secret: string;
  challenge: string;
}

/** The Freehold that made a code. Compare the key with the one that its owner sees. */
export interface Introduction {
  url: string;
  npub: string;
  name: string;
  did: string | null;
  proof: "none" | "claimed" | "proven" | "refuted";
}

/** How a computer is isolated. `limits` names the mechanism that enforces each limit. */
export interface IsolationFacts {
  backend: string;
  version: string;
  runs_as: string;
  walls: string[];
  limits: Record<string, string>;
}

/**
 * A provider that Freehold knows. `address` is null when you have to say it.
 *
 * `local`: a program of your own on this machine, without a key. `agent`: the only agent that may use it.
 */
export interface KnownProvider {
  name: string;
  title: string;
  kind: "openai" | "anthropic" | "gemini" | "openai-compatible";
  auth: "key" | "claude-code" | "codex";
  address: string | null;
  key_page: string | null;
  local: boolean;
  agent: string | null;
  note: string;
}

export interface LastBackup {
  number: number;
  at: string;
  /** When it was last found that nothing has changed since. */
  checked: string;
  files: number;
  /** The bytes that it restores. */
  total: number;
  /** The bytes that were stored for it. */
  added: number;
  /** What was left out because it could not be read. */
  notes: string[];
}

/** Ignores a limit until the day or month is over. */
export interface LiftBudget {
  scope: string;
  limit: "day_cost" | "month_cost" | "day_tokens" | "month_tokens";
}

/**
 * `shipped`: those that come with Freehold. `proposals`: those that agents have written in the workspace.
 * `remote`: a git repository at `place`. `package`: of npm or PyPI, `npm:name@1.2.3` or `pypi:name==1.2.3`.
 */
export interface LookAtSkills {
  source: "shipped" | "proposals" | "remote" | "package";
  place?: string;
  /** A commit, tag or branch of a repository. */
  commit?: string | null;
}

/** A skill of a source, and how it differs from the version of the same name that is in use. */
export interface LookedSkill {
  content: SkillContent;
  source: SkillSource;
  /** The hash of the version that is in use; null when there is none. */
  in_use: string | null;
  changes: SkillChange[];
}

/** `refused`: folders that cannot be read as skills, with the reason. */
export interface LookedSource {
  skills: LookedSkill[];
  refused: Record<string, string>;
}

/** A warning about freehold.toml. It does not prevent a start. */
export interface ManifestAdvice {
  code: string;
  message: string;
  hint: string;
}

export interface ManifestSection {
  name: string;
  meaning: string;
  settings: ManifestSetting[];
}

/**
 * A setting. `value` and `default` are as the manifest writes them; null when there is none.
 *
 * `waits`: the value takes effect after a restart. `line` is where it is, or where its section begins.
 */
export interface ManifestSetting {
  key: string;
  kind: "text" | "number" | "truth" | "choice" | "list" | "size" | "duration" | "other";
  choices: string[];
  value: string | null;
  default: string | null;
  meaning: string;
  place: "default" | "file" | "overlay" | "environment";
  file: string;
  line: number | null;
  is_live: boolean;
  can_change: boolean;
  waits: boolean;
}

/** `path` is the manifest on the host. */
export interface ManifestSettings {
  path: string;
  sections: ManifestSection[];
}

export interface MarkGood {
  good?: boolean;
}

export interface MarkSessionSeen {
  /** The number of the last event that the owner has seen. */
  seq: number;
}

export interface McpAnswer {
  text: string;
  failed: boolean;
}

/** `on`: agents are offered its tools that are allowed. `tools` is empty until it was tried or used. */
export interface McpServer {
  name: string;
  kind: "inside" | "remote";
  place: string;
  on: boolean;
  /** `enabled` in the manifest. Without it the server cannot be switched on here. */
  enabled: boolean;
  asks: boolean;
  /** Whether you are signed in; null for a server without a sign-in. */
  signed_in: boolean | null;
  tools: McpTool[];
}

/** The address at which you sign in. It leads back to Freehold. */
export interface McpSignIn {
  address: string;
}

/** A tool as its server described it last. `digest` is over all of it. */
export interface McpTool {
  name: string;
  description: string;
  /** The JSON schema of its arguments. */
  parameters: string;
  digest: string;
  allowed: boolean;
  /** Whether it is no longer what the owner has allowed. It is then not offered. */
  changed: boolean;
}

/** The caller. */
export interface Me {
  who: string;
  did: string | null;
  handle: string | null;
  sign_in: string | null;
  /** The scopes of the API token; null for a browser, which has all scopes. */
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "beads" | "pods" | "memory" | "events" | "orchestrator" | "neighbour" | "routines" | "admin")[] | null;
  /** The address of the recovery page, on the machine itself. It works when the gateway does not. */
  recovery: string;
  /** The slots that are on. The pages of others are not in the navigation. */
  slots: string[];
  /** The features that are on. */
  features: string[];
}

/** One thing that is remembered. `used`: how often an agent was given it. Pinned ones begin every new session. */
export interface Memory {
  id: string;
  namespace: string;
  text: string;
  origin: MemoryOrigin;
  created: string;
  created_by: string;
  updated: string;
  expires: string | null;
  pinned: boolean;
  used: number;
  last_used: string | null;
  version: number;
}

export interface MemoryImport {
  created: number;
  replaced: number;
  /** Memories that are as new here as their record, or newer. */
  kept: number;
}

export interface MemoryMatch {
  memory: Memory;
  score: number;
  /** Exact words of the question that it has. */
  words: string[];
}

/** The best first. `by` says whether meanings were compared, or only words because meanings could not be had. */
export interface MemoryMatches {
  matches: MemoryMatch[];
  by: "meaning" | "words";
  /** How many memories can be found only by their words so far. */
  waiting: number;
}

export interface MemoryNamespace {
  name: string;
  memories: number;
}

/** Where a memory comes from. Only what the `owner` wrote or corrected is told to agents as the owner's word. */
export interface MemoryOrigin {
  kind: "owner" | "program" | "agent" | "tool" | "web";
  session: string | null;
  turn: number | null;
  note: string | null;
}

/** Memories, last changed first. Send `cursor` to get the next page; null on the last one. */
export interface MemoryPage {
  memories: Memory[];
  cursor: string | null;
}

export interface MemoryRecords {
  records: Record<string, unknown>[];
  cursor: string | null;
}

export interface MemoryStatus {
  namespaces: MemoryNamespace[];
  /** What makes meanings comparable. */
  embedding: string;
  waiting: number;
  /** Why meanings cannot be compared now; null when they can. */
  problem: string | null;
}

/** This Freehold as its neighbours see it. */
export interface Mesh {
  mode: "off" | "peer" | "client" | "host";
  name: string;
  npub: string;
  did: string | null;
  url: string | null;
  /** The address of its own relay. */
  relay: string | null;
  relays: RelayState[];
  registration: Registration | null;
}

/** A client of this host. */
export interface MeshClient {
  name: string;
  npub: string;
  registered: string;
  heard: string;
  version: string;
  image: string | null;
  contracts: Record<string, number>;
  /** What works there: some of `slots`, `work` and `relay`. */
  capabilities: string[];
  load: number;
  health: string;
  /** What it was given and what works here now. */
  slots: string[];
  /** What it was given here. */
  grants: ("beads" | "pods" | "memory" | "events" | "work" | "register")[];
}

export interface MeshKey {
  npub: string;
}

/** Version and configuration of this Freehold. */
export interface Meta {
  version: string;
  manifest_checksum: string;
  slots: Record<string, string>;
  /** The version of the contract of each slot that this version has. */
  slot_contracts: Record<string, number>;
  features: Feature[];
  metrics: string;
}

/** One reason why Freehold is not ready. */
export interface MissingRequirement {
  name: string;
  state: "absent" | "degraded" | "failed" | "off" | "starting";
  /** The error; shown only to the owner. */
  reason: string | null;
}

/** A wall that cannot be built on this machine, and how to get it. */
export interface MissingWall {
  wall: string;
  message: string;
  hint: string;
}

/** What was changed. `file` is the file that has it now: the manifest, or its overlay when it cannot be written. */
export interface ModelChanged {
  name: string;
  file: string;
  overlay: boolean;
}

/**
 * A provider of the manifest. `problem` says why it cannot be used now.
 *
 * `key` is the manifest's reference to its key (`secret:NAME` or `env:NAME`), never the key; null when it needs none.
 * `default` marks the provider of sessions that name none.
 */
export interface ModelProvider {
  name: string;
  kind: "openai" | "anthropic" | "gemini" | "openai-compatible";
  address: string;
  model: string | null;
  inside: string;
  key: string | null;
  auth: "key" | "claude-code" | "codex";
  /** The only agent that may use it: a subscription of its vendor. Null for all. */
  agent: string | null;
  default: boolean;
  problem: string | null;
}

/**
 * The result of asking a provider for its list of models with its key, which is free.
 *
 * `suggested` is the model for an owner who chooses none; null when there is none for text.
 * `said` is what the provider itself said about a failure; empty when it said nothing.
 */
export interface ModelTrial {
  name: string;
  ok: boolean;
  status: number;
  milliseconds: number;
  words: string;
  said: string;
  models: string[];
  offered: OfferedModel[];
  suggested: string | null;
}

/**
 * The providers. Without any, `help` says how to connect one.
 *
 * `unapplied` says why the manifest was changed and is not in force; null when it is.
 */
export interface ModelsState {
  models: ModelProvider[];
  help: string | null;
  stopped: boolean;
  unapplied: string | null;
}

/** One mount of the computer. History covers none. `words` say what is wrong, or nothing. */
export interface MountState {
  kind: string;
  source: string;
  target: string;
  writable: boolean;
  state: "starting" | "ready" | "failing" | "down";
  words: string;
}

export interface MoveFile {
  path: string;
  to: string;
  replace?: boolean;
}

/** A site of a feature, such as the editor. It starts when it is opened, and ends when nobody uses it. */
export interface NamedSite {
  name: string;
  enabled: boolean;
  running: boolean;
}

export interface NamedSites {
  sites: NamedSite[];
}

export interface Need {
  /** The item that must be closed first. */
  needs: string;
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

/**
 * Another Freehold. `grants` is what it may use here, `given` what this one may use there.
 *
 * `proof` says whether the DID that it names also names its key: `proven`, `refuted`, or only `claimed` so far.
 */
export interface Neighbour {
  name: string;
  npub: string;
  did: string | null;
  proof: "none" | "claimed" | "proven" | "refuted";
  url: string | null;
  grants: ("beads" | "pods" | "memory" | "events" | "work" | "register")[];
  given: ("beads" | "pods" | "memory" | "events" | "work" | "register")[];
  paired: string;
  seen: string | null;
}

export interface NeighbourGrants {
  grants: ("beads" | "pods" | "memory" | "events" | "work" | "register")[];
}

/** What a neighbour wrote, or an event of its timeline. It is data: nothing here acts on it. */
export interface NeighbourMessage {
  id: string;
  /** Its name; null for one that was evicted since. */
  neighbour: string | null;
  at: string;
  kind: "message" | "event";
  content: string;
}

/** A token to create. */
export interface NewToken {
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "beads" | "pods" | "memory" | "events" | "orchestrator" | "neighbour" | "routines" | "admin")[];
  /** Days until it expires; null for never. */
  days?: number | null;
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

/** A model of a provider. Prices are US dollars for a million tokens; null where they are not known. */
export interface OfferedModel {
  name: string;
  input_price: number | null;
  output_price: number | null;
  /** How many tokens it takes at once; null when that is not known. */
  window: number | null;
}

/** An option of the agent. Without choices it is on or off. */
export interface OfferedOption {
  id: string;
  name: string;
  category: string;
  type: string;
  value: string | boolean | null;
  choices: OfferedChoice[];
}

/** Modes in which the agent would act without asking are left out. `asks` says whether it asks now. */
export interface OfferedOptions {
  mode: string | null;
  modes: OfferedChoice[];
  model: string | null;
  models: OfferedChoice[];
  config: OfferedOption[];
  asks: boolean;
}

export interface OpenPreview {
  /** The path to open in the preview. */
  path?: string;
}

export interface OpenSession {
  /** Default: agents.default of the manifest. */
  agent?: string | null;
  title?: string | null;
  /** A name under [models], `NAME/MODEL`, or a model of the agent's provider. */
  model?: string | null;
  /** Where the agent works: a folder of the workspace, such as a git worktree. */
  folder?: string;
}

export interface OpenTerminal {
  rows?: number;
  columns?: number;
  folder?: string;
}

export interface PairChannel {
  /** Your own address, for Matrix and e-mail. For Nostr your `npub`, if only that may pair. */
  address?: string | null;
}

export interface PairNeighbour {
  code: string;
  /** What the neighbour may use here. */
  grants?: ("beads" | "pods" | "memory" | "events" | "work" | "register")[];
  /** Its name here; what it calls itself if missing. */
  name?: string | null;
}

/** A pairing code. It works once, for ten minutes. */
export interface PairingCode {
  code: string;
  npub: string;
  expires: string;
}

export interface PairingCodeText {
  code: string;
}

/** One of the things of which a component has several, as a relay of the mesh. */
export interface PartHealth {
  name: string;
  state: "ok" | "degraded" | "failed" | "off" | "starting";
  /** When it was last connected, or well in another way. */
  seen: string | null;
  error: string | null;
}

/** An `exact` rule matches one subject, any other a pattern with `*`. A rule with a session ends with it. */
export interface PermissionRule {
  id: number;
  effect: "allow" | "ask" | "deny";
  kind: string;
  pattern: string;
  exact: boolean;
  session: string | null;
}

/** An action to preview. */
export interface PlanHistory {
  action: "undo" | "redo" | "restore" | "revert";
  entry?: number | null;
  paths?: string[] | null;
  choose?: Record<string, "old" | "mine"> | null;
  since?: number | null;
  of?: SessionTurn | null;
}

export interface PlanRoutine {
  routine: RoutineSection;
  count?: number;
}

export interface PodAccess {
  number: number;
  at: string;
  who: string;
  agent: string | null;
  act: "read" | "list" | "write" | "delete" | "refused";
  path: string;
}

/** Who reached what, the newest first. Send `cursor` as `before` for older ones. */
export interface PodAccesses {
  entries: PodAccess[];
  cursor: number | null;
}

/**
 * An agent may reach everything in a folder. The root is the empty path.
 *
 * With a `session` only in this conversation; `once`: for one call of it.
 */
export interface PodGrant {
  agent: string;
  folder: string;
  mode: "read" | "write";
  granted: string;
  session: string | null;
  once: boolean;
}

export interface PodGrants {
  grants: PodGrant[];
}

export interface PodImport {
  created: number;
  replaced: number;
  kept: number;
}

/** Send `cursor` to get the next page; null on the last one. */
export interface PodPage {
  entries: Document[];
  cursor: string | null;
}

export interface PodRecords {
  records: Record<string, unknown>[];
  cursor: string | null;
}

/** `address` works once, within 30 seconds. `origin` is the origin of the preview. */
export interface PreviewAddress {
  address: string;
  origin: string;
}

/** The host of a preview that may have a certificate. */
export interface PreviewCertificate {
  domain: string;
}

/** A port in the computer that a program listens on. `process` and `service` are null when unknown. */
export interface PreviewPort {
  port: number;
  process: string | null;
  service: string | null;
}

/** The ports that can be previewed now. The topic `ports` has the same messages. */
export interface PreviewPorts {
  ports: PreviewPort[];
}

export interface Problem {
  error: { code: string; message: string; hint: string; error_id?: string };
}

/** One program. `since` is when its state began, `memory` is in bytes, `next_start_in` in seconds. */
export interface ProgramInfo {
  name: string;
  state: "stopped" | "idle" | "starting" | "ready" | "unhealthy" | "waiting" | "crash-looping" | "stopping";
  required: boolean;
  pid: number | null;
  since: string;
  restarts: number;
  memory: number | null;
  last_error: string | null;
  next_start_in: number | null;
  can_restart: boolean;
}

/**
 * All programs, and the isolation of the computer. `usage` is its present use; null means not measurable.
 *
 * `sleep` is null for a computer that never sleeps.
 */
export interface ProgramsState {
  version: string;
  home: string;
  ready: boolean;
  since: string | null;
  missing: string[];
  programs: ProgramInfo[];
  ports: ServedPort[];
  isolation: IsolationFacts | null;
  usage: Record<string, number | null> | null;
  sleep: SleepState | null;
  limits: Record<string, number>;
  mounts: MountState[];
  exceptions: SecurityException[];
  advice: ManifestAdvice[];
}

/** The turn of the prompt, and whether it waits: for the turn before, or until its agent may start. */
export interface PromptAccepted {
  turn: number;
  queued: boolean;
}

export interface PromptImage {
  mime: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  /** Base64. */
  data: string;
}

export interface ProposeMessage {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
}

export interface ProviderOffers {
  known: KnownProvider[];
  found: FoundProvider[];
}

export interface PublishEvent {
  type: string;
  data?: Record<string, unknown>;
  subject?: string | null;
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

export interface PublishedEvent {
  id: string;
  type: string;
  subject: string | null;
  at: string;
}

export interface PullBranch {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
  remote: string;
  url: string;
  /** A name of a branch that git accepts. */
  branch: string;
}

/** `url` and `commit` are what the owner saw: another address or commit is not used. */
export interface PushBranch {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
  remote: string;
  url: string;
  /** A name of a branch that git accepts. */
  branch: string;
  commit: string;
}

/** The public key with which a browser subscribes. */
export interface PushKey {
  key: string;
}

/** A browser that gets messages. `service` is the host of its push service. */
export interface PushSubscription {
  id: string;
  label: string;
  service: string;
  added: string;
}

/** `url` is the address of the index of an ACP registry, with https. */
export interface ReadRegistry {
  url: string;
}

/** Whether Freehold is ready, since when, and if not, why. */
export interface Readiness {
  ready: boolean;
  since?: string | null;
  requirements?: string[];
  missing?: MissingRequirement[];
}

/** The address that the browser must open next: there the owner agrees. */
export interface RecordRedirect {
  redirect: string;
}

/** What this machine knows of the recovery key: its public half. */
export interface RecoveryKey {
  recipient: string;
  made: string;
  tried: string | null;
}

/** Of the other Freehold, signed by its key. */
export interface RedeemCode {
  secret: string;
  challenge: string;
  statement: Record<string, unknown>;
  url?: string | null;
  grants?: string[];
}

/** It needs no field. */
export interface Redo {
  restore_id?: string | null;
}

/** What a client tells its host about itself. */
export interface Register {
  version: string;
  /** The digest of the lock of its image. */
  image?: string | null;
  /** The version of the contract of each of its slots. */
  contracts?: Record<string, number>;
  capabilities?: string[];
  load?: number;
  health?: string;
}

/** A place in the table of the host. `endpoints` are paths of the host. */
export interface Registered {
  session: string;
  /** Seconds between two heartbeats. After three missing ones the place is lost. */
  heartbeat: number;
  slots: string[];
  endpoints: Record<string, string>;
}

/** Where a client stands with its host. */
export interface Registration {
  host: string;
  state: "waiting" | "registered" | "away" | "evicted";
  error: string | null;
  since: string;
  /** What the host serves. */
  slots: string[];
}

/** An agent of an ACP registry. `package` is empty when it cannot be added; `why` says why. */
export interface RegistryAgent {
  id: string;
  name: string;
  version: string;
  license: string;
  description: string;
  package: string;
  program: string;
  arguments: string[];
  env: Record<string, string>;
  why: string;
}

/** A relay that this Freehold connects to. `seen` is when it last answered. */
export interface RelayState {
  url: string;
  state: "ok" | "away";
  error: string | null;
  since: string;
  seen: string | null;
  /** Events that it has not taken yet. */
  waiting: number;
}

export interface RemoveFile {
  path: string;
  recursive?: boolean;
}

export interface RemoveWorktree {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
  place: string;
}

export interface ReplaceKey {
  /** An nsec to use from now on; a new key if missing. */
  secret_key?: string | null;
}

export interface RequestBackup {
  work?: "now" | "verify";
}

/**
 * One part of a permission request, with hidden characters made visible.
 *
 * A diff has `old` and `new`; every other part has `text`. `resolved` is where `path` really leads, when that is
 * another place. `hidden_bytes` of this part are not shown. `runs_by_itself` says what runs the file or the command's
 * word without anybody starting it. `warning` is a sentence for the owner.
 */
export interface RequestPart {
  kind: "command" | "folder" | "environment" | "stdin" | "diff" | "path" | "text" | "input" | "resource" | "terminal" | "meta";
  label: string;
  text: string;
  path: string | null;
  resolved: string | null;
  old: string | null;
  new: string | null;
  hidden_bytes: number;
  runs_by_itself: string | null;
  warning: string | null;
}

export interface RequestSshCertificate {
  /** One line, as in id_ed25519.pub. */
  public_key: string;
  /** How long it is valid; by default, and at most, ssh.lifetime of the manifest. */
  hours?: number | null;
  /** Its name in the list. */
  label?: string;
}

export interface RequestSshKey {
  kind?: "ed25519" | "rsa";
  /** How long it is valid; by default, and at most, ssh.lifetime of the manifest. */
  hours?: number | null;
  label?: string;
}

/** A program's request for a token. */
export interface RequestToken {
  /** The name of the new token. */
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "beads" | "pods" | "memory" | "events" | "orchestrator" | "neighbour" | "routines" | "admin")[];
}

/** `begun` is false for the gateway itself: it answers before it restarts. */
export interface RestartStarted {
  name: string;
  begun: boolean;
  state: "stopped" | "idle" | "starting" | "ready" | "unhealthy" | "waiting" | "crash-looping" | "stopping" | null;
}

export interface Restore {
  restore_id?: string | null;
  entry: number;
  /** The paths to restore; all paths when empty. */
  paths?: string[];
}

export interface RestoreCancellation {
  /** `cancelled`: no file changes. `too-late`: files are being changed, and it is finished. `not-found`: it has ended, or has not arrived yet. */
  outcome: "cancelled" | "too-late" | "not-found";
}

/** How far an undo, redo, restore, revert or rewind is. */
export interface RestoreProgress {
  /** `restore_id` of the request that asked for it. */
  id: string;
  kind: "undo" | "redo" | "restore" | "revert" | "merge";
  /** `waiting` for other work on the files, `planning`, `preparing`, `changing` the files, `recording` the result. */
  phase: "waiting" | "planning" | "preparing" | "changing" | "recording";
  /** Steps of this phase that are done, about. */
  done: number;
  /** Steps of this phase; 0 when they are not counted. */
  total: number;
  /** No file has changed yet. */
  cancellable: boolean;
  /** The phase and its steps in words. */
  words: string;
}

export interface Retention {
  rules: RetentionRule[];
}

/** How long one kind of record is kept. */
export interface RetentionRule {
  name: string;
  title: string;
  /** The rule in words. */
  kept: string;
  /** What there is; empty when nothing is measured. */
  now: string;
  /** When old records were last moved to an archive, in UTC. Null when never. */
  last_archived: string | null;
  /** Files and folders on the host. */
  where: string[];
  /** The setting in freehold.toml that changes the rule. */
  setting: string | null;
}

export interface RetryWorkflow {
  /** From this step on; by default from where it ended. */
  step?: string | null;
}

export interface Revert {
  restore_id?: string | null;
  entry: number;
  /** Revert all changes after this entry, up to `entry`. */
  since?: number | null;
  /** The turn that is reverted. It is recorded with the new entry. With `since`, only changes of this turn are reverted. */
  of?: SessionTurn | null;
  /** For each path in conflict, the side to keep. */
  choose?: Record<string, "old" | "mine">;
}

export interface RevokeAccess {
  agent: string;
  folder: string;
  key?: string | null;
}

/** What was rewound, or with `dry_run` would be. `files` is the report of history. */
export interface RewindResult {
  turn: number;
  what: "files" | "chat" | "both";
  dry_run: boolean;
  files: Record<string, unknown> | null;
  events: number;
}

export interface RewindSession {
  turn: number;
  what: "files" | "chat" | "both";
  dry_run?: boolean;
  restore_id?: string | null;
}

/** One routine. `settings` has the keys that are set. `recent` are its last runs, the newest first. */
export interface Routine {
  name: string;
  source: string;
  state: "on" | "paused" | "over";
  reason: string | null;
  trigger: "cron" | "every" | "at" | "files" | "webhook" | "event" | "after" | "message";
  work: "prompt" | "command" | "checklist" | "workflow";
  next: string | null;
  zone: string;
  failures: number;
  session: string | null;
  cost: number;
  settings: Record<string, unknown>;
  last: RoutineRun | null;
  recent: RoutineRunMark[];
}

/** Where the requests go, and the secret that signs them. It is shown once. */
export interface RoutineHook {
  url: string;
  secret: string;
}

/** By name. Send `cursor` as `after` to get the next page; null on the last one. */
export interface RoutinePage {
  routines: Routine[];
  cursor: string | null;
}

export interface RoutineRemoved {
  name: string;
}

/** One run. `cost` in US dollars. `result` and `error` are null for a token that may not read what its work says. */
export interface RoutineRun {
  id: string;
  number: number;
  routine: string;
  state: "due" | "started" | "parked" | "done" | "failed" | "uncertain" | "skipped" | "cancelled";
  cause: string;
  due: string;
  begin: string;
  attempt: number;
  started: string | null;
  finished: string | null;
  session: string | null;
  turn: number | null;
  cost: number | null;
  quiet: boolean;
  result: string | null;
  error: string | null;
}

/** `data` is what the trigger told: it comes from outside. It is empty where `result` is left out. */
export interface RoutineRunDetails {
  id: string;
  number: number;
  routine: string;
  state: "due" | "started" | "parked" | "done" | "failed" | "uncertain" | "skipped" | "cancelled";
  cause: string;
  due: string;
  begin: string;
  attempt: number;
  started: string | null;
  finished: string | null;
  session: string | null;
  turn: number | null;
  cost: number | null;
  quiet: boolean;
  result: string | null;
  error: string | null;
  data: Record<string, unknown>;
}

/** A run in the strip of the last ones. */
export interface RoutineRunMark {
  id: string;
  state: "due" | "started" | "parked" | "done" | "failed" | "uncertain" | "skipped" | "cancelled";
  due: string;
  cost: number | null;
  quiet: boolean;
}

/** The newest first. Send `cursor` as `before` to get the next page; null on the last one. */
export interface RoutineRunPage {
  runs: RoutineRun[];
  cursor: number | null;
}

/** A trigger, a piece of work, and bounds. Exactly one trigger and one piece of work are set. */
export interface RoutineSection {
  /** Whether it may begin by itself. */
  enabled?: boolean;
  /** Trigger: times as cron writes them: minute, hour, day, month, weekday. */
  cron?: string | null;
  /** Trigger: again and again after this time. */
  every?: number | string | null;
  /** Trigger: once, at this time. */
  at?: string | null;
  /** Trigger: a file of the workspace that matches one of these patterns has changed. */
  files?: string[];
  /** Trigger: a signed request to /v1/hooks/NAME, as Standard Webhooks describes it. */
  webhook?: boolean;
  /** Trigger: an event of the events slot with this type; a * at the end stands for the rest. */
  event?: string | null;
  /** Trigger: the end of a run of another routine (`routine:NAME`), or of a turn of a session (`session:ID`, or `session` for any that no routine has begun). */
  after?: string | null;
  /** Trigger: a message of the owner on this channel; * for any channel. */
  message?: string | null;
  /** The time zone of cron, at and hours; by default that of this machine. */
  zone?: string | null;
  /** Work: a prompt to an agent. `{{ name }}` stands for what the trigger tells, always as quoted data. */
  prompt?: string | null;
  /** Work: a shell command in the computer. What the trigger tells is on its standard input, as JSON. */
  command?: string | null;
  /** Work: a file of the workspace with what to look after. The agent stays quiet when there is nothing to report, and is not even started while the file is empty. */
  checklist?: string | null;
  /** Work: a workflow, a Python file of the workspace. Its main gets what the trigger tells. */
  workflow?: string | null;
  /** The workflow runs only while its file has this SHA-256. A routine that an agent proposed always has it. */
  sha256?: string | null;
  /** The agent; by default agents.default. */
  agent?: string | null;
  /** The model; by default that of the agent. */
  model?: string | null;
  /** `new`: each run has a session of its own. `same`: all runs go on with one. Or the id of a session. */
  session?: string;
  /** US dollars that one run may cost, with its retries. It is ended at it. */
  budget?: number | null;
  /** US dollars that all runs of a day may cost. */
  budget_day?: number | null;
  /** How long a run may work. Then it is ended. The steps of a workflow have their own. */
  longest?: number | string;
  /** The part of the day in which it may begin. */
  hours?: string | null;
  /** What happens when the run before has not ended or waits for you: `skip` the new one, `queue` it, or `replace` the old one. */
  overlap?: "skip" | "queue" | "replace";
  /** Which of the times that passed while everything was off are made up for. */
  missed?: "skip" | "one" | "all";
  /** How many at most, with missed = "all". */
  missed_most?: number;
  /** How many runs may be triggered in an hour, from outside or by hand. Times of its own do not count. */
  most_per_hour?: number;
  /** How often a run that failed is tried again. */
  retries?: number;
  /** How long the first retry waits. Each further one waits twice as long. */
  retry_delay?: number | string;
  /** Failures in a row after which it is paused. */
  pause_after?: number;
  /** What happens when the agent asks for a permission: `park` lets the run wait for you, `refuse` answers no. Your rules for permissions count as always. */
  asks?: "park" | "refuse";
}

/** When the routine would begin; empty when it does not begin at times. */
export interface RoutineTimes {
  times: string[];
  zone: string;
}

/**
 * One agent with one prompt, in a throw-away computer. `cost` includes that of the runs below it.
 *
 * `lost`: it has ended because the process that ran it died. `entry` is the entry of history whose state it began with;
 * null: as the folder was when it began.
 */
export interface Run {
  id: string;
  session: string;
  agent: string;
  title: string;
  state: "starting" | "working" | "needs_you" | "done" | "failed" | "ended";
  parent: string | null;
  depth: number;
  folder: string | null;
  budget: number | null;
  cost: number | null;
  created: string;
  finished: string | null;
  error: string | null;
  added: number;
  changed: number;
  removed: number;
  outcome: "pending" | "none" | "merged" | "dropped";
  computer: string;
  permissions: ("ask" | "network" | "pods" | "memory" | "beads" | "events" | "history" | "runs")[];
  began_by: string;
  lost: boolean;
  entry: number | null;
}

/** `total` counts all changes; `files` may hold only the first of them. */
export interface RunChanges {
  run: Run;
  files: FileChange[];
  total: number;
}

/**
 * `inputs` are files for the code's folder, in base64. `outputs` are patterns of files there that come back.
 *
 * `file` is a file of the computer to run instead of the code; relative paths are below the workspace.
 * The code of `wasm` is the text of a module, or a `module` in base64. `call` calls a function of it: `add(40, 2)`.
 * `timeout` shortens `limits.wall_time` for this run. For more time, raise that limit.
 */
export interface RunCode {
  code?: string;
  file?: string | null;
  module?: string | null;
  call?: string | null;
  arguments?: string[];
  timeout?: number | null;
  inputs?: Record<string, string>;
  outputs?: string[];
}

export interface RunEvent {
  seq: number;
  at: string;
  kind: string;
  data: Record<string, unknown>;
}

/** Send `cursor` as `after` to read on. */
export interface RunEvents {
  run: Run;
  events: RunEvent[];
  cursor: number;
}

/**
 * The newest first. Send `cursor` to get the next page; null on the last one.
 *
 * `cost` is what all runs of `parent`, or all runs, have cost so far as it is known, with the runs below them.
 */
export interface RunPage {
  runs: Run[];
  cursor: string | null;
  cost: number;
}

export interface RunRoutine {
  /** What the run is told, as data. */
  text?: string | null;
}

export interface RunWorkflow {
  /** A Python file, from the workspace on. */
  file: string;
  /** What its main is called with. */
  data?: Record<string, unknown>;
  /** US dollars that its agents may cost. */
  budget?: number | null;
  /** What happens when an agent asks for a permission: it waits for you, or gets a no. */
  asks?: "park" | "refuse";
}

export interface SearchMemories {
  /** A question, or some words. */
  query: string;
  /** Default: all. */
  namespaces?: string[];
  limit?: number;
}

/** A secret by its name. Its value is never shown. */
export interface SecretInfo {
  name: string;
  set_at: string;
  used_at: string | null;
}

export interface SecretName {
  name: string;
}

/** A protection that the manifest lowers. `adds` is everything that it adds to the computer, in sentences. */
export interface SecurityException {
  name: string;
  reason: string;
  until: string | null;
  why: string;
  adds: string[];
}

export interface SendMessage {
  text: string;
}

export interface SendPrompt {
  /** May be empty beside an image. */
  text: string;
  files?: string[];
  images?: PromptImage[];
  /** Chosen by the client. A second prompt with the same key makes no second turn. It does not begin with `approval:`, `channel:`, `routine:` or `workflow:`. */
  key: string;
  /** While a turn runs: `steer` stops it, the others wait for its end. */
  when?: "now" | "queue" | "steer";
}

export interface SendWork {
  neighbour: string;
  prompt: string;
  title?: string | null;
}

/** `id` is that of the encrypted event, which goes to the relays as soon as they are reached. */
export interface SentMessage {
  id: string;
}

/** Work that was sent to a neighbour. `entry` is the entry of history that has its files, once accepted. */
export interface SentWork {
  id: string;
  /** Its name; null for one that was evicted since. */
  neighbour: string | null;
  title: string;
  state: "sending" | "working" | "returned" | "done" | "failed" | "lost" | "ended" | "accepted" | "dropped";
  error: string | null;
  created: string;
  finished: string | null;
  entry: number | null;
  folder: string | null;
}

export interface SentWorkDetails {
  work: SentWork;
  events: HostedEvent[];
  files: SentWorkFile[];
}

/** A file that work has made. `text` is null for one that is not a short text. */
export interface SentWorkFile {
  path: string;
  size: number;
  is_program: boolean;
  /** What starts such a file without anybody asking for it. */
  runs_by_itself: string | null;
  text: string | null;
}

export interface ServedPort {
  name: string;
  host: string;
  port: number;
}

/** The session that was deleted. */
export interface SessionDeleted {
  id: string;
}

/** One session event. The guide describes the kinds and their data. */
export interface SessionEvent {
  seq: number;
  at: string;
  turn: number | null;
  kind: string;
  data: Record<string, unknown>;
}

/** Events, oldest first. Send `next` as `after` for more; it is null at the end. */
export interface SessionEvents {
  events: SessionEvent[];
  next: number | null;
  /** Text that is streaming now; only with the newest events. */
  streaming: StreamingText[];
}

/**
 * One conversation with one agent. `seq` is the number of its last event.
 *
 * `unread`: there is a message, a question or the end of a turn after the last event that was marked as seen.
 * `asks`: whether its agent is known to ask before it acts, in its `mode`; null before the agent's first start.
 * `folder`: where its agent works, below the workspace; empty for the workspace itself.
 * `waiting`: its place in the queue, while its agent may not start yet.
 */
export interface SessionInfo {
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
  mode: string | null;
  asks: boolean | null;
  folder: string;
  waiting: WaitingPlace | null;
}

/** Sessions, last changed first. Send `next` as `cursor` for more. */
export interface SessionPage {
  sessions: SessionInfo[];
  next: string | null;
}

/** A turn of a session. Its changes can be in more than one entry. */
export interface SessionTurn {
  session: string;
  turn: number;
}

/** The limits of a provider or of all (`*`), in place of the manifest's. One that is left out is not limited. */
export interface SetBudget {
  scope: string;
  day_cost?: number | null;
  month_cost?: number | null;
  day_tokens?: number | null;
  month_tokens?: number | null;
}

export interface SetChannelPreferences {
  tells: ("needs_you" | "finished" | "failed" | "budget" | "routine")[];
  /** `22:00`, in `zone`. */
  quiet_from?: string | null;
  quiet_until?: string | null;
  zone?: string;
  /** Seconds for which news is collected. */
  batch?: number;
  /** Whether messages have the words of agents. */
  words?: boolean;
}

export interface SetOption {
  id: string;
  value: string | boolean;
}

export interface SetSecret {
  value: string;
}

/** A file as it was. A large file is cut, and `more` is true. */
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
export interface SignInInfo {
  id: string;
  label: string;
  address: string;
  method: string;
  created: string;
  seen: string;
  expires: string;
  current: boolean;
}

/** The token of a sign-in link. */
export interface SignInLinkToken {
  token: string;
}

/** The ways to sign in here. */
export interface SignInOptions {
  atproto: AccountSignIn | null;
  link: boolean;
}

/** The address that the browser must open next. */
export interface SignInRedirect {
  redirect: string;
}

export interface SignalWorkflow {
  name: string;
  data?: Record<string, unknown>;
}

/** This browser is signed in. */
export interface SignedIn {
  /** The page keeps it in its own storage and sends it as `Authorization: Sign-In KEY`. */
  key: string;
  /** The page to open now: one of our own. */
  return_to: string;
}

export interface SignedOut {
  done?: boolean;
}

/** One skill that the owner has added. `digest` is the hash of all its files. */
export interface Skill {
  name: string;
  description: string;
  digest: string;
  size: number;
  files: number;
  source: SkillSource;
  added: string;
  on: boolean;
  use: SkillUse;
}

/** One file that an update would change. `diff` is null for one that is not a short text. */
export interface SkillChange {
  path: string;
  word: string;
  diff: string | null;
}

/** What one version of a skill has in it. `allowed_tools` is its author's wish: it allows nothing. */
export interface SkillContent {
  name: string;
  description: string;
  digest: string;
  size: number;
  license: string | null;
  compatibility: string | null;
  allowed_tools: string | null;
  metadata: Record<string, string>;
  instructions: string;
  files: SkillFile[];
  scripts: SkillScript[];
  findings: SkillFinding[];
}

export interface SkillDetails {
  skill: Skill;
  content: SkillContent;
}

export interface SkillFile {
  path: string;
  size: number;
  executable: boolean;
}

/** `refused`: such a skill cannot be added. `noted`: the owner decides. */
export interface SkillFinding {
  level: "refused" | "noted";
  path: string;
  line: number | null;
  words: string;
}

/** `enabled`: `[skills] enabled`; without it agents are shown none of them. */
export interface SkillList {
  enabled: boolean;
  skills: Skill[];
}

export interface SkillNames {
  names: string[];
}

/** A file that can be run, and what would run it. */
export interface SkillScript {
  path: string;
  runs: string;
  size: number;
}

/** Where a skill came from. `part` is its folder in the source; `commit` the commit of a repository. */
export interface SkillSource {
  kind: "folder" | "archive" | "git" | "remote" | "package" | "shipped" | "proposal";
  place: string;
  part: string;
  commit: string | null;
}

/** `text` is null for a file that is not a text. */
export interface SkillText {
  path: string;
  text: string | null;
}

/** `count` is the number of turns in which it was loaded. `agents`: by the name of the agent. */
export interface SkillUse {
  count: number;
  last: string | null;
  agents: Record<string, number>;
}

/** The sleep of the computer. `after`, `seconds` (asleep since its start) in seconds, `given_back` in bytes. */
export interface SleepState {
  after: number;
  asleep: boolean;
  since: string | null;
  given_back: number | null;
  times: number;
  seconds: number;
  trouble: string | null;
}

/** One slot. `implementation` is what keeps it, and `error` why it cannot be reached. */
export interface Slot {
  name: string;
  mode: "local" | "external" | "off";
  implementation: string;
  state: "off" | "starting" | "ok" | "unavailable";
  since: string;
  error: string | null;
  required: boolean;
  privacy: "strict" | "soft" | "off";
  /** The version of its contract; null when this version has no such slot. */
  contract: number | null;
}

export interface SpawnRun {
  prompt: string;
  /** Default: the default agent. */
  agent?: string | null;
  model?: string | null;
  title?: string | null;
  /** A folder of the workspace of which it gets a copy. */
  folder?: string | null;
  /** It is ended when it has cost more. */
  budget?: number | null;
  /** What it may do besides working in its computer. Default: everything. Without ask, what it asks is answered with no. */
  permissions?: ("ask" | "network" | "pods" | "memory" | "beads" | "events" | "history" | "runs")[] | null;
  /** The folder as it was right after this entry of history. Default: as it is now. Needs the scope history. */
  entry?: number | null;
  key?: string | null;
}

/** The certificate, and the configuration that a client needs to use it. */
export interface SshCertificate {
  id: string;
  certificate: string;
  key_id: string;
  expires: string;
  known_hosts: string;
  config: string;
}

/** A certificate, or a plain key for a client without certificate support. */
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

/** A new key pair. The private key is in this reply and is not stored. */
export interface SshKey {
  id: string;
  private_key: string;
  public_key: string;
  expires: string;
  known_hosts: string;
  config: string;
}

/** The revoked credential. Its connections end within a second. */
export interface SshRevoked {
  id: string;
}

/** The address of the SSH server and its host key. */
export interface SshServer {
  enabled: boolean;
  host: string;
  port: number;
  user: string;
  fingerprint: string;
  known_hosts: string;
  forwarding: boolean;
  /** The number of open connections; null when the server does not answer. */
  connected: number | null;
}

export interface StageFiles {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
  files: string[];
  /** True to stage, false to take out of the index. */
  staged: boolean;
}

export interface StageHunk {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
  /** One file's part of a diff, with its head. */
  patch: string;
  /** True to stage, false to take out of the index. */
  staged: boolean;
}

/** `quick` skips the attempts to use up memory, disk and processes. */
export interface StartDoctor {
  quick?: boolean;
}

/** A statement of this Freehold's key, signed. */
export interface Statement {
  statement: Record<string, unknown>;
  grants?: ("beads" | "pods" | "memory" | "events" | "work" | "register")[];
}

export interface StopAgents {
  why?: string;
}

export interface StopRun {
  key?: string | null;
}

/**
 * Whether the kill switch is on, since when, who pulled it and why.
 *
 * `summary` says what it ended, what keeps running and what it could not end. None while it is at work.
 */
export interface StopState {
  stopped: boolean;
  at: string | null;
  who: string | null;
  why: string | null;
  summary: string | null;
}

export interface StoreMemory {
  text: string;
  /** shared, project:NAME or agent:NAME. */
  namespace?: string;
  /** When it is forgotten. */
  expires?: string | null;
  /** Given to every new session. Only for the owner. */
  pinned?: boolean;
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

/** A message or thought that is still streaming and not an event yet. The rest follows as deltas. */
export interface StreamingText {
  kind: "message" | "thought";
  id: string;
  /** The position of this text in the message, in characters. */
  at: number;
  text: string;
}

export interface SwitchBranch {
  /** The folder of the repository, below the workspace; `.` for the workspace itself. */
  folder: string;
  /** A name of a branch that git accepts. */
  branch: string;
  is_new?: boolean;
}

export interface SwitchMcpServer {
  on: boolean;
}

export interface SwitchSkill {
  /** Whether agents are shown it. */
  on: boolean;
}

export interface TakeChanges {
  how: "merge" | "drop";
  /** Overwrite what others have changed meanwhile. */
  force?: boolean;
  key?: string | null;
}

export interface TerminalClosed {
  id: string;
}

/** A terminal that is open, or that has ended and was not viewed since. */
export interface TerminalInfo {
  id: string;
  command: string[];
  rows: number;
  columns: number;
  began: string;
  viewers: number;
  ended: boolean;
}

/**
 * A line that matched. Lines and columns count from 1.
 *
 * `text` is the begin of the line. When the match is far from it, it is the part around the match, after an ellipsis.
 */
export interface TextHit {
  path: string;
  line: number;
  column: number;
  text: string;
}

/** One timeline event. */
export interface TimelineEvent {
  seq: number;
  at: string;
  kind: string;
  who: string;
  data: Record<string, unknown>;
  hash: string;
}

/** Events in order. `next` is null at the end. */
export interface TimelineEvents {
  events: TimelineEvent[];
  /** Send it as `after` for the next page, or as `before` when the request had `before`. */
  next: number | null;
}

/** The owner's answer. `token` is returned once, with `allowed`. */
export interface TokenAnswer {
  answer: "waiting" | "allowed" | "denied";
  token?: string | null;
}

/** One API token. Its secret is shown only when it is created. */
export interface TokenInfo {
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "beads" | "pods" | "memory" | "events" | "orchestrator" | "neighbour" | "routines" | "admin")[];
  created: string;
  expires: string | null;
  used: string | null;
}

/** Show `code` and `address` to the owner, and collect the answer every `interval` seconds. */
export interface TokenRequested {
  device: string;
  code: string;
  address: string;
  interval: number;
  expires_in: number;
}

/** The tour begins when `prompt` is sent to the session. */
export interface Tour {
  session: string;
  prompt: string;
}

/** What an exception of the manifest allows, used once, sealed. `adds` is everything that it adds. */
export interface TriedException {
  name: string;
  adds: string[];
  is_right: boolean;
  seen: string;
}

export interface Undo {
  restore_id?: string | null;
  /** Go back to before this entry. Default: the last entry. */
  entry?: number | null;
}

/** Only the fields that are given are set. */
export interface UpdateBead {
  title?: string | null;
  description?: string | null;
  kind?: "task" | "bug" | "feature" | "epic" | "chore" | null;
  priority?: number | null;
  labels?: string[] | null;
  /** Empty: it has no parent any more. */
  parent?: string | null;
  /** Refused if it has another version. */
  version?: number | null;
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

/** Only the fields that are given are set. */
export interface UpdateMemory {
  text?: string | null;
  namespace?: string | null;
  expires?: "never" | string | null;
  pinned?: boolean | null;
  /** Refused if it has another version. */
  version?: number | null;
  /** The same request with the same key has its effect once. */
  key?: string | null;
}

/**
 * Usage. `cost` is null when any price is unknown; `priced` is the cost of the requests with a known price.
 *
 * `assumed` requests have no price in the table and count as the dearest of their provider. For `estimated` requests the
 * provider reported no tokens; one that was broken off counts with the most that it allowed.
 */
export interface UsageLine {
  key: (string | null)[];
  requests: number;
  input: number;
  output: number;
  cached: number;
  cost: number | null;
  priced: number;
  assumed: number;
  estimated: number;
}

/** Rows grouped by day; day, provider and model; provider and model; provider; session; or session and turn. Newest first. */
export interface UsageReport {
  by: "day" | "day_model" | "model" | "provider" | "session" | "turn";
  rows: UsageLine[];
}

/** The waiting program, as the owner sees it before answering. */
export interface WaitingDevice {
  code: string;
  name: string;
  scopes: ("read" | "prompt" | "files" | "terminal" | "history" | "beads" | "pods" | "memory" | "events" | "orchestrator" | "neighbour" | "routines" | "admin")[];
  address: string;
}

/**
 * A place in the queue of agents that wait to start, from 1. `message` says all of it in a sentence.
 *
 * `reason`: the computer's `memory` holds no more, or the `count` of agents is the most, or agents start one after
 * another (`starts`). `running` counts the agents that work now.
 */
export interface WaitingPlace {
  place: number;
  of: number;
  running: number;
  reason: "memory" | "count" | "starts";
  message: string;
}

export interface WorkOnBead {
  /** Default: the default agent. */
  agent?: string | null;
  model?: string | null;
}

/** One workflow. `run` is the run of a routine that began it. `cost` in US dollars. `error` is null without the scope prompt. */
export interface Workflow {
  id: string;
  number: number;
  file: string;
  name: string;
  state: "due" | "working" | "waiting" | "done" | "failed" | "uncertain" | "changed" | "cancelled";
  who: string;
  run: string | null;
  created: string;
  started: string | null;
  finished: string | null;
  budget: number | null;
  cost: number | null;
  error: string | null;
}

/** `output` is the end of what its file has printed. */
export interface WorkflowDetails {
  id: string;
  number: number;
  file: string;
  name: string;
  state: "due" | "working" | "waiting" | "done" | "failed" | "uncertain" | "changed" | "cancelled";
  who: string;
  run: string | null;
  created: string;
  started: string | null;
  finished: string | null;
  budget: number | null;
  cost: number | null;
  error: string | null;
  data: Record<string, unknown>;
  result: unknown;
  output: string | null;
  digest: string | null;
  steps: WorkflowStep[];
}

export interface WorkflowFile {
  path: string;
  word: string;
}

/** The newest first. Send `cursor` as `before` to get the next page; null on the last one. */
export interface WorkflowPage {
  workflows: Workflow[];
  cursor: number | null;
}

/**
 * One step. `place` is its number, such as 3, or 3.2.1 for the first of the second branch of a gather.
 *
 * `wake` is when it goes on by itself. A long `result` is cut, and is text then. `files` are the first of what it has changed; `entry` is its entry of history.
 */
export interface WorkflowStep {
  place: string;
  kind: "step" | "command" | "agent" | "ask" | "sleep" | "event";
  title: string;
  state: "begun" | "waiting" | "done" | "failed" | "uncertain" | "cancelled";
  attempt: number;
  begun: string;
  finished: string | null;
  wake: string | null;
  session: string | null;
  turn: number | null;
  cost: number | null;
  question: string | null;
  choices: string[];
  result: unknown;
  error: string | null;
  entry: number | null;
  files: WorkflowFile[];
  files_total: number;
}

export interface WriteApprovalPolicy {
  rules: WritePermissionRule[];
}

export interface WritePermissionRule {
  effect: "allow" | "ask" | "deny";
  kind: string;
  pattern: string;
  exact?: boolean;
}

export interface WrittenFile {
  path: string;
  size: number;
  etag: string;
}
