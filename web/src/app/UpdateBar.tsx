import { useEffect, useState } from "react";
import { onUpdated } from "./offlineShell";

/** Says that Freehold was updated while the page was open. */
export function UpdateBar() {
  const [isUpdated, setUpdated] = useState(false);
  useEffect(() => onUpdated(() => setUpdated(true)), []);
  if (!isUpdated) return null;
  return (
    <div className="bar" data-tone="amber" role="status">
      <p>Freehold was updated.</p>
      <button type="button" className="small" onClick={() => location.reload()}>
        Reload the page
      </button>
    </div>
  );
}
