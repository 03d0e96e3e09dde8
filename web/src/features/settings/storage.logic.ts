import { LANGUAGE } from "../../language/translation";
import { formatBytes } from "../../ui/format";

export interface ResourceUse {
  limit: string;
  title: string;
  used: string;
  allowed: string;
  /** From 0 to 1. */
  share: number;
}

const LIMITS: readonly { limit: string; title: string; format: (value: number) => string }[] = [
  { limit: "memory", title: "Memory (RAM)", format: formatBytes },
  { limit: "processes", title: "Processes", format: (value) => value.toLocaleString(LANGUAGE) },
  { limit: "disk", title: "Disk", format: formatBytes },
  { limit: "inodes", title: "Files and folders", format: (value) => value.toLocaleString(LANGUAGE) },
];

/** The usage of each limit. What is not known is left out. */
export function resourceUse(
  usage: Record<string, number | null> | null,
  limits: Record<string, number>,
): ResourceUse[] {
  return LIMITS.flatMap(({ limit, title, format }) => {
    const used = usage?.[limit];
    const allowed = limits[limit];
    if (typeof used !== "number" || allowed === undefined || allowed <= 0) return [];
    return [{ limit, title, used: format(used), allowed: format(allowed), share: Math.min(1, used / allowed) }];
  });
}
