import { type ReactNode, useState } from "react";
import { Icon, type IconName } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { SiteNotice } from "./SiteNotice";
import { openSiteInTab, useSite } from "./useSite";
import "./preview.css";

const SANDBOX = "allow-scripts allow-same-origin allow-forms allow-modals allow-popups allow-downloads";

interface SitePageProps {
  name: string;
  title: string;
  icon: IconName;
  /** What the frame may do besides, such as use the clipboard. The site itself says whether it does. */
  allow: string;
  /** How to switch it on. */
  off: ReactNode;
  starting: string;
  stopped: string;
}

/** A site of a feature in a frame, on an origin of its own, which cannot read or control this page. */
export function SitePage({ name, title, icon, allow, off, starting, stopped }: SitePageProps) {
  const { state, open, stop } = useSite(name);
  const toasts = useToasts();
  const isShown = state.kind === "shown";
  return (
    <div className="preview">
      <header className="preview-bar">
        <h1 className="preview-title">{title}</h1>
        <button className="plain-button" aria-label="Reload" title="Reload" disabled={!isShown} onClick={open}>
          <Icon name="reload" />
        </button>
        <button
          className="plain-button"
          aria-label="Open in a new tab"
          title="Open in a new tab"
          disabled={!isShown}
          onClick={() => void openSiteInTab(name).catch(toasts.failed)}
        >
          <Icon name="out" />
        </button>
        <button disabled={!isShown} onClick={() => void stop().catch(toasts.failed)}>
          <Icon name="stop" /> Stop
        </button>
      </header>
      {state.kind === "starting" && (
        <p className="loading quiet" role="status">
          {starting}
        </p>
      )}
      {state.kind === "failed" && (
        <div className="column">
          <Notice problem={state.problem} action={{ label: "Try again", run: open }} />
        </div>
      )}
      {state.kind === "stopped" && (
        <SiteNotice icon={icon}>
          <p>{stopped}</p>
          <button className="primary" onClick={open}>
            Start again
          </button>
        </SiteNotice>
      )}
      {state.kind === "off" && <SiteNotice icon={icon}>{off}</SiteNotice>}
      {isShown && <SiteFrame key={state.site.opening} title={title} address={state.site.address} allow={allow} />}
    </div>
  );
}

function SiteFrame({ title, address, allow }: { title: string; address: string; allow: string }) {
  const [loaded, setLoaded] = useState(false);
  return (
    <div className="preview-stage" aria-busy={!loaded}>
      {!loaded && <span className="preview-progress" aria-hidden="true" />}
      <div className="preview-device preview-site">
        <iframe
          title={title}
          src={address}
          sandbox={SANDBOX}
          allow={allow}
          referrerPolicy="no-referrer"
          onLoad={() => setLoaded(true)}
        />
      </div>
    </div>
  );
}
