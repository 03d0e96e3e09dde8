import { useEffect, useState } from "react";
import type { PushSubscription } from "../../client/api";
import { RequestFailed } from "../../client/http";
import { useToasts } from "../../ui/Toasts";
import { browserName } from "../settings/browserName.logic";
import { canPush, isSubscribed, removeBrowser, subscribe, unsubscribe } from "./push";

/** Push messages: turned on in each browser that shall get them. */
export function PushSection({ browsers, onChange }: { browsers: PushSubscription[]; onChange: () => void }) {
  const [isOn, setIsOn] = useState<boolean | null>(null);
  const toasts = useToasts();
  const possible = canPush();

  useEffect(() => {
    if (possible) void isSubscribed().then(setIsOn, () => setIsOn(false));
  }, [possible]);

  async function run(work: () => Promise<unknown>) {
    try {
      await work();
      if (possible) setIsOn(await isSubscribed());
    } catch (error) {
      if (error instanceof RequestFailed || !(error instanceof Error)) toasts.failed(error);
      else toasts.refused(`This browser says: ${error.message}`);
    }
    onChange();
  }

  return (
    <section aria-labelledby="push">
      <div className="section-head">
        <h2 id="push">Push messages</h2>
        {possible && (
          <button
            type="button"
            className="small"
            disabled={isOn === null}
            onClick={() => void run(isOn ? unsubscribe : () => subscribe(browserName(navigator.userAgent)))}
          >
            {isOn ? "Turn off in this browser" : "Turn on in this browser"}
          </button>
        )}
      </div>
      <p className="quiet">
        {possible
          ? "Shown by this browser also when the page is closed. The push service of its maker carries them encrypted."
          : "This browser has no push messages, or this address is not encrypted."}
      </p>
      <ul className="rows">
        {browsers.map((one) => (
          <li key={one.id}>
            <div className="grow">
              {one.label || "A browser"}
              <p className="quiet">by {one.service}</p>
            </div>
            <button
              type="button"
              className="small"
              aria-label={`Remove ${one.label || "this browser"}`}
              onClick={() => void run(() => removeBrowser(one.id))}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
