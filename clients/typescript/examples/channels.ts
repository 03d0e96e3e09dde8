// A channel that tells what failed, and not at night. examples/client/channels.py is the same in Python.
import { Freehold, RequestFailed } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

const server = { server: "smtp.example.org", sender: "freehold@example.org" };
const channel = await home.channels.add("email", server, { name: "mail" });
const quiet = { tells: ["failed" as const], quietFrom: "22:00", quietUntil: "07:00" };
const { preferences } = await home.channels.setPreferences("mail", quiet);
console.log(channel.kind, ...preferences.tells, preferences.quiet_from);
try {
  await home.channels.test("mail");
} catch (error) {
  if (!(error instanceof RequestFailed)) throw error;
  console.log(error.problem.code); // it is not paired with you yet: home.channels.pair
}
await home.channels.remove("mail");
console.log(...(await home.channels.list()).map((one) => one.name));
