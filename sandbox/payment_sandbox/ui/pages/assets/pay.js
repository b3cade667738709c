// Progressive enhancement; every page works without it.
"use strict";

const waiting = document.querySelector("[data-waiting]");
if (waiting) {
  const poll = async () => {
    try {
      const answer = await fetch(waiting.dataset.waiting, { cache: "no-store" });
      const { state } = await answer.json();
      if (String(state) !== waiting.dataset.state) {
        location.reload();
        return;
      }
    } catch {
      // The server is unreachable; try again.
    }
    setTimeout(poll, 1000);
  };
  setTimeout(poll, 500);
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
      return;
    }
    const before = button.textContent;
    const status = document.getElementById("copied");
    button.textContent = button.dataset.copied;
    status.textContent = `${text}: ${button.dataset.copied}`;
    setTimeout(() => {
      button.textContent = before;
      status.textContent = "";
    }, 2000);
  });
}

// On phones the summary starts closed.
const summary = document.querySelector(".summary");
if (summary && matchMedia("(max-width: 59.99rem)").matches) summary.open = false;
