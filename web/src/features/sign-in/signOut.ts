import { request } from "../../client/http";
import { storeKey } from "../../client/signInKey";
import { clearDrafts } from "../sessions/composer/draft";

/** Signs this browser out, and removes every draft and unsent message that it kept. */
export async function signOut(): Promise<void> {
  await request("/v1/sign-out", { method: "POST", body: {} });
  storeKey(null);
  clearDrafts();
}
