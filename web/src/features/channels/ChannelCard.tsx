import { useState } from "react";
import type { ChannelInfo } from "../../client/api";
import { request } from "../../client/http";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { useToasts } from "../../ui/Toasts";
import { factsOf, KIND_TITLES, type Preferences, stateText, TELLS, withQuietHours, withTell } from "./channels.logic";
import { PairDialog } from "./PairDialog";

interface ChannelCardProps {
  channel: ChannelInfo;
  /** Takes the channel as an action has left it. */
  onReply: (channel: ChannelInfo) => void;
  onChange: () => void;
  onRemove: () => void;
}

export function ChannelCard({ channel, onReply, onChange, onRemove }: ChannelCardProps) {
  const [isPairing, setIsPairing] = useState(false);
  const [isTrying, setIsTrying] = useState(false);
  const toasts = useToasts();
  const path = `/v1/channels/${encodeURIComponent(channel.name)}`;
  // What was just chosen is shown until it is stored, also when a list that is older arrives meanwhile.
  const [chosen, setChosen] = useState<Preferences | null>(null);
  const preferences = chosen ?? channel.preferences;

  async function tryIt() {
    setIsTrying(true);
    try {
      await request(`${path}/test`, { method: "POST", body: {} });
      toasts.done(`${channel.name} has taken a message for you`);
    } catch (error) {
      toasts.failed(error);
    }
    setIsTrying(false);
    onChange();
  }

  async function save(changed: Preferences) {
    setChosen(changed);
    try {
      onReply(await request<ChannelInfo>(`${path}/preferences`, { method: "PATCH", body: changed }));
    } catch (error) {
      toasts.failed(error);
    }
    setChosen((latest) => (latest === changed ? null : latest));
  }

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const quiet = (from: string, until: string) => void save(withQuietHours(preferences, from, until, zone));

  return (
    <section className="card" aria-label={channel.name}>
      <p className="channels-title">
        {KIND_TITLES[channel.kind]}
        {channel.name !== channel.kind && ` (${channel.name})`}
      </p>
      <p className="quiet channels-facts">
        <span>{stateText(channel)}</span>
        {factsOf(channel).map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
      {channel.error !== null && <p className="problem-text">{channel.error}</p>}
      {channel.owner !== null && (
        <details>
          <summary>What is told, and when</summary>
          <fieldset className="channels-tells">
            <legend>Tell me when</legend>
            {TELLS.map(({ tell, label }) => (
              <label key={tell} className="radio">
                <input
                  type="checkbox"
                  checked={preferences.tells.includes(tell)}
                  onChange={(event) => void save(withTell(preferences, tell, event.target.checked))}
                />
                {label}
              </label>
            ))}
          </fieldset>
          <label className="radio">
            <input
              type="checkbox"
              checked={preferences.words}
              onChange={(event) => void save({ ...preferences, words: event.target.checked })}
            />
            With the words of agents
          </label>
          <fieldset className="channels-hours">
            <legend>Quiet hours</legend>
            <label>
              From
              <input
                type="time"
                key={preferences.quiet_from ?? "off"}
                defaultValue={preferences.quiet_from ?? ""}
                onBlur={(event) => quiet(event.target.value, preferences.quiet_until ?? "07:00")}
              />
            </label>
            <label>
              Until
              <input
                type="time"
                key={preferences.quiet_until ?? "off"}
                defaultValue={preferences.quiet_until ?? ""}
                onBlur={(event) => quiet(preferences.quiet_from ?? "22:00", event.target.value)}
              />
            </label>
            {preferences.quiet_from !== null && <span className="quiet">{preferences.zone}</span>}
          </fieldset>
        </details>
      )}
      <div className="channels-facts">
        {channel.kind !== "webpush" && (
          <button type="button" className="small" onClick={() => setIsPairing(true)}>
            {channel.owner === null ? "Pair with me" : "Pair again"}
          </button>
        )}
        {channel.owner !== null && (
          <button type="button" className="small" disabled={isTrying} onClick={() => void tryIt()}>
            {isTrying ? "Sending…" : "Send a test"}
          </button>
        )}
        <ConfirmButton
          label="Remove"
          confirmLabel="Remove it now"
          spoken={`Remove ${channel.name}`}
          onConfirm={onRemove}
        />
      </div>
      {isPairing && (
        <PairDialog
          channel={channel}
          onClose={() => {
            setIsPairing(false);
            onChange();
          }}
        />
      )}
    </section>
  );
}
