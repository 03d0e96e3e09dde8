// The sheets of the house come first, so that a page's own may say otherwise.
import "./ui/theme.css";
import "./ui/parts.css";
import "./features/shell/shell.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { readTheme, setTheme } from "./features/shell/theme";

setTheme(readTheme());
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
