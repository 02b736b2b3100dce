// Runs the playground's scripts in node: node playground.js BUILT CASES reads dot products and prints their results, one line of JSON a row.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const scripts = path.join(__dirname, "..", "..", "docs", "playground", "js");
const [built, cases] = process.argv.slice(2);
globalThis.mpgemm = {};
const load = (file) => vm.runInThisContext(fs.readFileSync(file, "utf8"), file);
for (const name of ["module.js", "catalogue.js"]) load(path.join(built, name));
for (const name of ["formats", "numbers", "kernel", "units"]) load(path.join(scripts, `${name}.js`));

(async () => {
  await mpgemm.kernel.load();
  for (const line of fs.readFileSync(cases, "utf8").trim().split("\n")) {
    const { name, k, dots } = JSON.parse(line), row = mpgemm.units.get(name);
    const big = (values) => values.map(BigInt); // JSON has 64-bit encodings as text
    const results = dots.map(([a, b, c, scaleA, scaleB]) =>
      mpgemm.units.product(row, { m: 1, n: 1, k, a: big(a), b: big(b), c: big([c]), scaleA, scaleB }).d[0].toString());
    console.log(JSON.stringify(results));
  }
})();
