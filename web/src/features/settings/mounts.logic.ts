import type { MountState } from "../../client/api";

type Tone = "leaf" | "amber" | "alarm";

const TONES: Record<MountState["state"], Tone> = { ready: "leaf", starting: "amber", failing: "alarm", down: "alarm" };

const KINDS: Record<string, string> = {
  folder: "Folder of this machine",
  archive: "Archive",
  git: "Git commit",
  memory: "In memory",
  s3: "S3",
  webdav: "WebDAV",
  solid: "Solid pod",
  rclone: "rclone",
};

export const mountTone = (mount: MountState): Tone => TONES[mount.state];

/** "S3 · photos/2026 · read-only" */
export function mountFacts(mount: MountState): string {
  const mode = mount.writable || mount.kind === "memory" ? "writable" : "read-only";
  return [KINDS[mount.kind] ?? mount.kind, mount.source, mode].filter((fact) => fact !== "").join(" · ");
}
