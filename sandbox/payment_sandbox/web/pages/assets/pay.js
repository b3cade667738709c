// Progressive enhancement; every page works without it.
"use strict";

const waiting = document.querySelector("[data-waiting]");
if (waiting) {
  const look = async () => {
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
    setTimeout(look, 1000);
  };
  setTimeout(look, 500);
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
    const told = document.getElementById("copied");
    button.textContent = button.dataset.copied;
    told.textContent = `${text}: ${button.dataset.copied}`;
    setTimeout(() => {
      button.textContent = before;
      told.textContent = "";
    }, 2000);
  });
}

// On phones the summary begins closed.
const summary = document.querySelector(".summary");
if (summary && matchMedia("(max-width: 59.99rem)").matches) summary.open = false;
