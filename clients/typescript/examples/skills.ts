// Shipped skills: looked at, added, switched off, removed. examples/client/skills.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

const looked = (await home.skills.look("shipped")).skills;
for (const { content } of looked) console.log(content.name, content.scripts.length, content.findings.length);
const [name = ""] = await home.skills.add(looked.slice(0, 1).map((one) => one.content.digest));
console.log((await home.skills.get(name)).skill.source.kind);
console.log((await home.skills.switch(name, { on: false })).on ? "on" : "off");
await home.skills.remove(name);
