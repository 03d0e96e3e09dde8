import { shortLine } from "../../../ui/plainText.logic";
import { visibleText } from "../../../ui/visibleText";
import { StoredImage } from "./StoredImage";
import type { Item } from "./transcript.logic";
import { useTranscript } from "./transcriptContext";

/** Pictures of a tool: a screenshot of the browser, figures of code. */
export function PicturesItem({ item }: { item: Extract<Item, { kind: "pictures" }> }) {
  const { session } = useTranscript();
  const words = visibleText(shortLine(item.text));
  return (
    <figure className="conversation-pictures">
      {item.pictures.map((picture) => (
        <StoredImage
          key={picture.place}
          address={`/v1/sessions/${encodeURIComponent(session)}/turns/${item.turn}/images/${picture.place}`}
          title={words || "Picture"}
          type={picture.mime}
          className="conversation-picture"
        />
      ))}
      {words !== "" && <figcaption className="quiet">{words}</figcaption>}
    </figure>
  );
}
