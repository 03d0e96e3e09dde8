import { CodeBlock } from "../markdown/CodeBlock";
import { splitHelp } from "./connectHelp.logic";
import "./models.css";

/** How to connect a model, with lines for freehold.toml that can be copied. */
export function ConnectHelp({ help }: { help: string }) {
  return (
    <div className="models-help">
      {splitHelp(help).map((part, index) =>
        part.kind === "toml" ? (
          <CodeBlock key={index} text={part.text} language="toml" live={false} />
        ) : (
          <p key={index}>{part.text}</p>
        ),
      )}
    </div>
  );
}
