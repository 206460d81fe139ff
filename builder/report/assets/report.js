"use strict";
(() => {
  const matches = (item, wanted, words) => {
    for (const [name, value] of wanted) {
      const own = (item.dataset[name] || "").split(" | ");
      if (!own.includes(value)) return false;
    }
    return words.every((word) => item.searchText.includes(word));
  };

  for (const form of document.querySelectorAll("form[data-filters]")) {
    const list = document.getElementById(form.dataset.filters);
    if (!list) continue;
    const items = [...list.querySelectorAll("[data-item]")];
    const search = form.querySelector("input[type=search]");
    const selects = [...form.querySelectorAll("select")];
    const output = form.querySelector("output");

    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const wanted = selects.filter((box) => box.value).map((box) => [box.name, box.value]);
      let count = 0;
      for (const item of items) {
        if (words.length && item.searchText === undefined) {
          item.searchText = item.textContent.toLowerCase();
        }
        const isShown = matches(item, wanted, words);
        item.hidden = !isShown;
        count += isShown;
      }
      output.textContent = `${count} of ${items.length} shown`;
    };

    let waiting = 0;
    search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(apply, 120);
    });
    for (const box of selects) box.addEventListener("change", apply);
    for (const button of form.querySelectorAll("button[data-open]")) {
      button.addEventListener("click", () => {
        for (const item of items) {
          if (!item.hidden) item.open = button.dataset.open === "all";
        }
      });
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      apply();
    });
    form.hidden = false;
    apply();
  }

  // Boxes that scroll must be reachable by keyboard; others should not be tab stops.
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
    }
  });
  for (const box of document.querySelectorAll(".scroll")) sizes.observe(box);

  // Keys: j and k (or the right and left arrow) step forward and back, / searches, ? lists the keys.
  const keys = document.getElementById("keys");
  const opener = document.querySelector("button[data-keys]");
  if (keys && opener) {
    opener.hidden = false;
    opener.addEventListener("click", () => keys.showModal());
    keys.querySelector("button").addEventListener("click", () => keys.close());
  }

  const go = (step) => {
    const link = document.querySelector(step > 0 ? "a[rel=next]" : "a[rel=prev]");
    const stops = [...document.querySelectorAll(".rows a, .samples a.asked, details.sample > summary")].filter(
      (item) => item.offsetParent !== null
    );
    const at = stops.indexOf(document.activeElement);
    const stop = stops[at < 0 ? (step > 0 ? 0 : stops.length - 1) : at + step];
    if (stop) stop.focus();
    else if (link) link.click();
  };
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, dialog[open]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j" || event.key === "ArrowRight") go(1);
    else if (event.key === "k" || event.key === "ArrowLeft") go(-1);
    else if (event.key === "/") {
      const search =
        document.querySelector("form[role=search] input[type=search]") ||
        document.querySelector("input[type=search]");
      if (!search) return;
      search.focus();
    } else if (event.key === "?") {
      if (!keys) return;
      keys.showModal();
    } else return;
    event.preventDefault();
  });

  const openTarget = () => {
    const name = location.hash.slice(1);
    const target = name ? document.getElementById(name) : null;
    if (target && target.tagName === "DETAILS") {
      target.hidden = false;
      target.open = true;
      target.scrollIntoView();
      target.querySelector("summary").focus();
    }
  };
  addEventListener("hashchange", openTarget);
  openTarget();
})();
