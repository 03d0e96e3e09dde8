/** How the owner is reached: `home.channels`. */

import type {
  AddChannel,
  ChannelInfo,
  ChannelPairing,
  ChannelRemoved,
  ChannelTest,
  SetChannelPreferences,
} from "./api.ts";
import type { Link } from "./freehold.ts";

const CHANNELS = "/v1/channels";

export interface ChannelPreferencesOptions {
  tells: SetChannelPreferences["tells"];
  /** `22:00`, in `zone`. */
  quietFrom?: string | null;
  quietUntil?: string | null;
  zone?: string;
  /** Seconds for which news is collected. */
  batch?: number;
  /** Whether messages have the words of agents. */
  words?: boolean;
}

/** The token needs the scope `admin`. */
export class Channels {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  list(): Promise<ChannelInfo[]> {
    return this.link.connection.get(CHANNELS);
  }

  /** Add a channel. Its secret is kept in the vault. Nothing is sent until it is paired. */
  add(
    kind: AddChannel["kind"],
    settings: Record<string, string | number> = {},
    options: { name?: string; secret?: string } = {},
  ): Promise<ChannelInfo> {
    return this.link.connection.post(CHANNELS, { kind, settings, ...options });
  }

  /** A one-time code. Matrix and e-mail need your own address. */
  pair(channel: string, address: string | null = null): Promise<ChannelPairing> {
    return this.link.connection.post(`${addressOf(channel)}/pair`, { address });
  }

  /** The code that was sent through the channel. */
  confirm(channel: string, code: string): Promise<ChannelInfo> {
    return this.link.connection.post(`${addressOf(channel)}/confirm`, { code });
  }

  /** Send a message now, and wait until the channel has it. */
  test(channel: string): Promise<ChannelTest> {
    return this.link.connection.post(`${addressOf(channel)}/test`, {});
  }

  /** What is told through the channel, and when. */
  setPreferences(
    channel: string,
    { tells, quietFrom = null, quietUntil = null, zone = "UTC", batch = 20, words = true }: ChannelPreferencesOptions,
  ): Promise<ChannelInfo> {
    const body: SetChannelPreferences = {
      tells,
      quiet_from: quietFrom,
      quiet_until: quietUntil,
      zone,
      batch,
      words,
    };
    return this.link.connection.patch(`${addressOf(channel)}/preferences`, body);
  }

  /** Remove it with its secret and everything that waits for it. */
  remove(channel: string): Promise<ChannelRemoved> {
    return this.link.connection.delete(addressOf(channel));
  }
}

const addressOf = (channel: string): string => `${CHANNELS}/${encodeURIComponent(channel)}`;
