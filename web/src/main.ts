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
import { askEarly } from "./client/early";

// While the code of the page is still loaded. index.html has links to it, so nothing waits for this file.
askEarly();
void import("./app/start");
