import type { Credential } from "../../client/api";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { concernsCredentials, countUses, coverText } from "./credentials.logic";
import "./credentials.css";

const LIVE = { topic: "timeline", durable: true, concerns: concernsCredentials, delay: 300 };

/** Secrets that agents use for named hosts and never see, with their last uses. */
export default function CredentialsPage() {
  const list = useResource<Credential[]>("/v1/credentials", LIVE);
  return (
    <div className="column">
      <header className="head">
        <h1>Credentials</h1>
        <p className="quiet">
          Secrets that agents use for one host and never see. Describe them in <code>freehold.toml</code>, under{" "}
          <code>[credentials.NAME]</code>.
        </p>
      </header>
      {list.problem && <Notice problem={list.problem} action={{ label: "Try again", run: () => list.reload() }} />}
      {list.value === null && !list.problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {list.value?.length === 0 && <p className="empty">There are no credentials yet.</p>}
      <ul className="credentials-list" aria-label="Credentials">
        {(list.value ?? []).map((one) => (
          <li key={one.name} className="card">
            <h2 className="credentials-name">{one.name}</h2>
            <p className="credentials-text">
              {(one.paths.length === 0 ? [""] : one.paths).map((path) => (
                <code key={path}>{visibleText(`https://${one.host}${path}`)} </code>
              ))}
            </p>
            <p>{coverText(one)}</p>
            <p className={one.has_secret ? "quiet" : ""}>{countUses(one)}</p>
            {one.recent.length > 0 && (
              <details>
                <summary>Last uses</summary>
                <ul className="credentials-uses" aria-label={`Last uses of ${one.name}`}>
                  {one.recent.map((use, place) => (
                    <li key={`${use.at} ${place}`} className="credentials-text">
                      <time dateTime={use.at}>{new Date(use.at).toLocaleString()}</time> <code>{use.method}</code>{" "}
                      <code>{visibleText(use.path)}</code>
                    </li>
                  ))}
                </ul>
              </details>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
