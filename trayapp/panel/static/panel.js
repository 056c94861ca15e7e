// The panel's own script: everything that htmx does not do itself.
"use strict";
// The link that opens the panel returns the first page, and works only once. For a reload, show the page's own address.
if (location.pathname === "/panel/enter") history.replaceState(null, "", "/panel/");
// The libraries are loaded after the first paint. A click or submit before that is repeated once they are loaded.
const libraries = document.currentScript.dataset.then.split(" ");
const UNPAINTED_MS = 200;
let loading = false;
let early = null;
const keep = (event) => {
  const one = event.target.closest(event.type === "click" ? "button[hx-post]" : "form[hx-post]");
  if (!one) return;
  event.preventDefault();
  const { submitter } = event;
  early = () => event.type === "click" ? one.click() : one.requestSubmit(submitter);
};
// True for a field that the user, or the browser on return to a page, has changed since the page was made.
const changed = (field) => {
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (!field.options) return field.value !== field.defaultValue;
  return field.selectedIndex !== Math.max(0, [...field.options].findIndex((one) => one.defaultSelected));
};
const start = () => {
  Idiomorph.defaults.ignoreActiveValue = true;
  // Updates leave forms that are being filled in, and opened details, as they are.
  Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, fresh) => {
    if (!(old instanceof Element)) return true;
    if (old instanceof HTMLDetailsElement && fresh instanceof Element) fresh.toggleAttribute("open", old.open);
    if (old instanceof HTMLElement && old.scrollTop && old.matches("pre")) return old.textContent !== fresh.textContent;
    // Idiomorph does not update the content of the focused element, such as the label of the button just pressed.
    if (old instanceof HTMLButtonElement && old === document.activeElement) old.textContent = fresh.textContent;
    return !old.matches("form[data-keep], [data-own]");
  };
  for (const name of ["click", "submit"]) document.removeEventListener(name, keep);
  // The browser has obeyed it. htmx would move the focus there again after each update of the page.
  for (const field of document.querySelectorAll("[autofocus]")) field.removeAttribute("autofocus");
  document.body.removeAttribute("hx-disable");
  htmx.process(document.body);
  if (early) early();
  // The rest of a list arrives like an update.
  if (document.querySelector("[data-rest]")) document.body.dispatchEvent(new Event("panel-changed"));
  for (const field of document.querySelectorAll('[role="search"] :is(input, select)'))
    if (changed(field)) field.dispatchEvent(new Event("typed", { bubbles: true }));
};
const load = () => {
  if (loading) return;
  loading = true;
  const scripts = libraries.map((address) => Object.assign(document.createElement("script"), { src: address, async: false }));
  scripts.at(-1).addEventListener("load", start);
  document.head.append(...scripts);
};
for (const name of ["click", "submit"]) document.addEventListener(name, keep);
// htmx requires a complete page. A hidden page is never painted, and not every browser reports its first paint.
window.addEventListener("load", () => {
  const painted = (list) => { if (list.getEntriesByName("first-contentful-paint").length) load(); };
  new PerformanceObserver(painted).observe({ type: "paint", buffered: true });
  setTimeout(load, document.hidden ? 0 : UNPAINTED_MS);
});
// On return to a page, restore the scroll position once the rest of its list is there.
const [visit] = performance.getEntriesByType("navigation");
let scrolled = visit && visit.type !== "navigate" ? (history.state || {}).scrolled || 0 : 0;
// Record the position while scrolling: reading it at the end makes the browser lay out the old page once more.
let place = 0;
window.addEventListener("scroll", () => { place = window.scrollY; }, { passive: true });
window.addEventListener("pagehide", () => history.replaceState({ scrolled: place }, ""));
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.elt.id !== "main" || !scrolled) return;
  window.scrollTo(0, scrolled);
  scrolled = 0;
});
document.addEventListener("htmx:configRequest", (event) => {
  const token = document.querySelector('meta[name="panel-token"]');
  if (token) event.detail.headers["X-Panel-Token"] = token.content;
  // An update is for what is shown now: the address contains the filter.
  if (event.detail.elt.id === "main") event.detail.path = location.pathname + location.search;
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const { pathInfo, requestConfig, xhr } = event.detail;
  if (xhr.status !== 200 || !requestConfig.elt.closest('[role="search"]')) return;
  const shown = new URL(pathInfo.finalRequestPath, location.href);
  for (const [name, value] of [...shown.searchParams]) if (!value) shown.searchParams.delete(name);
  history.replaceState(null, "", shown);
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target instanceof Element) event.target.removeAttribute("aria-busy");
});
// A switch shows its new state immediately, and a second press switches back. An update may have arrived in between, so the
// value that was sent last decides, not the one that the switch shows.
const sentLast = new WeakMap();
document.addEventListener("htmx:beforeSend", (event) => sentLast.set(event.detail.elt, event.detail.xhr));
document.addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr, requestConfig } = event.detail;
  if (elt.getAttribute("role") !== "switch" || xhr.status !== 200 || sentLast.get(elt) !== xhr) return;
  if (document.querySelector("#said .bad")) return;
  const sent = Object.fromEntries(requestConfig.formData);
  elt.setAttribute("aria-checked", String(sent.on === "yes"));
  elt.setAttribute("hx-vals", JSON.stringify({ ...sent, on: sent.on === "yes" ? "no" : "yes" }));
});
// Show an error page where the answer would be.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, requestConfig } = event.detail;
  const isPage = requestConfig.elt.id === "main";
  if (xhr.status === 401 || (xhr.status === 404 && isPage)) { location.reload(); return; } // such as a removed server
  if (requestConfig.verb === "post") event.detail.shouldSwap = true;
});
document.addEventListener("htmx:afterSwap", (event) => {
  const link = event.target.querySelector && event.target.querySelector("a[data-go]");
  if (link) window.open(link.href, "_blank", "noopener");
});
// The message of the last action stays visible until it is closed. The focus then returns to where it was.
let from = null;
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.requestConfig.verb === "post") from = document.activeElement;
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-close]")) return;
  document.getElementById("said").replaceChildren();
  if (from) from.focus();
});
// Until the form is sent again, a message about one value is shown beside its field, which gets the focus.
document.addEventListener("htmx:afterSwap", ({ target }) => {
  const note = target instanceof Element && target.querySelector("[data-field]");
  const form = note && note.closest("form");
  const field = form && form.elements.namedItem(note.dataset.field);
  if (!field) return;
  note.id = `${field.id}-fault`;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", note.id);
  field.closest("label").after(note);
  field.focus();
});
document.addEventListener("htmx:beforeRequest", ({ target }) => {
  for (const field of target.querySelectorAll("[aria-invalid]")) {
    document.getElementById(field.getAttribute("aria-describedby")).remove();
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-dismiss]")) event.target.closest("section").remove();
});
// The tab's title also shows the number of calls that wait for an answer.
document.addEventListener("htmx:sseMessage", (event) => {
  if (event.target.id !== "waiting") return;
  const count = event.target.querySelector(".count");
  document.title = (count ? `(${count.textContent}) ` : "") + document.title.replace(/^\(\d+\) /, "");
});
let gone = false;
const say = (is) => {
  if (is !== gone) document.getElementById("gone").hidden = !is;
  gone = is;
};
document.addEventListener("htmx:sseError", () => {
  say(true);
  // A restarted gateway no longer accepts this page's cookie. Its answer says how to open the panel.
  fetch(location.href, { method: "HEAD" }).then((came) => { if (came.status === 401) location.reload(); }, () => {});
});
document.addEventListener("htmx:sseOpen", () => {
  if (gone) document.body.dispatchEvent(new Event("panel-changed"));
  say(false);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const close = document.querySelector("#said [data-close]");
    if (close) close.click();
    return;
  }
  const typing = event.target instanceof Element && event.target.closest("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    const search = document.querySelector('input[type="search"]');
    event.preventDefault();
    if (search) search.focus(); else location.assign("/panel/tools");
  }
});
