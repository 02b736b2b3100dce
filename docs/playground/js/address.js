// The address of the page holds the fields of each panel. A panel does not change the fields of others or anchors of the page.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.address = (() => {
  const fields = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

  // Writes some fields of the address, and removes fields that are null.
  function write(values) {
    const all = fields();
    for (const [name, value] of Object.entries(values)) value === null ? all.delete(name) : all.set(name, value);
    if (all.size || location.hash.includes("=")) history.replaceState(null, "", `#${all}`);
  }

  return { fields, write };
})();
