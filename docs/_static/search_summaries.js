"use strict";
// Below each result of a search: what its page says around the first word that was looked for.
(() => {
  const AROUND = 120, LENGTH = 240;
  const stemmer = new Stemmer();
  const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/[^\p{L}\p{N}_.]+/u).filter(Boolean);
  const sought = words.flatMap((word) => [word, stemmer.stemWord(word)]);

  function summary(page) {
    const text = PAGE_TEXTS[page];
    if (!text) return null;
    const lower = text.toLowerCase();
    const places = sought.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
    let start = Math.max((places[0] ?? 0) - AROUND, 0);
    if (start) start = text.indexOf(" ", start) + 1; // from a whole word on
    const shown = document.createElement("p");
    shown.className = "context";
    shown.textContent = (start ? "… " : "") + text.slice(start, start + LENGTH).trim() + (start + LENGTH < text.length ? " …" : "");
    return shown;
  }

  const root = new URL(".", location.href).href;
  new MutationObserver((changes) => {
    for (const item of changes.flatMap((change) => [...change.addedNodes])) {
      const link = item.nodeName === "LI" && item.querySelector("a");
      if (!link || item.querySelector(".context")) continue;
      const page = decodeURIComponent(link.href.slice(root.length)).replace(/\.html(#.*)?$/, "");
      const found = summary(page);
      if (found) item.append(found);
    }
  }).observe(document.getElementById("search-results"), { childList: true, subtree: true });
})();
