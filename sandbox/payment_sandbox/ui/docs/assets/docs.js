// Adds a button to each block of code; the pages work without it.
"use strict";

for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    } catch {
      getSelection().selectAllChildren(block);
    }
  });
  const around = document.createElement("div");
  around.className = "code";
  block.replaceWith(around);
  around.append(block, button);
}
