import type { GitMessage, PromptAccepted, SessionEvents } from "../../client/api";
import { RequestFailed, request } from "../../client/http";
import { messageIn, messagePrompt } from "./git.logic";

const PAUSE = 1_000;
const MAX_TRIES = 300;

/** Asks the agent of a session for a commit message, and waits for the end of its turn. */
export async function askForMessage(session: string, folder: string): Promise<string> {
  const path = `/v1/sessions/${encodeURIComponent(session)}`;
  const { seq } = await request<{ seq: number }>(path);
  const body = { text: messagePrompt(folder), key: crypto.randomUUID() };
  const { turn } = await request<PromptAccepted>(`${path}/prompt`, { method: "POST", body });
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const found = await request<SessionEvents>(`${path}/events?after=${seq}&limit=1000`);
    const message = messageIn(found.events, turn);
    if (message !== null) return message;
    await new Promise((done) => setTimeout(done, PAUSE));
  }
  throw new RequestFailed(504, {
    code: "git.silent",
    message: "The agent has not answered yet.",
    hint: "Its answer will be in the conversation.",
  });
}

/** Asks a cheap model for a message of what is staged. */
export async function proposeMessage(folder: string): Promise<string> {
  return (await request<GitMessage>("/v1/git/message", { method: "POST", body: { folder } })).message;
}
