import { bytes } from "../../ui/moments";

export interface Used {
  limit: string;
  title: string;
  used: string;
  allowed: string;
  /** From 0 to 1. */
  share: number;
}

const WATCHED: readonly { limit: string; title: string; say: (value: number) => string }[] = [
  { limit: "memory", title: "Memory", say: bytes },
  { limit: "processes", title: "Processes", say: (value) => value.toLocaleString("en") },
  { limit: "disk", title: "Disk", say: bytes },
  { limit: "inodes", title: "Files and folders", say: (value) => value.toLocaleString("en") },
];

/** What can be told of what is used against what may be; what cannot be told is left out. */
export function usedOf(usage: Record<string, number | null> | null, limits: Record<string, number>): Used[] {
  return WATCHED.flatMap(({ limit, title, say }) => {
    const used = usage?.[limit];
    const allowed = limits[limit];
    if (typeof used !== "number" || allowed === undefined || allowed <= 0) return [];
    return [{ limit, title, used: say(used), allowed: say(allowed), share: Math.min(1, used / allowed) }];
  });
}
