// Progressive enhancement: live updates, details in a dialog, copy buttons. Every page works without it.
"use strict";

const live = document.getElementById("live");
let timer = 0;
let isFetching = false;
let isStale = false;
let last = 0;
const RECONNECT_MS = 2000;
const LIVE = { Accept: "text/html" };

function interval() {
  const clock = document.querySelector("[data-refresh]");
  return Math.max(300, Number(clock ? clock.dataset.refresh : 0));
}

function soon() {
  isStale = true;
  if (timer || isFetching || document.hidden) return;
  const wait = Math.max(60, interval() - (Date.now() - last)) * (0.75 + Math.random() / 2);
  timer = setTimeout(refresh, wait);
}

async function refresh() {
  timer = 0;
  isStale = false;
  isFetching = true;
  try {
    const answer = await fetch(address(), { headers: LIVE });
    if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
    else if (answer.status === 404) showProblem("This page no longer exists: the project was reset, or the server was restarted without it.");
  } catch {
    // The server is unreachable; the stream reports that and reconnects.
  }
  last = Date.now();
  isFetching = false;
  if (isStale) soon();
}

// While somebody reads the list, its rows stay in place, and new orders are only counted.
function address() {
  const rows = document.getElementById("rows"), page = new URL(location.href);
  if (rows && rows.dataset.top && (scrollY > 0 || rows.matches(":hover, :focus-within"))) page.searchParams.set("top", rows.dataset.top);
  return page;
}

function replace(fresh) {
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(old.id);
    if (now) update(old, now);
  }
  enhance();
}

// Updates a part of the page node by node. Equal nodes are not touched, which preserves input, open
// details, selections and scroll positions.
function update(old, now) {
  if (old.isEqualNode(now) || old === document.activeElement && /^(INPUT|SELECT|TEXTAREA)$/.test(old.tagName)) return;
  for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && !PRESERVED.includes(name)) old.removeAttribute(name);
  for (const { name, value } of now.attributes) if (!PRESERVED.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  const known = byUniqueName(old.childNodes), wanted = byUniqueName(now.childNodes);
  let place = old.firstChild;
  for (const item of [...now.childNodes]) {
    const name = nameOf(item);
    const isNamed = wanted.has(name);
    const isLike = place && place.nodeName === item.nodeName && !known.has(nameOf(place));
    const same = isNamed ? known.get(name) : isLike ? place : null;
    if (!same) {
      old.insertBefore(item, place);
      continue;
    }
    if (same !== place) old.insertBefore(same, place);
    if (same.nodeType !== Node.ELEMENT_NODE) {
      if (same.data !== item.data) same.data = item.data;
    } else update(same, item);
    place = same.nextSibling;
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

const PRESERVED = ["open", "hidden"];

// Returns the name that identifies a node among its siblings across updates.
function nameOf(item) {
  if (item.nodeType !== Node.ELEMENT_NODE) return "";
  return item.id || item.dataset.testid || "";
}

// Maps the unique names of sibling nodes to the nodes.
function byUniqueName(items) {
  const nodes = new Map();
  const duplicates = new Set();
  for (const item of items) {
    const name = nameOf(item);
    if (nodes.has(name)) duplicates.add(name);
    if (name) nodes.set(name, item);
  }
  for (const name of duplicates) nodes.delete(name);
  return nodes;
}

function showProblem(text) {
  const lost = document.getElementById("lost");
  if (!lost) return;
  if (lost.textContent !== text) lost.textContent = text;
  lost.hidden = !text;
}

function enhance() {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const text = document.getElementById(copy.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    } catch {
      getSelection().selectAllChildren(text);
    }
  }
  const link = event.target.closest("[data-open]");
  const dialog = document.getElementById("dialog");
  if (link && dialog && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    const record = await recordOf(link.href);
    if (!record) { location.href = link.href; return; }
    document.getElementById("dialog-body").replaceChildren(record);
    enhance();
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }
});

async function recordOf(target) {
  const answer = await fetch(target, { headers: LIVE });
  return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("record");
}

// Keys move through a list.
const HELP = "j and k move through the list, Enter opens an entry, / searches, ? shows this help.";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/") {
    const search = document.getElementById("text");
    if (search) { event.preventDefault(); search.focus(); }
  } else if (event.key === "?") {
    const dialog = document.getElementById("dialog");
    if (!dialog || dialog.open) return;
    document.getElementById("dialog-body").textContent = HELP;
    dialog.showModal();
  } else if (event.key === "j" || event.key === "k") {
    const links = [...document.querySelectorAll("#rows .order-link, #rows .call")];
    const at = links.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    const next = links[Math.max(0, Math.min(links.length - 1, at))];
    if (next) next.focus();
  }
});

function connect() {
  const source = new EventSource(`${live.dataset.events}?after=${live.dataset.after}`);
  source.onopen = () => {
    live.hidden = false;
    live.textContent = "live";
    showProblem("");
    if (live.classList.contains("lost")) soon(); // another server may have other events
    live.classList.remove("lost");
  };
  source.onerror = () => {
    live.hidden = false;
    live.textContent = "not connected";
    live.classList.add("lost");
    showProblem("The server is not responding. This page will reconnect automatically; your input is safe.");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, RECONNECT_MS);
  };
  for (const kind of ["changed", "missed"]) source.addEventListener(kind, soon);
}

// The page that waits for the clock shows the result of a stop, so this page is not replaced.
document.addEventListener("submit", async (event) => {
  if (!event.target.matches("[data-quiet]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  try {
    const answer = await fetch(event.target.action, { method: "POST", body: new URLSearchParams(new FormData(event.target)), redirect: "manual" });
    if (answer.type !== "opaqueredirect") showProblem("The clock was not stopped. Reload this page and try again.");
  } catch {
    showProblem("The server is not responding, so the clock was not stopped.");
  }
});

// While the server is down, a submission would replace the input with an error page of the browser.
document.addEventListener("submit", async (event) => {
  if (!live || !live.classList.contains("lost") || event.target.method === "dialog") return;
  event.preventDefault();
  try {
    await fetch(location.href, { method: "HEAD" });
    live.classList.remove("lost");
    event.target.requestSubmit(event.submitter);
  } catch {
    showProblem("The server is not responding, so nothing was sent. Your input is safe; try again later.");
  }
});

if (live && window.EventSource) {
  connect();
  document.addEventListener("visibilitychange", () => { if (isStale) soon(); });
}

setInterval(() => {
  const clock = document.querySelector(".now");
  const rate = Number(clock ? clock.dataset.rate : 0);
  if (!rate || document.hidden) return;
  const base = clock.dataset.base || (clock.dataset.base = Date.parse(clock.dateTime));
  const begun = clock.dataset.begun || (clock.dataset.begun = Date.now());
  const now = new Date(Number(base) + (Date.now() - Number(begun)) * rate);
  clock.textContent = now.toUTCString().replace(/^\w+, 0?(\d+ \w+) \d+ (\S+).*/, "$1 $2");
}, 1000);

enhance();
