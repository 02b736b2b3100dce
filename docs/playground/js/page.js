// Starts the page: loads the kernel and builds the panels, or says that the browser cannot.
"use strict";

(async () => {
  const root = document.getElementById("playground-dots");
  if (typeof WebAssembly === "undefined") {
    root.textContent = "This browser has no WebAssembly, which the playground needs.";
    return;
  }
  await mpgemm.kernel.load();
  mpgemm.dots.build(root);
  const functions = document.getElementById("playground-functions");
  if (functions) mpgemm.lookups.build(functions);
  const matrices = document.getElementById("playground-matrices");
  if (matrices) mpgemm.matrices.build(matrices);
})();
