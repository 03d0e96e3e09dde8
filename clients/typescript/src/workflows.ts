/** Python files with durable steps: `home.workflows`. */

import type { Workflow, WorkflowDetails, WorkflowPage } from "./api.ts";
import type { Link } from "./freehold.ts";

const WORKFLOWS = "/v1/workflows";

/** The token needs the scope `routines`; to see steps and to answer also `prompt`, to run or retry `terminal` too. */
export class Workflows {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The newest first. */
  list(options: { before?: number; limit?: number } = {}): Promise<WorkflowPage> {
    return this.link.connection.get(WORKFLOWS, { limit: 50, ...options });
  }

  /** With its steps. */
  get(id: string): Promise<WorkflowDetails> {
    return this.link.connection.get(addressOf(id));
  }

  /** Begin a workflow. `file` is a Python file, from the workspace on; its main is called with `data`. */
  run(
    file: string,
    data: Record<string, unknown> = {},
    { budget = null, asks = "park" }: { budget?: number | null; asks?: "park" | "refuse" } = {},
  ): Promise<Workflow> {
    return this.link.connection.post(WORKFLOWS, { file, data, budget, asks });
  }

  /** End a workflow and what it has begun. Idempotent. */
  cancel(id: string): Promise<Workflow> {
    return this.link.connection.post(`${addressOf(id)}/cancel`, {});
  }

  /** Begin a workflow that has ended once more, from a step on, with the file as it is now. */
  retry(id: string, { step = null }: { step?: string | null } = {}): Promise<WorkflowDetails> {
    return this.link.connection.post(`${addressOf(id)}/retry`, { step });
  }

  /** Answer what a workflow asks. */
  answer(id: string, step: string, answer: string): Promise<WorkflowDetails> {
    return this.link.connection.post(`${addressOf(id)}/answer`, { step, answer });
  }

  /** Send an event to one workflow. It is kept until the workflow waits for it. */
  signal(id: string, name: string, data: Record<string, unknown> = {}): Promise<Workflow> {
    return this.link.connection.post(`${addressOf(id)}/events`, { name, data });
  }
}

const addressOf = (id: string): string => `${WORKFLOWS}/${encodeURIComponent(id)}`;
