// The shared sheets come first, so that the sheet of a feature can override them.
import "./ui/theme.css";
import "./ui/parts.css";
import "./ui/centered.css";
import "./ui/dialog.css";
import "./ui/menu.css";
import "./ui/meter.css";
import "./ui/split.css";
import "./ui/toasts.css";
import "./app/app.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { readTheme, setTheme } from "./ui/theme";

setTheme(readTheme());
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
