/** The messages of one topic as an async iteration. */

import { type Connection, type Problem, RequestFailed } from "./connection.ts";
import { LiveSocket, type Wire } from "./socket.ts";

export type TopicMessage =
  | { kind: "event"; seq: number; data: unknown }
  | { kind: "delta"; data: unknown }
  /** Messages were lost: read the list again, then go on. */
  | { kind: "resync"; seq: number };

const NOT_SIGNED_IN: Problem = {
  code: "identity.not-signed-in",
  message: "This token expired or was revoked",
  hint: "Get a new token: freehold login",
};

/**
 * The messages of a topic. Reconnects by itself; each numbered message comes once and in order. Ends only when the loop
 * is left, or with a `RequestFailed` that a retry cannot solve.
 */
export async function* followTopic(
  connection: Connection,
  open: () => Wire,
  name: string,
  after: number | null,
): AsyncGenerator<TopicMessage> {
  const arrived: TopicMessage[] = [];
  let failure: RequestFailed | null = null;
  let wake: () => void = () => undefined;
  const add = (message: TopicMessage) => {
    arrived.push(message);
    wake();
  };
  const fail = (status: number, problem: Problem) => {
    failure = new RequestFailed(status, problem);
    wake();
  };
  const isSignedIn = async () => {
    try {
      await connection.request("/v1/me");
      return true;
    } catch (error) {
      if (error instanceof RequestFailed && error.status === 401) return false;
      throw error;
    }
  };
  const socket = new LiveSocket({ open, isSignedIn });
  socket.watch((state) => {
    if (state === "signed-out") fail(401, NOT_SIGNED_IN);
  });
  socket.subscribe(
    name,
    {
      event: (data, seq) => add({ kind: "event", seq, data }),
      delta: (data) => add({ kind: "delta", data }),
      resync: (seq) => add({ kind: "resync", seq }),
      refused: (problem) => fail(403, problem),
    },
    { durable: true, ...(after === null ? {} : { after }) },
  );
  socket.start();
  try {
    for (;;) {
      const message = arrived.shift();
      if (message !== undefined) yield message;
      else if (failure !== null) throw failure;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    socket.close();
  }
}
