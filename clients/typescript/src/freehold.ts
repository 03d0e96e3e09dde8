/** The entry point of the client: one Freehold with its resources. */

import { Agents } from "./agents.ts";
import type { EndedCount, HealthReport, Me, Meta, Slot } from "./api.ts";
import { Backup } from "./backup.ts";
import { Beads } from "./beads.ts";
import { Budgets } from "./budgets.ts";
import { Channels } from "./channels.ts";
import { Code } from "./code.ts";
import { Connection } from "./connection.ts";
import { SignIns, Tokens } from "./credentials.ts";
import { Egress } from "./egress.ts";
import { Events } from "./events.ts";
import { Files } from "./files.ts";
import { Fleet } from "./fleet.ts";
import { Git } from "./git.ts";
import { History } from "./history.ts";
import { Credentials } from "./hostCredentials.ts";
import { KillSwitch } from "./killSwitch.ts";
import { Mcp } from "./mcp.ts";
import { Memory } from "./memory.ts";
import { Mesh } from "./mesh.ts";
import { Models } from "./models.ts";
import { Pods } from "./pods.ts";
import { Preview } from "./preview.ts";
import { Programs } from "./programs.ts";
import { Routines } from "./routines.ts";
import { Runs } from "./runs.ts";
import { Secrets } from "./secrets.ts";
import { Sessions } from "./sessions.ts";
import { Skills } from "./skills.ts";
import type { Wire } from "./socket.ts";
import { Ssh } from "./ssh.ts";
import { Timeline } from "./timeline.ts";
import { followTopic, type TopicMessage } from "./topic.ts";
import { Usage } from "./usage.ts";
import { Workflows } from "./workflows.ts";

export interface FreeholdOptions {
  /** An API token, as `freehold login` or the page gives it. */
  token: string;
}

/** What the resources share. */
export interface Link {
  connection: Connection;
  follow: (topic: string, after: number | null) => AsyncGenerator<TopicMessage>;
}

/** Each resource is an attribute, with the same names as in the Python client. Failures are `RequestFailed`. */
export class Freehold {
  readonly url: string;
  readonly agents: Agents;
  readonly models: Models;
  readonly signIns: SignIns;
  readonly tokens: Tokens;
  readonly timeline: Timeline;
  readonly egress: Egress;
  readonly files: Files;
  readonly history: History;
  readonly preview: Preview;
  readonly skills: Skills;
  readonly mcp: Mcp;
  readonly credentials: Credentials;
  readonly mesh: Mesh;
  readonly ssh: Ssh;
  readonly code: Code;
  readonly channels: Channels;
  readonly sessions: Sessions;
  readonly beads: Beads;
  readonly memory: Memory;
  readonly events: Events;
  readonly pods: Pods;
  readonly runs: Runs;
  readonly backup: Backup;
  readonly fleet: Fleet;
  readonly routines: Routines;
  readonly workflows: Workflows;
  readonly budgets: Budgets;
  readonly git: Git;
  readonly killSwitch: KillSwitch;
  readonly programs: Programs;
  readonly secrets: Secrets;
  readonly usage: Usage;
  private readonly connection: Connection;

  constructor(url: string, options: FreeholdOptions) {
    this.url = readAddress(url);
    const headers = { authorization: `Bearer ${options.token}` };
    const connection = new Connection(this.url, () => headers);
    const open = () => openWire(this.url, headers);
    const link: Link = { connection, follow: (topic, after) => followTopic(connection, open, topic, after) };
    this.connection = connection;
    this.agents = new Agents(link);
    this.models = new Models(link);
    this.signIns = new SignIns(link);
    this.tokens = new Tokens(link);
    this.timeline = new Timeline(link);
    this.egress = new Egress(link);
    this.files = new Files(link);
    this.history = new History(link);
    this.preview = new Preview(link);
    this.skills = new Skills(link);
    this.mcp = new Mcp(link);
    this.credentials = new Credentials(link);
    this.mesh = new Mesh(link);
    this.ssh = new Ssh(link);
    this.code = new Code(link);
    this.channels = new Channels(link);
    this.sessions = new Sessions(link);
    this.beads = new Beads(link);
    this.memory = new Memory(link);
    this.events = new Events(link);
    this.pods = new Pods(link);
    this.runs = new Runs(link);
    this.backup = new Backup(link);
    this.fleet = new Fleet(link);
    this.routines = new Routines(link);
    this.workflows = new Workflows(link);
    this.budgets = new Budgets(link);
    this.git = new Git(link);
    this.killSwitch = new KillSwitch(link);
    this.programs = new Programs(link);
    this.secrets = new Secrets(link);
    this.usage = new Usage(link);
  }

  /** The caller and its scopes. */
  me(): Promise<Me> {
    return this.connection.get("/v1/me");
  }

  /** Revoke the token of this client. */
  async signOut(): Promise<void> {
    await this.connection.delete<EndedCount>("/v1/me");
  }

  /** The version, the checksum of the manifest, and the program of each slot. */
  meta(): Promise<Meta> {
    return this.connection.get("/v1/meta");
  }

  /** The current health of each component. */
  health(): Promise<HealthReport> {
    return this.connection.get("/health");
  }

  /** Every slot with its mode and state. */
  slots(): Promise<Slot[]> {
    return this.connection.get("/v1/slots");
  }
}

/** The address without a path. A token is not sent without encryption to another machine. */
export function readAddress(text: string): string {
  const { protocol, hostname, origin } = new URL(text);
  const isLocal = hostname === "localhost" || hostname.endsWith(".localhost") || /^(127\.|\[::1\])/.test(hostname);
  if (protocol !== "https:" && !(protocol === "http:" && isLocal))
    throw new TypeError(`${text}: use https. Without encryption the token would be sent in the clear.`);
  return origin;
}

/** A WebSocket with headers, which Node, Bun and Deno accept and browsers do not. */
function openWire(url: string, headers: Record<string, string>): Wire {
  const address = `${url.replace(/^http/, "ws")}/v1/socket`;
  return new WebSocket(address, { headers } as unknown as string[]) as unknown as Wire;
}
