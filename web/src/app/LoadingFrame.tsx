import { readKey } from "../client/signInKey";
import { Navigation } from "./Navigation";
import { pageAt } from "./pages";

const NOTHING = {};
const ignore = () => undefined;

/** The frame of the page before anything is known, so that a slow network shows where things will be. It takes no press. */
export function LoadingFrame() {
  // Who is not signed in sees the page for that next.
  if (readKey() === null) return <main className="centered-page" aria-busy="true" />;
  return (
    <div className="app" aria-busy="true">
      <div className="app-waiting" aria-hidden="true" inert>
        <Navigation page={pageAt(location.pathname)} handle={null} on={[]} badges={NOTHING} onOpenPalette={ignore} />
      </div>
      <div className="app-content">
        <main>
          <p className="loading quiet fade-in-late">Loading…</p>
        </main>
      </div>
    </div>
  );
}
