/** Times and sizes as a person writes them. `at` and `now` are seconds. */
import { LANGUAGE, translate } from "../language/translation";

/** The browser's own form of the language of the page, such as British English. */
const LOCALE = navigator.languages?.find((name) => name.split("-")[0] === LANGUAGE) ?? LANGUAGE;

/** Formats with one formatter, made when it is first needed: making one costs more than a thousand uses. */
function formatterOf(options: Intl.DateTimeFormatOptions): (at: number) => string {
  let formatter: Intl.DateTimeFormat | undefined;
  return (at) => {
    formatter ??= new Intl.DateTimeFormat(LOCALE, options);
    return formatter.format(at * 1000);
  };
}

export const formatTime = formatterOf({ hour: "2-digit", minute: "2-digit" });
export const formatDateTime = formatterOf({ dateStyle: "medium", timeStyle: "medium" });
const formatDate = formatterOf({ weekday: "long", day: "numeric", month: "long", year: "numeric" });

export function formatAge(at: number, now: number): string {
  const seconds = Math.max(0, now - at);
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  const days = Math.floor(seconds / 86_400);
  return days === 1 ? "yesterday" : `${days} days ago`;
}

/** The heading of a day in a list: Today, Yesterday, or the date. */
export function formatDay(at: number, now: number): string {
  const midnight = (seconds: number) => new Date(seconds * 1000).setHours(0, 0, 0, 0);
  const days = Math.round((midnight(now) - midnight(at)) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return formatDate(at);
}

/** The seconds of a moment that the gateway wrote as text. */
export const secondsOf = (at: string): number => new Date(at).getTime() / 1000;

export function formatBytes(count: number): string {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count;
  let unit = "B";
  for (const next of units) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

export const formatNumber = (count: number): string => count.toLocaleString(LANGUAGE);

/** "1 file", "3 files". */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatNumber(count)} ${translate(count === 1 ? noun : plural)}`;
}

/** A text with at most `length` characters. */
export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
