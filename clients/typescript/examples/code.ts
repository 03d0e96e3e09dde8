// Code in a context, with its output as it arrives. examples/client/code.py is the same in Python.
import { Freehold, RequestFailed } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

const context = await home.code.createContext("python");
await home.code.executeIn(context.id, "x = 40");
for await (const part of home.code.streamIn(context.id, "print('counting')\nx + 2")) {
  if (part.output) process.stdout.write(part.output.text);
  if (part.item) console.log(part.item.text);
}
console.log(await home.code.evaluateIn(context.id, "f'{x} and 2'"));
try {
  await home.code.evaluate("python", "x");
} catch (error) {
  if (!(error instanceof RequestFailed)) throw error;
  console.log(error.problem.code);
}
await home.code.deleteContext(context.id);
try {
  await home.code.context(context.id);
} catch (error) {
  if (!(error instanceof RequestFailed)) throw error;
  console.log(error.problem.code);
}
