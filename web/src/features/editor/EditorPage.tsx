import { useState } from "react";
import type { NamedSite, NamedSites } from "../../client/api";
import { request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { SiteNotice } from "../preview/SiteNotice";
import { openSiteInTab } from "../preview/useSite";

const SETTINGS = `[editor]
enabled = true

[security.exceptions.editor]
reason = "I edit files in VS Code"`;

/** VS Code in the computer. It has a tab of its own: in a frame, browsers keep its storage and its shortcuts from it. */
export default function EditorPage() {
  const { value, problem, reload } = useResource<NamedSites>("/v1/preview/sites");
  const site = value?.sites.find((one) => one.name === "editor");
  if (problem !== null && value === null)
    return (
      <div className="column">
        <h1>Editor</h1>
        <Notice problem={problem} action={{ label: "Try again", run: reload }} />
      </div>
    );
  if (value === null) return <p className="loading quiet">Looking for the editor…</p>;
  return (
    <SiteNotice icon="editor">
      {site?.enabled ? <OpenEditor site={site} onChanged={reload} /> : <EditorOff />}
    </SiteNotice>
  );
}

function OpenEditor({ site, onChanged }: { site: NamedSite; onChanged: () => void }) {
  const [starting, setStarting] = useState(false);
  const toasts = useToasts();

  function act(act: Promise<unknown>) {
    act
      .catch(toasts.failed)
      .then(onChanged)
      .finally(() => setStarting(false));
  }

  return (
    <>
      <h1>VS Code</h1>
      <p className="quiet">Edit the workspace in a tab of its own. What you save there can be undone here.</p>
      <div className="toolbar">
        <button
          className="primary"
          disabled={starting}
          onClick={() => {
            setStarting(true);
            act(openSiteInTab(site.name));
          }}
        >
          {starting ? "Starting the editor…" : "Open the editor"}
        </button>
        {site.running && (
          <button onClick={() => act(request(`/v1/preview/sites/${site.name}/stop`, { method: "POST" }))}>
            Stop the editor
          </button>
        )}
      </div>
    </>
  );
}

function EditorOff() {
  return (
    <>
      <h1>The editor is switched off</h1>
      <p className="quiet">
        With it, you can edit the workspace with VS Code in this browser. Add this to freehold.toml, and restart
        Freehold.
      </p>
      <pre>{SETTINGS}</pre>
      <p>
        <a href="/docs/guides/editor.html">What this opens</a>
      </p>
    </>
  );
}
