import { expect, test } from "vitest";
import type { ChannelInfo } from "../../client/api";
import { Resource } from "../../client/resource";
import { factsOf, newChannel, stateText, withChannel, withQuietHours, withTell } from "./channels.logic";

const channel: ChannelInfo = {
  name: "telegram",
  kind: "telegram",
  settings: {},
  preferences: { tells: ["failed"], quiet_from: null, quiet_until: null, zone: "UTC", batch: 20, words: true },
  owner: null,
  added: "",
  paired: null,
  state: "ok",
  since: "",
  error: null,
  waiting: 0,
  strangers: 0,
  dropped: 0,
};

test("the secret is no setting, and empty fields are left out", () => {
  expect(newChannel("telegram", { secret: " 1:abc " })).toEqual({ kind: "telegram", settings: {}, secret: "1:abc" });
  expect(newChannel("nostr", { secret: "" })).toEqual({ kind: "nostr", settings: {}, secret: null });
  const typed = { server: "smtp.example.com", port: "587", user: "", secret: "", sender: "me@example.com" };
  expect(newChannel("email", typed)).toEqual({
    kind: "email",
    settings: { server: "smtp.example.com", port: 587, sender: "me@example.com", security: "starttls" },
    secret: null,
  });
});

test("a channel says whether it is paired, away, or heard strangers", () => {
  expect(stateText(channel)).toBe("Not paired with you yet");
  const paired = { ...channel, owner: "42", state: "away" as const, waiting: 1, strangers: 3 };
  expect(stateText(paired)).toBe("Paired with 42, but cannot be used now");
  expect(factsOf(paired)).toEqual(["1 message waits", "3 from strangers, not answered"]);
});

test("preferences change one thing and keep the others", () => {
  expect(withTell(channel.preferences, "finished", true).tells).toEqual(["failed", "finished"]);
  expect(withTell(channel.preferences, "failed", false).tells).toEqual([]);
  const quiet = withQuietHours(channel.preferences, "22:00", "07:00", "Europe/Berlin");
  expect([quiet.quiet_from, quiet.quiet_until, quiet.zone]).toEqual(["22:00", "07:00", "Europe/Berlin"]);
  expect(withQuietHours(quiet, "", "07:00", "UTC").quiet_until).toBeNull();
});

test("a list that was asked for before a change was stored does not show the old preferences again", async () => {
  const replies: ((list: ChannelInfo[]) => void)[] = [];
  const fetch = () => new Promise<ChannelInfo[]>((resolve) => replies.push(resolve));
  const list = new Resource<ChannelInfo[]>({ fetch, apply: withChannel });
  list.reload();
  replies[0]?.([channel]);
  await Promise.resolve();
  list.reload();
  const changed = { ...channel, preferences: withTell(channel.preferences, "finished", true) };
  list.receive(changed);
  expect(list.state().value).toEqual([changed]);
  replies[1]?.([channel]);
  await Promise.resolve();
  expect(list.state().value).toEqual([changed]);
});
