/** Work that begins without the owner: `home.routines`. */

import type {
  Routine,
  RoutineHook,
  RoutinePage,
  RoutineRemoved,
  RoutineRunDetails,
  RoutineRunPage,
  RoutineSection,
  RoutineTimes,
} from "./api.ts";
import type { Link } from "./freehold.ts";

const ROUTINES = "/v1/routines";

/** The token needs the scope `routines`; to add or run one also `prompt`, or `terminal` for a command. */
export class Routines {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** By name, those after a name. */
  list(options: { after?: string; limit?: number } = {}): Promise<RoutinePage> {
    return this.link.connection.get(ROUTINES, { limit: 50, ...options });
  }

  get(name: string): Promise<Routine> {
    return this.link.connection.get(addressOf(name));
  }

  /** The keys of a routine are those of `[routines.<name>]` in freehold.toml. */
  add(name: string, routine: RoutineSection, { replace = false }: { replace?: boolean } = {}): Promise<Routine> {
    return this.link.connection.post(ROUTINES, { name, routine, replace });
  }

  /** When a routine would begin. Nothing is stored. */
  plan(routine: RoutineSection, { count = 10 }: { count?: number } = {}): Promise<RoutineTimes> {
    return this.link.connection.post(`${ROUTINES}/plan`, { routine, count });
  }

  /** Begin a run now. `text` is what it is told, as data. */
  run(name: string, text: string | null = null): Promise<RoutineRunDetails> {
    return this.link.connection.post(`${addressOf(name)}/run`, { text });
  }

  pause(name: string): Promise<Routine> {
    return this.link.connection.post(`${addressOf(name)}/pause`, {});
  }

  resume(name: string): Promise<Routine> {
    return this.link.connection.post(`${addressOf(name)}/resume`, {});
  }

  remove(name: string): Promise<RoutineRemoved> {
    return this.link.connection.delete(addressOf(name));
  }

  /** The newest first. */
  runs(name: string, options: { before?: number; limit?: number } = {}): Promise<RoutineRunPage> {
    return this.link.connection.get(`${addressOf(name)}/runs`, { limit: 30, ...options });
  }

  getRun(name: string, run: string): Promise<RoutineRunDetails> {
    return this.link.connection.get(`${addressOf(name)}/runs/${encodeURIComponent(run)}`);
  }

  /** Idempotent. */
  stopRun(name: string, run: string): Promise<RoutineRunDetails> {
    return this.link.connection.post(`${addressOf(name)}/runs/${encodeURIComponent(run)}/stop`, {});
  }

  /** A new secret for its signed requests. Needs the scope `admin`. */
  createWebhook(name: string): Promise<RoutineHook> {
    return this.link.connection.post(`${addressOf(name)}/webhook`, {});
  }
}

const addressOf = (name: string): string => `${ROUTINES}/${encodeURIComponent(name)}`;
