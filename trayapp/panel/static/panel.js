// The panel's own script: what htmx leaves to the page.
"use strict";
Idiomorph.defaults.ignoreActiveValue = true;
// What somebody is filling in, or has opened, is not touched by news.
Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, fresh) => {
  if (!(old instanceof Element)) return true;
  if (old instanceof HTMLDetailsElement && fresh instanceof Element) fresh.toggleAttribute("open", old.open);
  if (old instanceof HTMLElement && old.scrollTop && old.matches("pre")) return old.textContent !== fresh.textContent;
  return !old.matches("form[data-keep]");
};
document.addEventListener("htmx:configRequest", (event) => {
  const token = document.querySelector('meta[name="panel-token"]');
  if (token) event.detail.headers["X-Panel-Token"] = token.content;
});
// Errors are pages, too: show them where the answer would be.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, requestConfig } = event.detail;
  if (xhr.status === 401) { location.reload(); return; }
  if (requestConfig.verb === "post") event.detail.shouldSwap = true;
});
document.addEventListener("htmx:afterSwap", (event) => {
  const link = event.target.querySelector && event.target.querySelector("a[data-go]");
  if (link) window.open(link.href, "_blank", "noopener");
});
let gone = false;
const say = (is) => {
  if (is !== gone) document.getElementById("gone").hidden = !is;
  gone = is;
};
document.addEventListener("htmx:sseError", () => say(true));
document.addEventListener("htmx:sseOpen", () => {
  if (gone) document.body.dispatchEvent(new Event("panel-changed"));
  say(false);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof Element && event.target.closest("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    const search = document.querySelector('input[type="search"]');
    if (search) { event.preventDefault(); search.focus(); }
  }
});
