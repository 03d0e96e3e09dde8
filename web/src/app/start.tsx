import { StrictMode, startTransition } from "react";
import { createRoot } from "react-dom/client";
import { readKey } from "../client/signInKey";
import { LANGUAGE } from "../language/translation";
import { readTheme, setTheme } from "../ui/theme";
import { App } from "./App";
import { keepOffline } from "./offlineShell";
import { componentAt } from "./pageComponents";

document.documentElement.lang = LANGUAGE;
setTheme(readTheme());
keepOffline();
// Most likely this page is drawn next; its code need not wait for the reply about who is signed in.
if (readKey() !== null) componentAt(location.pathname).load();
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
// In a transition React draws in short steps, so that a slow processor is not blocked.
startTransition(() =>
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  ),
);
