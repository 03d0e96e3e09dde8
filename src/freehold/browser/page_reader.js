(() => {
  const MAX_ELEMENTS = 150, MAX_TEXT = 20000, MAX_NAME = 120;
  const wanted = "a[href],button,input,select,textarea,summary,[role=button],[role=link],[role=tab],[role=checkbox],[role=menuitem],[contenteditable=''],[contenteditable=true],[onclick]";
  const isVisible = (one) => {
    const box = one.getBoundingClientRect();
    const style = getComputedStyle(one);
    return box.width > 0 && box.height > 0 && style.visibility !== "hidden" && one.type !== "hidden";
  };
  const short = (text) => String(text ?? "").replace(/\s+/g, " ").trim().slice(0, MAX_NAME);
  const nameOf = (one) =>
    short(one.getAttribute("aria-label")) || short(one.labels?.[0]?.innerText) || short(one.innerText) ||
    short(one.placeholder) || short(one.title) || short(one.alt) || short(one.name);
  const valueOf = (one) =>
    one.type === "password" ? "" : one.type === "checkbox" || one.type === "radio" ? (one.checked ? "checked" : "") :
    one.tagName === "SELECT" ? short(one.selectedOptions[0]?.text) :
    one.tagName === "INPUT" || one.tagName === "TEXTAREA" ? short(one.value) : "";
  const roleOf = (one) =>
    one.getAttribute("role") || (one.tagName === "A" ? "link" : one.tagName === "INPUT" ? one.type : one.tagName.toLowerCase());
  const elements = [...document.querySelectorAll(wanted)].filter(isVisible).slice(0, MAX_ELEMENTS);
  globalThis.freeholdElements = elements;
  return {
    url: location.href,
    title: document.title,
    text: (document.body?.innerText ?? "").slice(0, MAX_TEXT),
    elements: elements.map((one) => ({ role: short(roleOf(one)), name: nameOf(one), value: valueOf(one) })),
  };
})()
