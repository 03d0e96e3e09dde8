// `node agentos.mjs ROUNDS AT_ONCE`: agentOS, as bench/isolates.py measures isolates. Prints medians in milliseconds as JSON.
import { AgentOs } from "@rivet-dev/agentos-core";

const [rounds, atOnce] = process.argv.slice(2).map(Number);
// With 64 at once it fails: "ENFILE: maximum open file descriptor limit reached". The others wait for their turn.
const MOST_AT_ONCE = 48;
const CROWDS = 3;
const CODE = { javascript: "[1, 2, 3].length", typescript: "([1, 2, 3] as number[]).length" };

const median = (values) => values.sort((one, other) => one - other)[Math.floor(values.length / 2)];

async function time(action) {
  const start = performance.now();
  const { outcome, error } = await action();
  if (outcome !== "succeeded") throw new Error(error.message);
  return performance.now() - start;
}

/** After one that is not counted; with a pause, in which it can prepare the next. */
async function timeEach(action, pause) {
  await action();
  const durations = [];
  for (let round = 0; round < rounds; round++) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    durations.push(await time(action));
  }
  return median(durations);
}

const vm = await AgentOs.create({ defaultSoftware: false });
const found = {};
for (const [language, code] of Object.entries(CODE)) {
  const { evaluate } = vm[language];
  const oneShot = await timeEach(() => evaluate(code), 20);
  const contextId = `context-${language}`;
  await vm.createContext(contextId);
  const context = await timeEach(() => evaluate(code, { contextId }), 0);
  await vm.contexts.delete(contextId);
  const crowds = [];
  for (let crowd = 0; crowd < CROWDS; crowd++) {
    const start = performance.now();
    let left = atOnce;
    const work = async () => {
      while (left-- > 0) await time(() => evaluate(code));
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, MOST_AT_ONCE) }, work));
    crowds.push(performance.now() - start);
  }
  found[language] = { one_shot: oneShot, context, at_once: median(crowds) };
}
process.stdout.write(JSON.stringify(found), () => process.exit(0));
