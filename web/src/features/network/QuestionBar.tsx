import { go } from "../shell/route";
import { plainTarget, questionsOf, REPLIES } from "./egress.logic";
import { useEgress } from "./egress";

/** On every page while something inside waits to be let out. */
export function QuestionBar() {
  const egress = useEgress();
  const questions = egress.state === null ? [] : questionsOf(egress.state);
  const first = questions[0];
  if (first === undefined) return null;
  return (
    <section className="bar question" data-tone="amber" role="alertdialog" aria-label="A question about the network">
      <p>
        The computer wants to reach <code className="target">{plainTarget(first.target)}</code>
        {questions.length > 1 && (
          <>
            {" "}
            <button className="text-button" onClick={() => go("/network")}>
              and {questions.length - 1} more
            </button>
          </>
        )}
      </p>
      <div className="replies">
        {REPLIES.map(({ answer, label, means }) => (
          <button key={answer} className="small" title={means} onClick={() => void egress.reply(first.id, answer)}>
            {label}
          </button>
        ))}
      </div>
    </section>
  );
}
