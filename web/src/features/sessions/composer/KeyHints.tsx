import { enableNotifications, useNotificationState } from "../../notifications/browserPermission";

/** What the keys do while the agent works. */
export function KeyHints() {
  const notifications = useNotificationState();
  return (
    <p className="composer-keys">
      <span aria-hidden="true">
        <kbd>Enter</kbd> queues · <kbd>Ctrl Enter</kbd> interrupts and sends now · <kbd>Esc</kbd> stops
      </span>
      {notifications === "ask" && (
        <button type="button" className="text-button" onClick={() => void enableNotifications()}>
          Notify me when it is done
        </button>
      )}
    </p>
  );
}
