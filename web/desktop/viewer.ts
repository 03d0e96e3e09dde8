import RFB from "@novnc/novnc";
import { keysFor } from "./keys";

interface Settings {
  clipboard: "off" | "to-desktop" | "from-desktop" | "both";
}

function find<E extends HTMLElement>(id: string): E {
  return document.getElementById(id) as E;
}

const screen = find("screen");
const state = find("state");
const words = find("words");
const again = find<HTMLButtonElement>("again");
const keyboard = find<HTMLButtonElement>("keyboard");
const typed = find<HTMLTextAreaElement>("typed");
const settings: Settings = await fetch("./settings.json").then((answer) => answer.json());
const sends = settings.clipboard === "to-desktop" || settings.clipboard === "both";
const receives = settings.clipboard === "from-desktop" || settings.clipboard === "both";
let shown: RFB | null = null;
let sent = "";

function say(text: string, canConnect: boolean) {
  words.textContent = text;
  again.hidden = !canConnect;
  state.hidden = text === "";
}

function connect() {
  say("Connecting…", false);
  screen.replaceChildren();
  const address = new URL("./socket", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const rfb = new RFB(screen, address.href, { shared: true });
  rfb.resizeSession = true;
  rfb.scaleViewport = true;
  rfb.showDotCursor = true;
  rfb.background = "transparent";
  rfb.addEventListener("connect", () => {
    shown = rfb;
    sent = "";
    keyboard.hidden = !matchMedia("(pointer: coarse)").matches;
    document.documentElement.dataset.connected = "";
    say("", false);
    rfb.focus();
  });
  rfb.addEventListener("disconnect", () => {
    shown = null;
    keyboard.hidden = true;
    delete document.documentElement.dataset.connected;
    say("The desktop has ended or cannot be reached.", true);
  });
  rfb.addEventListener("clipboard", (event) => {
    const text = (event as CustomEvent<{ text: string }>).detail.text;
    sent = text;
    if (receives) navigator.clipboard.writeText(text).catch(() => undefined);
  });
}

/** What the owner has copied elsewhere goes to the desktop when they come back to it, if they allow that. */
async function sendClipboard() {
  if (!sends || shown === null) return;
  const text = await navigator.clipboard.readText().catch(() => "");
  if (text === "" || text === sent) return;
  sent = text;
  shown?.clipboardPasteFrom(text);
}

again.addEventListener("click", connect);
addEventListener("focus", () => void sendClipboard());
keyboard.addEventListener("click", () => typed.focus());
typed.addEventListener("beforeinput", (event) => {
  for (const key of keysFor(event.inputType, event.data)) shown?.sendKey(key, null);
  event.preventDefault();
});
connect();
