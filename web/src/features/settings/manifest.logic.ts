import type { ManifestSection, ManifestSetting } from "../../client/api";

export type SettingValue = boolean | number | string | string[] | null;

/** A value as it is typed: without the quotes that the manifest needs. */
export function typedText(setting: Pick<ManifestSetting, "kind" | "value">): string {
  const { value } = setting;
  if (value === null) return "";
  try {
    const found: unknown = JSON.parse(value);
    if (typeof found === "string") return found;
    if (Array.isArray(found)) return found.join(", ");
  } catch {
    // TOML that is no JSON is shown as it is.
  }
  return value;
}

/** What was typed as a value of its kind; undefined when it is none. An empty text takes the setting out. */
export function readTyped(kind: ManifestSetting["kind"], typed: string): SettingValue | undefined {
  const text = typed.trim();
  if (text === "") return null;
  if (kind === "truth") return text === "true";
  if (kind === "list") {
    return text
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== "");
  }
  if (kind !== "number") return text;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}

/** Where a setting is, in words. */
export function placeText(setting: Pick<ManifestSetting, "place" | "file" | "line">): string {
  if (setting.place === "environment") return "set by the environment of Freehold";
  if (setting.place === "default") return "default";
  return setting.line === null ? setting.file : `${setting.file}, line ${setting.line}`;
}

/** What to do for a setting that cannot be changed in the page. */
export function changeText(setting: Pick<ManifestSetting, "key" | "place" | "file" | "line">): string {
  if (setting.place === "environment") return "Change the variable of the environment, and restart Freehold.";
  const section = setting.key.split(".").slice(0, -1).join(".");
  const name = setting.key.split(".").at(-1) ?? "";
  if (setting.place !== "default" && setting.line !== null) return `Change line ${setting.line} of ${setting.file}.`;
  return `Add ${name} under [${section}] in ${setting.file}.`;
}

/** The sections with only the settings that match. */
export function matching(sections: readonly ManifestSection[], query: string, changed: boolean): ManifestSection[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return sections
    .map((section) => ({
      ...section,
      settings: section.settings.filter(
        (one) =>
          (!changed || one.place !== "default") &&
          words.every((word) => `${one.key} ${one.meaning}`.toLowerCase().includes(word)),
      ),
    }))
    .filter((section) => section.settings.length > 0);
}
