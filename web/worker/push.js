// A part of the service worker: it shows push messages of this Freehold. It has no key: whoever opens the page from a
// message signs in as always.
self.addEventListener("push", (event) => {
  let message = { title: "Freehold", body: "Something happened", link: "/", tag: "freehold" };
  try {
    const data = event.data?.json();
    for (const name of Object.keys(message)) {
      if (typeof data[name] === "string") message = { ...message, [name]: data[name].slice(0, 4000) };
    }
  } catch {
    // It is shown that something happened.
  }
  const { title, body, link, tag } = message;
  // One with the same tag replaces the one before: a message that is sent twice is shown once.
  event.waitUntil(self.registration.showNotification(title, { body, tag, icon: "/icon-192.png", data: { link } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPage(event.notification.data?.link));
});

/** Only a page of this Freehold is opened, whatever the message says. */
async function openPage(link) {
  let address = new URL("/", self.location.origin);
  try {
    const wanted = new URL(link, self.location.origin);
    if (wanted.origin === self.location.origin) address = wanted;
  } catch {
    // The first page is opened.
  }
  const open = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const same = open.find((client) => client.url === address.href);
  if (same) return same.focus();
  return self.clients.openWindow(address.href);
}
