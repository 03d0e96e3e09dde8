import { useState } from "react";
import { unhidden } from "../../ui/unhidden";
import { useEgress } from "../network/egress";
import { plainTarget, questionsOf, REPLIES } from "../network/egress.logic";
import { useRoster } from "../sessions/roster";
import { go, useRoute } from "../shell/route";
import { useApprovals } from "./approvals";
import { keysOf } from "./approvals.logic";
import { AskCard, QuestionCard } from "./AskCard";
import "./approvals.css";

const LONGEST = 60;
const shortened = (title: string) => (title.length > LONGEST ? `${title.slice(0, LONGEST - 1)}…` : title);

/** On every page while an agent or the network waits for the owner; what the open session asks stands in its dock. */
export function NeedsYou() {
  const { path, query } = useRoute();
  const { asks, answer } = useApprovals();
  const roster = useRoster();
  const egress = useEgress();
  const [at, setAt] = useState(0);
  const [unfolded, setUnfolded] = useState(false);
  const [aside, setAside] = useState<readonly string[]>([]);
  const open = path === "/sessions" ? query.get("id") : null;
  const items = [
    ...asks.filter((ask) => ask.session !== open).map((ask) => ({ key: `agent ${ask.id}`, ask, question: null })),
    ...(egress.state === null ? [] : questionsOf(egress.state)).map((question) => ({ key: `network ${question.id}`, ask: null, question })),
  ];
  const index = Math.min(at, Math.max(0, items.length - 1));
  const item = items[index];
  const stack = { index, count: items.length, step: (by: 1 | -1) => setAt((index + by + items.length) % items.length) };
  const session = item?.ask ? (roster.rows?.find((row) => row.id === item.ask.session) ?? null) : null;
  const newest = asks.at(-1);
  // The dock of the open session has the first word; the rest waits in one line, as does what was put aside until more comes.
  const docked = asks.some((ask) => ask.session === open);
  const folded = (docked && !unfolded) || items.every((one) => aside.includes(one.key));
  const keys = keysOf("bar", open !== null);
  const later = () => {
    setAside(items.map((one) => one.key));
    setUnfolded(false);
  };
  return (
    <>
      <p className="unseen" role="alert">
        {newest !== undefined && `An agent needs you: it wants to ${newest.wants}`}
      </p>
      {item !== undefined && folded && (
        <section className="ask-bar ask-folded" aria-label="What else waits for you">
          <p>
            {items.length} {docked && "more "}
            {items.length === 1 ? "waits" : "wait"} for you
          </p>
          <button
            className="small"
            onClick={() => {
              setUnfolded(true);
              setAside([]);
            }}
          >
            Show
          </button>
        </section>
      )}
      {item !== undefined && !folded && (
        <div className="ask-bar">
          {item.ask !== null ? (
            <AskCard
              key={item.key}
              ask={item.ask}
              keys={keys}
              onLater={later}
              stack={stack}
              from={
                <>
                  {" in "}
                  <button className="text-button" onClick={() => go(`/sessions?id=${encodeURIComponent(item.ask.session)}`)}>
                    {shortened(unhidden(session?.title || "its session"))}
                  </button>
                </>
              }
              onAnswer={(choice) => answer(item.ask, choice)}
            />
          ) : (
            <QuestionCard
              key={item.key}
              label="A question about the network"
              heading={
                <>
                  The computer wants to reach <code className="target">{plainTarget(item.question.target)}</code>
                </>
              }
              stack={stack}
              keys={keys}
              onLater={later}
              choices={REPLIES.map(({ label, means, answer: reply }) => ({ label, means, tone: reply === "never" ? "no" : reply === "once" ? "yes" : "more" }))}
              onChoose={(chosen) => {
                const reply = REPLIES[chosen];
                return reply === undefined ? undefined : egress.reply(item.question.id, reply.answer);
              }}
            />
          )}
        </div>
      )}
    </>
  );
}
