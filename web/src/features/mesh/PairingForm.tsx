import { type FormEvent, useEffect, useState } from "react";
import type { Introduction, Neighbour, PairingCode } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { CopyButton } from "../../ui/CopyButton";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { GrantChoice } from "./GrantChoice";
import { accountText, codeOfHash, pairingLink } from "./neighbours.logic";

/** Makes a code for the other owner, or enters the code of the other side. */
export function PairingForm({ onPaired }: { onPaired: () => void }) {
  const [grants, setGrants] = useState<Neighbour["grants"]>([]);
  const [made, setMade] = useState<PairingCode | null>(null);
  const [address, setAddress] = useState("");
  const [code, setCode] = useState(() => codeOfHash(location.hash));
  const [found, setFound] = useState<Introduction | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);

  // The code of a link stays neither in the address nor in the history of the browser.
  useEffect(() => {
    if (codeOfHash(location.hash) !== "") history.replaceState(history.state, "", location.pathname);
  }, []);

  const link = made === null ? null : pairingLink(address, made.code);

  async function run(work: () => Promise<void>) {
    setIsBusy(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  }

  const make = () =>
    run(async () => setMade(await request<PairingCode>("/v1/mesh/codes", { method: "POST", body: { grants } })));

  const look = (event: FormEvent) => {
    event.preventDefault();
    void run(async () =>
      setFound(await request<Introduction>("/v1/mesh/codes/read", { method: "POST", body: { code: code.trim() } })),
    );
  };

  const pair = () =>
    run(async () => {
      await request("/v1/mesh/neighbours", { method: "POST", body: { code: code.trim(), grants } });
      setFound(null);
      setCode("");
      onPaired();
    });

  return (
    <section className="card" aria-labelledby="mesh-pair">
      <h2 id="mesh-pair">Pair with another Freehold</h2>
      {problem && <Notice problem={problem} />}
      <GrantChoice legend="The neighbour may, here:" grants={grants} onChange={setGrants} />
      <div className="mesh-actions">
        <button type="button" className="primary" disabled={isBusy} onClick={() => void make()}>
          Make a code
        </button>
      </div>
      {made && (
        <div role="status">
          <p>Enter this code at the other Freehold within ten minutes. It works once.</p>
          <p className="mesh-key">
            <code>{made.code}</code> <CopyButton text={made.code} label="Copy the code" />
          </p>
          <label>
            Or the address of the other control center
            <input
              type="url"
              value={address}
              placeholder="https://freehold.example.com"
              autoComplete="off"
              onChange={(event) => setAddress(event.target.value)}
            />
          </label>
          {link !== null && (
            <p>
              <a href={link} target="_blank" rel="noreferrer">
                Open it there with this code
              </a>{" "}
              <CopyButton text={link} label="Copy the link" />
            </p>
          )}
        </div>
      )}
      <form onSubmit={look}>
        <label>
          Or enter the code of the other Freehold
          <input
            type="text"
            value={code}
            placeholder="freehold-pair:…"
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => {
              setCode(event.target.value);
              setFound(null);
            }}
          />
        </label>
        <button type="submit" disabled={isBusy || code.trim() === ""}>
          Look who it is
        </button>
      </form>
      {found && (
        <div role="status">
          <p>
            {visibleText(found.name)} at {visibleText(found.url)}. {visibleText(accountText(found.did, found.proof))}
          </p>
          <p className="mesh-key">
            <code>{found.npub}</code>
          </p>
          <p>Compare this key with the one that the other owner sees.</p>
          <button type="button" className="primary" disabled={isBusy} onClick={() => void pair()}>
            Pair: the key is right
          </button>
        </div>
      )}
    </section>
  );
}
