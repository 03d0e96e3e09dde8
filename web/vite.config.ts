import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "dist",
    // The gateway's content policy allows no data: scripts and no inline ones; keep every asset a file.
    assetsInlineLimit: 0,
    sourcemap: false,
  },
});
