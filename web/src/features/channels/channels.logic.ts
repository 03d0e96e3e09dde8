import type { ChannelInfo, SetChannelPreferences } from "../../client/api";
import { RELOAD } from "../../client/resource";

export type Tell = SetChannelPreferences["tells"][number];
export type AddableKind = "telegram" | "matrix" | "nostr" | "email";

export const TELLS: readonly { tell: Tell; label: string }[] = [
  { tell: "needs_you", label: "An agent needs you" },
  { tell: "finished", label: "An agent has finished" },
  { tell: "failed", label: "An agent has failed" },
  { tell: "budget", label: "A budget is reached" },
  { tell: "routine", label: "A routine has a result" },
];

export interface Field {
  name: string;
  label: string;
  placeholder: string;
  secret?: boolean;
  optional?: boolean;
}

export const KIND_TITLES: Record<ChannelInfo["kind"], string> = {
  email: "E-mail",
  matrix: "Matrix",
  nostr: "Nostr",
  telegram: "Telegram",
  webpush: "Push messages",
};

/** What is asked for to add a channel. The secret goes to the vault, everything else is a setting. */
export const FIELDS: Record<AddableKind, readonly Field[]> = {
  telegram: [{ name: "secret", label: "Token of your bot", placeholder: "From @BotFather", secret: true }],
  matrix: [
    { name: "homeserver", label: "Homeserver", placeholder: "https://matrix.example.com" },
    { name: "secret", label: "Access token of the channel's account", placeholder: "syt_…", secret: true },
  ],
  nostr: [],
  email: [
    { name: "server", label: "Mail server", placeholder: "smtp.example.com" },
    { name: "port", label: "Port", placeholder: "465", optional: true },
    { name: "user", label: "User", placeholder: "you@example.com", optional: true },
    { name: "secret", label: "Password", placeholder: "", secret: true, optional: true },
    { name: "sender", label: "Sender", placeholder: "freehold@example.com" },
  ],
};

/** Whether the owner's own address is needed to pair it. */
export const needsAddress = (kind: ChannelInfo["kind"]): boolean => kind === "matrix" || kind === "email";

export interface NewChannel {
  kind: AddableKind;
  settings: Record<string, string | number>;
  secret: string | null;
}

/** The request for what was typed. Empty fields are left out. Port 587 is the one that begins without TLS. */
export function newChannel(kind: AddableKind, typed: Record<string, string>): NewChannel {
  const settings: Record<string, string | number> = {};
  for (const { name, secret } of FIELDS[kind]) {
    const value = (typed[name] ?? "").trim();
    if (secret || value === "") continue;
    settings[name] = name === "port" && /^[0-9]{1,5}$/.test(value) ? Number(value) : value;
  }
  if (kind === "email" && settings.port === 587) settings.security = "starttls";
  return { kind, settings, secret: (typed.secret ?? "").trim() || null };
}

/** One sentence about a channel. */
export function stateText(channel: ChannelInfo): string {
  if (channel.owner === null) return "Not paired with you yet";
  const to = channel.kind === "webpush" ? "Sends to your browsers" : `Paired with ${channel.owner}`;
  return channel.state === "away" ? `${to}, but cannot be used now` : to;
}

/** What else the owner should know: messages that wait, were dropped, or came from strangers. */
export function factsOf({ waiting, dropped, strangers }: ChannelInfo): string[] {
  const facts: string[] = [];
  if (waiting > 0) facts.push(`${waiting} ${waiting === 1 ? "message waits" : "messages wait"}`);
  if (dropped > 0) facts.push(`${dropped} dropped`);
  if (strangers > 0) facts.push(`${strangers} from strangers, not answered`);
  return facts;
}

export type Preferences = ChannelInfo["preferences"];

export function withTell(preferences: Preferences, tell: Tell, isOn: boolean): Preferences {
  const others = preferences.tells.filter((one) => one !== tell);
  return { ...preferences, tells: isOn ? [...others, tell] : others };
}

/** Quiet hours in the owner's own time zone; off when a time is missing. */
export function withQuietHours(preferences: Preferences, from: string, until: string, zone: string): Preferences {
  const isOn = from !== "" && until !== "";
  return { ...preferences, quiet_from: isOn ? from : null, quiet_until: isOn ? until : null, zone };
}

export const concernsChannels = (event: unknown): boolean =>
  typeof event === "object" && event !== null && "kind" in event && String(event.kind).startsWith("channels.");

/** The list with a channel as an action has left it. An event of the timeline says too little: the list is read again. */
export function withChannel(list: ChannelInfo[], event: unknown): ChannelInfo[] | typeof RELOAD {
  if (typeof event !== "object" || event === null || !("preferences" in event)) return RELOAD;
  const changed = event as ChannelInfo;
  return list.map((channel) => (channel.name === changed.name ? changed : channel));
}
