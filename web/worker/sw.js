// The service worker: it keeps the frame of the control center, so that it is there at once and without a connection.
// It answers for pages and built files only. Everything else, above all the API, is never seen by it.
const VERSION = "__VERSION__";
const SHELL = __SHELL__;
const PAGES = new Set(__PAGES__);
const CACHE = `freehold-${VERSION}`;
/** Files that another app shared, until the page takes them (features/sessions/composer/sharedFiles.ts). */
const SHARED = "shared";
const MAX_SHARED = 10;

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(SHELL.map(freshRequest)))
      .then(() => self.skipWaiting()),
  );
});

/** A built file has its hash in its name, so the one that the browser has is right and is not asked for again. */
function freshRequest(path) {
  return new Request(path, { cache: path.startsWith("/assets/") ? "default" : "reload" });
}

self.addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) =>
        Promise.all(
          names.filter((name) => name.startsWith("freehold-") && name !== CACHE).map((name) => caches.delete(name)),
        ),
      )
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (origin !== self.location.origin) return;
  if (request.method === "POST" && request.mode === "navigate" && pathname === "/share")
    event.respondWith(takeShared(request));
  if (request.method !== "GET") return;
  if (request.mode === "navigate") {
    if (!PAGES.has(pathname)) return;
    event.respondWith(fromCache("/", request));
    event.waitUntil(refreshFrame());
  } else if (pathname.startsWith("/assets/") || SHELL.includes(pathname)) {
    event.respondWith(fromCache(pathname, request));
  }
});

/**
 * Takes the headers of the page as they are now: its content policy names where previews are. A page of another version
 * comes with another worker.
 */
async function refreshFrame() {
  const cache = await caches.open(CACHE);
  const [held, answer] = await Promise.all([cache.match("/"), fetch("/", { cache: "no-cache" }).catch(() => null)]);
  if (held === undefined || !answer?.ok) return;
  const copy = answer.clone();
  if ((await held.text()) === (await answer.text())) await cache.put("/", copy);
}

/** From the cache of this version; else from the gateway. A built file is then kept: its name has its hash. */
async function fromCache(path, request) {
  const cache = await caches.open(CACHE);
  const held = await cache.match(path);
  if (held !== undefined) return held;
  const answer = await fetch(request);
  if (answer.ok && path.startsWith("/assets/")) await cache.put(path, answer.clone());
  return answer;
}

/**
 * What another app shares becomes the begin of a message that the owner sends or not. Files stay in the browser until
 * the owner adds them. No such request reaches the gateway: any page of the web could make one.
 */
async function takeShared(request) {
  const form = await request.formData();
  const query = new URLSearchParams();
  for (const name of ["title", "text", "url"]) {
    const value = form.get(name);
    if (typeof value === "string" && value !== "") query.set(`share_${name}`, value.slice(0, 5_000));
  }
  const files = form.getAll("files").filter((file) => file instanceof File && file.name !== "");
  await caches.delete(SHARED);
  const cache = await caches.open(SHARED);
  for (const [place, file] of files.slice(0, MAX_SHARED).entries()) {
    const headers = { "content-type": file.type, "x-name": encodeURIComponent(file.name) };
    await cache.put(`/share/${place}`, new Response(file, { headers }));
  }
  if (files.length > 0) query.set("share_files", "1");
  return Response.redirect(`/sessions?${query}`, 303);
}
