import { createContext } from "react";

/** Enough for the sessions that someone goes back and forth between. The one that was not used for longest goes first. */
const MAX_VALUES = 24;

/** The last values of resources that were left, by their path. They are shown at once when they are opened again. */
export class KeptValues {
  private readonly values = new Map<string, unknown>();

  get(path: string): unknown {
    return this.values.get(path) ?? null;
  }

  set(path: string, value: unknown): void {
    this.values.delete(path);
    this.values.set(path, value);
    const [oldest] = this.values.keys();
    if (this.values.size > MAX_VALUES && oldest !== undefined) this.values.delete(oldest);
  }

  delete(path: string): void {
    this.values.delete(path);
  }
}

/** Null where nothing is kept. Those of one sign-in are gone with it. */
export const KeptValuesContext = createContext<KeptValues | null>(null);
