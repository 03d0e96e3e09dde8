// The search of the documentation. Everything else works without script.
const root = document.body.dataset.root ?? "";
const field = document.querySelector(".search input");
const list = document.getElementById("found");
let rows = null;

async function load() {
  try {
    rows ??= fetch(`${root}search.json`).then((answer) => answer.json());
    return await rows;
  } catch {
    rows = null;
    return null;
  }
}

function score(row, words) {
  const [page, title, , text] = row.map((part) => part.toLowerCase());
  let sum = 0;
  for (const word of words) {
    const found = (title.includes(word) ? 10 : 0) + (page.includes(word) ? 4 : 0) + (text.includes(word) ? 1 : 0);
    if (found === 0) return 0;
    sum += found;
  }
  return sum;
}

async function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    list.hidden = true;
    return;
  }
  const all = await load();
  if (all === null) {
    list.textContent = "The search cannot be loaded. Type again to try once more.";
    list.hidden = false;
    return;
  }
  const found = all
    .map((row) => ({ row, points: score(row, words) }))
    .filter((one) => one.points > 0)
    .sort((one, other) => other.points - one.points)
    .slice(0, 12);
  list.replaceChildren(
    ...found.map(({ row: [page, title, address] }) => {
      const link = document.createElement("a");
      link.href = root + address;
      const where = document.createElement("span");
      where.className = "quiet";
      where.textContent = page === title ? "" : page;
      link.append(title, " ", where);
      return link;
    }),
  );
  if (found.length === 0) list.textContent = "Nothing found.";
  list.hidden = false;
}

field?.addEventListener("input", () => void search());
field?.addEventListener("focus", () => void load());
if (field?.value) void search(); // it was typed before this script was there
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof Element && event.target.closest("input, textarea, select") !== null;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    field?.focus();
  } else if (event.key === "Escape" && list !== null) list.hidden = true;
});
document.addEventListener("click", (event) => {
  if (list !== null && !(event.target instanceof Element && event.target.closest(".search"))) list.hidden = true;
});
