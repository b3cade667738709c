// Progressive enhancement: live updates, details in a dialog, copying. Every page works without it.
"use strict";

const live = document.getElementById("live");
const KINDS = ["request", "status", "action", "webhook", "clock", "due", "scenario", "faults", "settings", "reset", "restored", "failed", "missed"];
let timer = 0;
let isFetching = false;
let isStale = false;
let last = 0;

function interval() {
  const told = document.querySelector("[data-refresh]");
  return Math.max(300, Number(told ? told.dataset.refresh : 0));
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
    const answer = await fetch(location.href, { headers: { Accept: "text/html", "Sandbox-Live": "1" } });
    if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // The server is unreachable; the stream says so, and comes back.
  }
  last = Date.now();
  isFetching = false;
  if (isStale) soon();
}

function replace(fresh) {
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(old.id);
    if (!now || now.innerHTML === old.dataset.shown || isInUse(old)) continue;
    const shown = now.innerHTML;
    const open = [...old.querySelectorAll("details")].map((item) => item.open);
    old.replaceChildren(...now.childNodes);
    old.querySelectorAll("details").forEach((item, index) => { item.open = open[index] || false; });
    old.dataset.shown = shown;
    for (const name of ["refresh"]) if (now.dataset[name]) old.dataset[name] = now.dataset[name];
  }
  enhance();
}

function isInUse(part) {
  const focused = document.activeElement;
  return part.contains(focused) && /^(INPUT|SELECT|TEXTAREA)$/.test(focused.tagName);
}

function enhance() {
  for (const button of document.querySelectorAll("[data-copy], [data-print]")) button.hidden = false;
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
  if (event.target.closest("[data-print]")) print();
  const link = event.target.closest("[data-open], .sequence a");
  const dialog = document.getElementById("dialog");
  if (link && dialog && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    const address = link.href.baseVal || link.href;
    const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
    const record = page.getElementById("record");
    if (!record) { location.href = address; return; }
    document.getElementById("dialog-body").replaceChildren(record);
    dialog.showModal();
  }
});

if (live && window.EventSource) {
  const source = new EventSource(`${live.dataset.events}?after=${live.dataset.after}`);
  source.onopen = () => {
    live.hidden = false;
    live.textContent = "live";
    if (live.classList.contains("lost")) soon(); // another server has other events
    live.classList.remove("lost");
  };
  source.onerror = () => { live.hidden = false; live.textContent = "not connected"; live.classList.add("lost"); };
  for (const kind of KINDS) source.addEventListener(kind, soon);
  document.addEventListener("visibilitychange", () => { if (isStale) soon(); });
}

setInterval(() => {
  const clock = document.querySelector(".now");
  const rate = Number(clock ? clock.dataset.rate : 0);
  if (!rate || document.hidden) return;
  const base = clock.dataset.base || (clock.dataset.base = Date.parse(clock.dateTime));
  const begun = clock.dataset.begun || (clock.dataset.begun = Date.now());
  const now = new Date(Number(base) + (Date.now() - Number(begun)) * rate);
  clock.textContent = now.toISOString().slice(0, 19).replace("T", " ");
}, 1000);

enhance();
