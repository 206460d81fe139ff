"use strict";
(() => {
  const typing = (event) =>
    event.target.closest("input, select, textarea, dialog[open]") ||
    event.ctrlKey || event.metaKey || event.altKey;

  // One button and one key open or fold all long results.
  const folds = [...document.querySelectorAll("details.fold")];
  const fold = document.querySelector("button[data-folds]");
  const label = () => {
    const open = folds.every((item) => item.open);
    fold.setAttribute("aria-expanded", String(open));
    fold.textContent = `${open ? "Fold" : "Unfold"} long texts`;
  };
  const toggle = () => {
    const open = folds.some((item) => !item.open);
    for (const item of folds) item.open = open;
    label();
  };
  if (fold && folds.length) {
    fold.hidden = false;
    label();
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

  // On a phone, an open outline and open records would push the conversation off the screen.
  if (matchMedia("(max-width: 900px)").matches) {
    for (const item of document.querySelectorAll("details.outline, details.record")) item.open = false;
  }

  // The list follows the search while it is typed.
  const form = document.querySelector("form[role=search]");
  const search = form?.querySelector("input[type=search]");
  let asked = 0;
  search?.addEventListener("input", () => {
    const now = ++asked;
    setTimeout(async () => {
      if (now !== asked) return;
      const fields = [...new FormData(form)].filter(([, value]) => value);
      const address = `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
      const answer = await fetch(address);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const list = page.getElementById("list");
      if (now !== asked || !list) return;
      document.getElementById("list").replaceWith(list);
      history.replaceState(null, "", address);
    }, 250);
  });

  // While rows are still being indexed or searched, reload the page unless the user is active in it.
  if (document.querySelector("[data-pending]")) {
    setTimeout(() => {
      if (document.activeElement === document.body && !scrollY) location.reload();
    }, 2000);
  }

  // The conversation and the rendered text scroll together, turn by turn, or else in proportion.
  const talk = document.querySelector(".split .talk");
  const beside = document.querySelector(".split .beside");
  const begins = beside && [...beside.querySelectorAll("pre.rendered kbd")].filter(
    (item) => item.textContent === "<|im_start|>"
  );
  if (talk && beside && begins.length) {
    const turns = [...talk.querySelectorAll(".turns > li")];
    if (begins.length === turns.length + 1) begins.shift();
    const linked = begins.length === turns.length;
    const tops = (box, items) =>
      items.map((item) => item.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop);
    let ignored = null;
    const follow = (from, own, to, others) => {
      if (ignored === from) {
        ignored = null;
        return;
      }
      let wanted = (from.scrollTop / Math.max(from.scrollHeight - from.clientHeight, 1)) *
        (to.scrollHeight - to.clientHeight);
      if (linked) {
        const here = [0, ...tops(from, own).slice(1), from.scrollHeight];
        const there = [0, ...tops(to, others).slice(1), to.scrollHeight];
        const at = Math.max(0, here.findIndex((top) => top > from.scrollTop) - 1);
        const share = (from.scrollTop - here[at]) / Math.max(here[at + 1] - here[at], 1);
        wanted = there[at] + share * (there[at + 1] - there[at]);
      }
      const before = to.scrollTop;
      to.scrollTop = wanted;
      if (to.scrollTop !== before) ignored = to;
    };
    talk.addEventListener("scroll", () => follow(talk, turns, beside, begins));
    beside.addEventListener("scroll", () => follow(beside, begins, talk, turns));
  }

  const hit = document.querySelector(".turns .hit, .tools .hit");
  if (hit && !location.hash) hit.scrollIntoView({ block: "center" });
})();
