import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // node_modules is a link to read-only packages, so Vite keeps its cache elsewhere.
  cacheDir: "/tmp/vite",
  server: {
    host: "127.0.0.1",
    port: 5173,
    strictPort: true,
    fs: { allow: [".", "/opt/agents/.starter", "/tmp/vite"] },
  },
});
