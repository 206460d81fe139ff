"use strict";
(() => {
  const typing = (event) =>
    event.target.closest("input, select, textarea, dialog[open]") ||
    event.ctrlKey || event.metaKey || event.altKey;

  // One button and one key open or fold all long results.
  const folds = [...document.querySelectorAll("details.fold")];
  const fold = document.querySelector("button[data-folds]");
  const toggle = () => {
    const open = folds.some((item) => !item.open);
    for (const item of folds) item.open = open;
    fold.setAttribute("aria-expanded", String(open));
  };
  if (fold && folds.length) {
    fold.hidden = false;
    fold.setAttribute("aria-expanded", String(folds.every((item) => item.open)));
    fold.addEventListener("click", toggle);
  }

  const press = (name) => document.querySelector(`form.review button[value=${name}]`)?.click();
  addEventListener("keydown", (event) => {
    if (typing(event)) return;
    if (event.key === "a") press("accept");
    else if (event.key === "r") press("reject");
    else if (event.key === "u") press("none");
    else if (event.key === "n") document.querySelector("form.review textarea")?.focus();
    else if (event.key === "f" && folds.length) toggle();
    else return;
    event.preventDefault();
  });

  // On a phone, an open outline would push the conversation off the screen.
  if (matchMedia("(max-width: 900px)").matches) {
    for (const item of document.querySelectorAll("details.outline")) item.open = false;
  }

  // While rows are still being indexed or searched, reload the page unless the user is active in it.
  if (document.querySelector("[data-pending]")) {
    setTimeout(() => {
      if (document.activeElement === document.body && !scrollY) location.reload();
    }, 2000);
  }

  const hit = document.querySelector(".turns .hit, .tools .hit");
  if (hit && !location.hash) hit.scrollIntoView({ block: "center" });
})();
