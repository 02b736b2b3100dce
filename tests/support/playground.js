// Runs the playground's scripts in node: node playground.js BUILT TASKS reads a task of JSON a line, and prints each answer as JSON a line.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [built, tasks] = process.argv.slice(2);
for (const name of ["module", "catalogue", "formats", "numbers", "kernel", "units", "steps", "functions", "search", "methods"]) {
  const file = path.join(built, `${name}.js`);
  vm.runInThisContext(fs.readFileSync(file, "utf8"), file);
}
const big = (values) => values.map(BigInt); // JSON has encodings as text, because some have 64 bits
const { units, numbers, formats, methods } = mpgemm;

const ANSWERS = {
  // Encodings of the results of dot products of one length.
  dots: ({ unit, k, dots }) => dots.map(([a, b, c, scaleA, scaleB]) =>
    units.product(units.get(unit), { m: 1, n: 1, k, a: big(a), b: big(b), c: big([c]), scaleA, scaleB }).d[0].toString()),
  // [result, what the last step ends with] of dot products, both as doubles.
  steps: ({ unit, k, dots }) => dots.map(([a, b, c, scaleA, scaleB]) => {
    const row = units.get(unit), dot = { k, a: big(a), b: big(b), c: big([c]), scaleA, scaleB };
    const { d, records } = units.product(row, { m: 1, n: 1, ...dot, record: true });
    const found = mpgemm.steps.of(row, dot, records), last = found[found.length - 1];
    const ended = last && (last.rounded || last.sum), result = formats.decode(d[0], units.formatsOf(row)[3]);
    const number = (x) => (x.kind === "finite" ? formats.toNumber(x) : x.kind);
    return [number(result), ended ? number(ended) : null, found.flatMap((step) => step.addends.map((x) => x.label))];
  }),
  // Encodings of texts in a format, or what is wrong with them.
  parse: ({ format, texts }) => texts.map((text) => {
    try {
      const { code, note } = numbers.parse(text, formats.get(format));
      return { code: code.toString(), note };
    } catch (error) {
      return { error: error.message };
    }
  }),
  // FP32 encodings of a method's product.
  method: ({ method, unit, ...task }) => methods.product(method, units.get(unit), task).map(methods.toCode),
  // Results of a special function with their instructions, of operands' encodings.
  lookups: ({ function: name, operands }) => operands.map((codes) => {
    const { code, exact, error, operations } = mpgemm.functions.computed(mpgemm.functions.get(name), big(codes));
    return { code: code.toString(), exact, error, operations };
  }),
  // Whether the search finds a difference, and whether the two units differ on it.
  differ: async ({ units: names }) => {
    const rows = names.map(units.get), found = await mpgemm.search.difference(rows, async () => {});
    return found && rows.map((row) => units.product(row, { m: 1, n: 1, ...found }).d[0].toString());
  },
};

(async () => {
  await mpgemm.kernel.load();
  for (const line of fs.readFileSync(tasks, "utf8").trim().split("\n")) {
    const task = JSON.parse(line);
    console.log(JSON.stringify(await ANSWERS[task.ask](task)));
  }
})();
