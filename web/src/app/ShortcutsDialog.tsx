import { Dialog } from "../ui/Dialog";
import { PAGES } from "./pages";

const SHORTCUTS: readonly (readonly [keys: string, effect: string])[] = [
  ...PAGES.map((page) => [`g ${page.key}`, `Open ${page.title}`] as const),
  ["Ctrl K", "Open the commands"],
  ["Ctrl S", "Save the open file"],
  ["n p", "Go to the next or previous change of a comparison"],
  ["c", "Comment on a line of a comparison"],
  ["Ctrl F", "Find in a terminal or session"],
  ["Ctrl J", "Open or close the pane beside a session"],
  ["1–4", "Answer a request of the open session"],
  ["Alt 1–4", "The same while you type; on other pages, answer the request in the bar"],
  ["Ctrl Enter", "Interrupt the agent and send your message now"],
  ["Esc", "Stop the agent, or close a dialog"],
  ["?", "Show these shortcuts"],
];

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      {/* It has the focus and scrolls, so that the sheet begins at its top on a small screen too. */}
      <dl className="app-shortcuts" tabIndex={0} aria-label="Shortcuts">
        {SHORTCUTS.map(([keys, effect]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{effect}</dd>
          </div>
        ))}
      </dl>
      <div className="dialog-foot">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
