import { Code } from "../markdown/Code";
import "../markdown/markdown.css";
import { piecesOf } from "./connecting.logic";
import "./models.css";

/** How to connect a model, with the lines for freehold.toml as they are to stand there. */
export function ConnectHelp({ help }: { help: string }) {
  return (
    <div className="connect-help">
      {piecesOf(help).map((piece, index) => (piece.kind === "toml" ? <Code key={index} text={piece.text} language="toml" live={false} /> : <p key={index}>{piece.text}</p>))}
    </div>
  );
}
