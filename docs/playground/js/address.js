// The address of the page: each panel keeps its fields there, and leaves those of the others and anchors of the page alone.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.address = (() => {
  const fields = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

  // Writes some fields of the address; those that are null leave it.
  function write(values) {
    const all = fields();
    for (const [name, value] of Object.entries(values)) value === null ? all.delete(name) : all.set(name, value);
    if (all.size || location.hash.includes("=")) history.replaceState(null, "", `#${all}`);
  }

  return { fields, write };
})();
