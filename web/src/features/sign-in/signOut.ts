import { request } from "../../client/http";
import { storeKey } from "../../client/signInKey";
import { takeDrafts } from "../sessions/composer/draft";

/**
 * Signs this browser out, and removes every draft and unsent message that it kept.
 *
 * They are gone before the gateway is asked: the page may be closed before its answer is here. If the gateway does not
 * sign the browser out, they are back.
 */
export async function signOut(): Promise<void> {
  const putDraftsBack = takeDrafts();
  try {
    await request("/v1/sign-out", { method: "POST", body: {} });
  } catch (error) {
    putDraftsBack();
    throw error;
  }
  storeKey(null);
}
