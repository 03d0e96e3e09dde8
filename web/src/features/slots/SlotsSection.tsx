import { formatDateTime, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { go } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { SLOTS, slotFacts, stateOf } from "./slots.logic";
import { useSlots } from "./useSlots";
import "./slots.css";

/** Every slot: where it is kept, whether it works, and what its privacy filter does. */
export function SlotsSection() {
  const slots = useSlots();
  const rows = SLOTS.flatMap((words) => {
    const slot = slots.value?.find((one) => one.name === words.name);
    return slot === undefined ? [] : [{ words, slot, state: stateOf(slot) }];
  });
  return (
    <>
      <p className="quiet slots-about">
        Places for what lasts and is not a file. Each is kept here, by an external service, or off: <code>[slots]</code>{" "}
        in freehold.toml.
      </p>
      {slots.problem && <Notice problem={slots.problem} action={{ label: "Try again", run: slots.reload }} />}
      <ul className="rows" aria-label="Slots" aria-busy={slots.value === null && slots.problem === null}>
        {rows.map(({ words, slot, state }) => (
          <li key={slot.name} className="wrapping-row">
            <div className="grow">
              <p className="row-title">
                <strong>{words.title}</strong>
                <span className="chip" data-tone={state.tone}>
                  {state.text}
                </span>
                <span className="quiet">{words.about}</span>
              </p>
              {slot.mode === "off" ? (
                <p className="quiet">
                  <code>slots.{slot.name} = "local"</code> turns it on after a restart.
                </p>
              ) : (
                <p className="quiet">{slotFacts(slot)}</p>
              )}
              {slot.error !== null && (
                <p className="problem-text">
                  {visibleText(slot.error)}, since {formatDateTime(secondsOf(slot.since))}
                </p>
              )}
            </div>
            {slot.mode !== "off" && (
              <button type="button" className="small" onClick={() => go(words.path)}>
                Open {words.title}
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
