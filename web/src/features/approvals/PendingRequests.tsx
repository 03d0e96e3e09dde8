import { useState } from "react";
import { shorten } from "../../ui/format";
import { go, sessionPath, useRoute } from "../../ui/route";
import { useEgress } from "../network/EgressProvider";
import {
  answerChoices,
  grantNote,
  type NetworkRequest,
  networkRequestsOf,
  visibleTarget,
} from "../network/egress.logic";
import { useListedSession } from "../session-list/SessionListProvider";
import { sessionTitle } from "../session-list/sessionList.logic";
import { useApprovals } from "./ApprovalsProvider";
import { type KeyMode, keyModeOf } from "./answerKeys.logic";
import type { PermissionRequest } from "./approvals.logic";
import { PermissionCard } from "./PermissionCard";
import { RequestCard, type RequestStack } from "./RequestCard";
import "./approvals.css";

const MAX_TITLE = 60;

type Item =
  | { kind: "permission"; key: string; request: PermissionRequest }
  | { kind: "network"; key: string; request: NetworkRequest };

/** On every page while a request waits for the owner. The requests of the open session are in its dock instead. */
export function PendingRequests() {
  const { path, query } = useRoute();
  const { requests } = useApprovals();
  const { state } = useEgress();
  const [chosen, setChosen] = useState(0);
  const [expanded, setExpanded] = useState(false);
  const [hidden, setHidden] = useState<readonly string[]>([]);
  const openSession = path === "/sessions" ? query.get("id") : null;
  const items: Item[] = [
    ...requests
      .filter((one) => one.session !== openSession)
      .map((one): Item => ({ kind: "permission", key: `agent ${one.id}`, request: one })),
    ...networkRequestsOf(state).map((one): Item => ({ kind: "network", key: `network ${one.id}`, request: one })),
  ];
  const index = Math.min(chosen, Math.max(0, items.length - 1));
  const item = items[index];
  const newest = requests.at(-1);
  // A request in the dock of the open session comes first. The others wait in one line, and so do hidden ones.
  const hasDocked = requests.some((one) => one.session === openSession);
  const collapsed = (hasDocked && !expanded) || items.every((one) => hidden.includes(one.key));
  const cardProps = {
    keyMode: keyModeOf("bar", openSession !== null),
    stack: {
      index,
      count: items.length,
      step: (by: 1 | -1) => setChosen((index + by + items.length) % items.length),
    },
    onHide: () => {
      setHidden(items.map((one) => one.key));
      setExpanded(false);
    },
  };
  return (
    <>
      <p className="visually-hidden" role="alert">
        {newest !== undefined && `An agent needs you. It wants to ${newest.action}`}
      </p>
      {item !== undefined && collapsed && (
        <section className="approvals-bar approvals-collapsed" aria-label="Requests that need you">
          <p>
            {items.length} {hasDocked && "more "}
            {items.length === 1 ? "request needs" : "requests need"} you
          </p>
          <button
            type="button"
            className="small"
            onClick={() => {
              setExpanded(true);
              setHidden([]);
            }}
          >
            Show
          </button>
        </section>
      )}
      {item !== undefined && !collapsed && (
        <div className="approvals-bar">
          {item.kind === "permission" ? (
            <SessionPermissionCard key={item.key} request={item.request} {...cardProps} />
          ) : (
            <NetworkRequestCard key={item.key} request={item.request} {...cardProps} />
          )}
        </div>
      )}
    </>
  );
}

interface CardProps {
  keyMode: KeyMode;
  stack: RequestStack;
  onHide: () => void;
}

function SessionPermissionCard({ request, ...cardProps }: CardProps & { request: PermissionRequest }) {
  const { answer } = useApprovals();
  return (
    <PermissionCard
      request={request}
      from={
        <>
          {" in "}
          <SessionTitle id={request.session} />
        </>
      }
      onAnswer={(choice) => answer(request, choice)}
      {...cardProps}
    />
  );
}

function NetworkRequestCard({ request, ...cardProps }: CardProps & { request: NetworkRequest }) {
  const { answer } = useEgress();
  const choices = answerChoices(request);
  return (
    <RequestCard
      label="Network request"
      heading={
        <>
          {request.session === null ? "A program in the computer" : <SessionTitle id={request.session} />} wants to
          connect to <code className="target">{visibleTarget(request.target)}</code>
        </>
      }
      choices={choices.map((choice) => ({
        ...choice,
        tone: choice.answer === "never" ? "no" : choice.answer === "once" ? "yes" : "more",
      }))}
      grantNote={grantNote(
        visibleTarget(request.target),
        choices.map((choice) => choice.answer),
      )}
      onChoose={(index) => {
        const choice = choices[index];
        return choice === undefined ? undefined : answer(request.id, choice.answer);
      }}
      {...cardProps}
    />
  );
}

function SessionTitle({ id }: { id: string }) {
  const session = useListedSession(id);
  return (
    <button type="button" className="text-button" onClick={() => go(sessionPath(id))}>
      {session === null ? "a session" : shorten(sessionTitle(session), MAX_TITLE)}
    </button>
  );
}
