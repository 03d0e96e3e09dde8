import { type FormEvent, useState } from "react";
import type { McpAnswer, McpTool } from "../../client/api";
import { visibleText } from "../../ui/visibleText";
import { readArguments, stateOf } from "./mcp.logic";

interface McpToolItemProps {
  server: string;
  tool: McpTool;
  busy: boolean;
  onDecide: (tool: McpTool, digest: string | null) => void;
  onCall: (tool: McpTool, given: Record<string, unknown>) => Promise<McpAnswer | null>;
}

/** One tool as its server describes it: allowed as it is shown, or not, and a form that calls it. */
export function McpToolItem({ server, tool, busy, onDecide, onCall }: McpToolItemProps) {
  const [isOpen, setIsOpen] = useState(tool.changed);
  const [text, setText] = useState("{}");
  const [answer, setAnswer] = useState<McpAnswer | null>(null);
  const given = readArguments(text);
  const name = `${server} ${tool.name}`;

  async function call(event: FormEvent) {
    event.preventDefault();
    if (given !== null) setAnswer(await onCall(tool, given));
  }

  return (
    <li>
      <div className="mcp-actions">
        <h3 className="mcp-name">{visibleText(tool.name)}</h3>
        <span className="chip" data-tone={tool.changed ? "amber" : tool.allowed ? "leaf" : undefined}>
          {stateOf(tool)}
        </span>
        <button
          type="button"
          className="small"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? "Hide" : "Show"} ${name}`}
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? "Hide" : "Show"}
        </button>
        <button
          type="button"
          className="small"
          disabled={busy}
          aria-label={`${tool.allowed ? "Do not allow" : "Allow"} ${name}`}
          onClick={() => onDecide(tool, tool.allowed ? null : tool.digest)}
        >
          {tool.allowed ? "Do not allow" : "Allow"}
        </button>
      </div>
      {tool.changed && <p className="problem-text">Its server describes it in another way than you have allowed.</p>}
      <p className="mcp-text" dir="auto">
        {visibleText(tool.description)}
      </p>
      {isOpen && (
        <>
          <pre tabIndex={0}>{visibleText(tool.parameters)}</pre>
          <form className="mcp-form" onSubmit={(event) => void call(event)}>
            <input
              aria-label={`Arguments of ${name}`}
              maxLength={100000}
              value={text}
              aria-invalid={given === null}
              onChange={(event) => setText(event.target.value)}
            />
            <button type="submit" className="small" disabled={busy || given === null} aria-label={`Call ${name}`}>
              Call
            </button>
          </form>
          {answer && (
            <pre tabIndex={0} className={answer.failed ? "problem-text" : ""}>
              {visibleText(answer.text)}
            </pre>
          )}
        </>
      )}
    </li>
  );
}
