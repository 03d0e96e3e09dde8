/**
 * The words of the page in another language. A message is its English text, and the build puts `translate` around each
 * (language/messages.mjs). What the gateway, agents and files say is shown as it is.
 */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

const KEY = "freehold.language";

/** The language that the owner chose, else the first of the browser's that the page has. */
export function chooseLanguage(stored: string | null, preferred: readonly string[]): Language {
  const wanted = [stored ?? "", ...preferred].map((name) => name.split("-")[0] ?? "");
  return wanted.find((name): name is Language => Object.hasOwn(LANGUAGES, name)) ?? "en";
}

export const LANGUAGE = chooseLanguage(globalThis.localStorage?.getItem(KEY) ?? null, navigator.languages ?? []);

/** The whole page is made anew: texts are looked up when its parts are loaded. */
export function setLanguage(language: Language): void {
  localStorage.setItem(KEY, language);
  location.reload();
}

// Loaded before the page is drawn. Without it, as offline for the first time, the page is in English.
const CATALOGUE = new Map<string, string>(
  LANGUAGE === "de"
    ? await import("./de.json").then(
        (loaded) => Object.entries(loaded.default),
        () => [],
      )
    : [],
);

export const PLACE = /\{(\d+)\}/;
const PLACES = new RegExp(PLACE, "g");

/** A message in the language of the page, with its places. */
export const textOf = (message: string): string => CATALOGUE.get(message) ?? message;

/** A message in the language of the page, with these values at its places. */
export function translate(message: string, ...values: readonly unknown[]): string {
  const text = textOf(message);
  return values.length === 0 ? text : text.replace(PLACES, (_, place) => String(values[Number(place)]));
}
