import type { SshCredential } from "../../client/api";

/** How long a key is still valid. Seconds are shown only near the end. */
export function timeLeft(expires: string, now: number): string {
  const seconds = Math.floor((Date.parse(expires) - now) / 1000);
  if (!(seconds > 0)) return "expired";
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours} h ${minutes} min left`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s left` : `${seconds} s left`;
}

export function lastUse(row: SshCredential): string {
  if (row.used === null) return "never used";
  const moment = new Date(row.used).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return `last used ${moment} from ${row.used_from ?? "an unknown address"}`;
}

/** The keys to show: valid ones first, then revoked ones. Expired keys are left out. */
export function visibleRows(rows: readonly SshCredential[], now: number): SshCredential[] {
  const alive = rows.filter((row) => Date.parse(row.expires) > now);
  return [...alive.filter((row) => !row.revoked), ...alive.filter((row) => row.revoked)];
}

export const UNPACK_COMMAND = "tar -xf ~/Downloads/freehold-ssh.tar -C ~/.ssh";
export const CONNECT_COMMAND = "ssh -F ~/.ssh/freehold.conf freehold";
