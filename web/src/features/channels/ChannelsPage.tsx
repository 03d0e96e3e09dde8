import { useState } from "react";
import type { ChannelInfo, PushSubscription } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { AddChannelDialog } from "./AddChannelDialog";
import { ChannelCard } from "./ChannelCard";
import { concernsChannels, withChannel } from "./channels.logic";
import { PushSection } from "./PushSection";
import "./channels.css";

/** How the owner is reached away from this page: add, pair, try and remove channels, and choose what they tell. */
export default function ChannelsPage() {
  const options = { topic: "timeline", durable: true, concerns: concernsChannels, delay: 100, pollInterval: 10_000 };
  const list = useResource<ChannelInfo[]>("/v1/channels", { ...options, apply: withChannel });
  const browsers = useResource<PushSubscription[]>("/v1/channels/webpush/subscriptions", options);
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isAdding, setIsAdding] = useState(false);
  const problem = failure ?? list.problem;
  const isOff = problem?.code === "channels.stopped";

  function reload() {
    setFailure(null);
    list.reload();
    browsers.reload();
  }

  async function run(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      reload();
      return true;
    } catch (error) {
      setFailure(problemOf(error));
      return false;
    }
  }

  const remove = (channel: ChannelInfo) =>
    run(() => request(`/v1/channels/${encodeURIComponent(channel.name)}`, { method: "DELETE" }));

  return (
    <div className="column channels">
      <header className="head">
        <h1>Channels</h1>
        <p className="quiet">Be told what happens, and answer, when this page is not open.</p>
      </header>
      {problem && !isOff && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {isOff ? (
        <p className="empty">
          Channels are off. To turn them on, set <code>channels.enabled = true</code> in freehold.toml and restart
          Freehold.
        </p>
      ) : (
        <>
          <PushSection browsers={browsers.value ?? []} onChange={reload} />
          <div className="section-head">
            <h2>Messengers and e-mail</h2>
            <button type="button" className="small" onClick={() => setIsAdding(true)}>
              Add a channel
            </button>
          </div>
          {list.value === null && !problem && (
            <p className="quiet" role="status">
              Loading…
            </p>
          )}
          {list.value?.length === 0 && <p className="empty">No channels yet. Add Telegram, Matrix or e-mail.</p>}
          <ul className="channels-list">
            {list.value?.map((channel) => (
              <li key={channel.name}>
                <ChannelCard
                  channel={channel}
                  onReply={list.receive}
                  onChange={reload}
                  onRemove={() => void remove(channel)}
                />
              </li>
            ))}
          </ul>
        </>
      )}
      {isAdding && (
        <AddChannelDialog
          onClose={() => {
            setIsAdding(false);
            reload();
          }}
        />
      )}
    </div>
  );
}
