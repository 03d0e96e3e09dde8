import { SitePage } from "../preview/SitePage";

const SETTINGS = `[desktop]
enabled = true

[security.exceptions.desktop]
reason = "agents use programs with windows"`;

/** The desktop of the computer. */
export default function DesktopPage() {
  return (
    <SitePage
      name="desktop"
      title="Desktop"
      icon="desktop"
      allow="clipboard-read; clipboard-write; fullscreen"
      starting="Starting the desktop…"
      stopped="The desktop has ended, with its programs."
      off={
        <>
          <h2>The desktop is switched off</h2>
          <p className="quiet">
            With it, you and your agents can use programs with windows in the computer. Add this to freehold.toml, and
            restart Freehold.
          </p>
          <pre>{SETTINGS}</pre>
          <p>
            <a href="/docs/guides/desktop.html">What this opens</a>
          </p>
        </>
      }
    />
  );
}
