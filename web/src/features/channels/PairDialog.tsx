import { type FormEvent, useState } from "react";
import type { ChannelInfo, ChannelPairing } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { CopyButton } from "../../ui/CopyButton";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { KIND_TITLES, needsAddress } from "./channels.logic";

/** Pairs a channel with the owner by a one-time code: said through the channel, or for e-mail typed here. */
export function PairDialog({ channel, onClose }: { channel: ChannelInfo; onClose: () => void }) {
  const path = `/v1/channels/${encodeURIComponent(channel.name)}`;
  const [address, setAddress] = useState("");
  const [code, setCode] = useState("");
  const [offer, setOffer] = useState<ChannelPairing | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  async function run(event: FormEvent, work: () => Promise<void>) {
    event.preventDefault();
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  async function begin() {
    setOffer(await request<ChannelPairing>(`${path}/pair`, { method: "POST", body: { address: address || null } }));
  }

  async function confirm() {
    await request(`${path}/confirm`, { method: "POST", body: { code } });
    onClose();
  }

  return (
    <Dialog title={`Pair ${KIND_TITLES[channel.kind]} with you`} onClose={onClose}>
      {problem && <Notice problem={problem} />}
      {offer === null ? (
        <form className="stack" onSubmit={(event) => void run(event, begin)}>
          <p>You get a code that is good once and for ten minutes.</p>
          {needsAddress(channel.kind) && (
            <label>
              Your own address
              <input
                required
                maxLength={400}
                placeholder={channel.kind === "matrix" ? "@you:example.com" : "you@example.com"}
                value={address}
                onChange={(event) => setAddress(event.target.value)}
                autoFocus
              />
            </label>
          )}
          <div className="dialog-foot">
            <button type="submit" className="primary">
              Get a code
            </button>
          </div>
        </form>
      ) : (
        <form className="stack" onSubmit={(event) => void run(event, confirm)}>
          <p>{offer.words}.</p>
          {offer.code === null ? (
            <label>
              Code
              <input required maxLength={40} value={code} onChange={(event) => setCode(event.target.value)} autoFocus />
            </label>
          ) : (
            <p>
              <code className="channels-code">{offer.code}</code> <CopyButton text={`/pair ${offer.code}`} />
            </p>
          )}
          {offer.link !== null && (
            <p>
              <a href={offer.link} target="_blank" rel="noreferrer">
                Open it in {KIND_TITLES[channel.kind]}
              </a>
            </p>
          )}
          <div className="dialog-foot">
            {offer.code === null ? (
              <button type="submit" className="primary">
                Confirm
              </button>
            ) : (
              <button type="button" className="primary" onClick={onClose}>
                Done
              </button>
            )}
          </div>
        </form>
      )}
    </Dialog>
  );
}
