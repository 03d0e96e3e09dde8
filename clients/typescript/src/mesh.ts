/** Neighbours: `home.mesh`. */

import type {
  AcceptWork,
  AccountRecord,
  AgentCard,
  AgentCards,
  CreatePairingCode,
  EvictedNeighbour,
  Introduction,
  MeshClient,
  MeshKey,
  Neighbour,
  NeighbourMessage,
  PairingCode,
  SendWork,
  SentMessage,
  SentWork,
  SentWorkDetails,
  Mesh as State,
} from "./api.ts";
import type { Link } from "./freehold.ts";

/** What a neighbour may use here. */
export type Grants = NonNullable<CreatePairingCode["grants"]>;
type Named = Pick<CreatePairingCode, "name">;

export class Mesh {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** This Freehold as its neighbours see it, and its relays. */
  status(): Promise<State> {
    return this.link.connection.get("/v1/mesh");
  }

  /** Replace the key pair, by the given one or a new one. Pair with all neighbours again. */
  replaceKey(secretKey: string | null = null): Promise<MeshKey> {
    return this.link.connection.post("/v1/mesh/key", { secret_key: secretKey });
  }

  /** Whether the owner's account names the key. The owner has it named in the page Neighbours. */
  accountRecord(): Promise<AccountRecord> {
    return this.link.connection.get("/v1/mesh/record");
  }

  /** The paired Freeholds. */
  neighbours(): Promise<Neighbour[]> {
    return this.link.connection.get("/v1/mesh/neighbours");
  }

  /** A code for the owner of another Freehold, who may then use `grants` here. */
  createCode(grants: Grants = [], { name = null }: Named = {}): Promise<PairingCode> {
    return this.link.connection.post("/v1/mesh/codes", { grants, name });
  }

  /** Who made a code. It can still be used. */
  readCode(code: string): Promise<Introduction> {
    return this.link.connection.post("/v1/mesh/codes/read", { code });
  }

  /** Pair with the Freehold that made a code. */
  pair(code: string, grants: Grants = [], { name = null }: Named = {}): Promise<Neighbour> {
    return this.link.connection.post("/v1/mesh/neighbours", { code, grants, name });
  }

  /** Change what a neighbour may use here. */
  grant(name: string, grants: Grants): Promise<Neighbour> {
    return this.link.connection.patch(neighbourAddress(name), { grants });
  }

  /** End all that a neighbour may do here. */
  evict(name: string): Promise<EvictedNeighbour> {
    return this.link.connection.delete(neighbourAddress(name));
  }

  /** The clients of this host. */
  clients(): Promise<MeshClient[]> {
    return this.link.connection.get("/v1/mesh/clients");
  }

  /** Send an encrypted message over the relays. */
  tell(name: string, text: string): Promise<SentMessage> {
    return this.link.connection.post(`${neighbourAddress(name)}/messages`, { text });
  }

  /** What neighbours wrote and published, the newest first. */
  messages(limit = 100): Promise<NeighbourMessage[]> {
    return this.link.connection.get("/v1/mesh/messages", { limit });
  }

  /** The agents of a neighbour that take work. */
  async agents(name: string): Promise<AgentCard[]> {
    return (await this.link.connection.get<AgentCards>(`${neighbourAddress(name)}/agents`)).agents;
  }

  /** Send work to an agent of a neighbour. */
  send(name: string, prompt: string, { title = null }: Pick<SendWork, "title"> = {}): Promise<SentWork> {
    return this.link.connection.post("/v1/mesh/work", { neighbour: name, prompt, title });
  }

  /** The work that was sent, the newest first. */
  work(): Promise<SentWork[]> {
    return this.link.connection.get("/v1/mesh/work");
  }

  /** One job, with what its agent said and the files that it returned. */
  showWork(work: string): Promise<SentWorkDetails> {
    return this.link.connection.get(workAddress(work));
  }

  /** Bring the returned files into a folder of the workspace. This can be undone. */
  accept(work: string, folder = "", { force = false }: Pick<AcceptWork, "force"> = {}): Promise<SentWork> {
    return this.link.connection.post(`${workAddress(work)}/accept`, { folder, force });
  }

  /** Forget the returned files. */
  drop(work: string): Promise<SentWork> {
    return this.link.connection.post(`${workAddress(work)}/drop`, {});
  }

  /** Ask the neighbour to end it. */
  stop(work: string): Promise<SentWork> {
    return this.link.connection.post(`${workAddress(work)}/stop`, {});
  }
}

function neighbourAddress(name: string): string {
  return `/v1/mesh/neighbours/${encodeURIComponent(name)}`;
}

function workAddress(work: string): string {
  return `/v1/mesh/work/${encodeURIComponent(work)}`;
}
