/** The model providers of this Freehold: `home.models`. */

import type { ConnectModel, ModelChanged, ModelsState, ModelTrial, ProviderOffers } from "./api.ts";
import type { Link } from "./freehold.ts";

export interface ConnectOptions extends Omit<ConnectModel, "kind" | "base_url"> {
  /** Needed for openai-compatible only. */
  baseUrl?: string | null;
}

export class Models {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The providers that agents can use, and why one cannot be used now. */
  state(): Promise<ModelsState> {
    return this.link.connection.get("/v1/models");
  }

  /** The providers that Freehold knows, and those that it found on its machine. */
  offers(): Promise<ProviderOffers> {
    return this.link.connection.get("/v1/model-offers");
  }

  /** Connect a provider, or change the one of this name. The key goes into the vault. It takes effect at once. */
  connect(name: string, kind: ConnectModel["kind"], options: ConnectOptions = {}): Promise<ModelChanged> {
    const { baseUrl: base_url = null, ...others } = options;
    return this.link.connection.put(pathOf(name), { kind, base_url, ...others });
  }

  /** Ask a provider for its list of models with its key, which is free. */
  test(name: string): Promise<ModelTrial> {
    return this.link.connection.post(`${pathOf(name)}/test`, {});
  }

  /** Let agents that name no provider use this one. */
  chooseDefault(name: string): Promise<ModelChanged> {
    return this.link.connection.post(`${pathOf(name)}/default`, {});
  }

  /** Disconnect a provider, and remove its key when no other uses it. */
  disconnect(name: string): Promise<ModelChanged> {
    return this.link.connection.delete(pathOf(name));
  }
}

function pathOf(name: string): string {
  return `/v1/models/${encodeURIComponent(name)}`;
}
