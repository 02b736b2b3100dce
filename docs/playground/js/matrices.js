// The panel of matrices reads two CSV texts and a unit, and shows the bits that each recovery method keeps as the entries grow and shrink.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.matrices = (() => {
  const { element } = mpgemm.drawing;
  const M = mpgemm.methods;
  const MOST = 64, LOWEST = -30, HIGHEST = 18, MOST_SCALE = 24;
  const NAMES = Object.keys(M.METHODS);
  let view = null, latest = 0;

  // ---- the input ---------------------------------------------------------------------------------------------------
  // {rows, columns, values} of a CSV text, values rounded to FP32; throws Error with words.
  function read(text, name) {
    const fp32 = { ...mpgemm.formats.get("fp32") };
    const lines = text.split(/\n/).map((line) => line.trim()).filter(Boolean);
    const cells = lines.map((line) => line.split(/[,;\t]| +/).map((cell) => cell.trim()).filter(Boolean));
    if (!cells.length) throw new Error(`${name} is empty: type one row of numbers in each line, with commas between them`);
    const columns = cells[0].length, odd = cells.findIndex((row) => row.length !== columns);
    if (odd >= 0) throw new Error(`${name}: line ${odd + 1} has ${cells[odd].length} numbers, the first line has ${columns}: all lines need as many`);
    if (cells.length > MOST || columns > MOST) throw new Error(`${name} is ${cells.length} x ${columns}, at most ${MOST} x ${MOST} fit here: use the package for larger matrices`);
    const values = cells.flat().map((cell, i) => {
      try {
        const float = new Float32Array(Uint32Array.of(Number(mpgemm.numbers.parse(cell, fp32).code)).buffer)[0];
        if (!Number.isFinite(float)) throw new Error(`“${cell}” is not finite in FP32`);
        return float;
      } catch (error) {
        throw new Error(`${name}, line ${Math.floor(i / columns) + 1}: ${error.message}`);
      }
    });
    return { rows: cells.length, columns, values };
  }

  function task() {
    const a = read(view.a.value, "A"), b = read(view.b.value, "B");
    if (a.columns !== b.rows) throw new Error(`A is ${a.rows} x ${a.columns} and B is ${b.rows} x ${b.columns}: A needs as many columns as B has rows`);
    return { m: a.rows, k: a.columns, n: b.columns, a: a.values, b: b.values };
  }

  // ---- the output --------------------------------------------------------------------------------------------------
  const scaled = (values, power) => values.map((x) => Math.fround(x * 2 ** power));
  const scaleOf = (name) => (name === "sgemm_cube" ? Number(view.scale.value) : undefined);

  function bits(name, row, given) {
    return M.effectiveBits(M.product(name, row, { ...given, scale: scaleOf(name) }), given);
  }

  async function show() {
    const mine = ++latest;
    view.scaleShown.textContent = `s_b = ${view.scale.value}`;
    try {
      const given = task(), row = mpgemm.units.get(view.unit.value);
      const here = NAMES.map((name) => bits(name, row, given));
      view.table.replaceChildren(resultsTable(here));
      const points = NAMES.map(() => []);
      const step = given.m * given.n * given.k > 20000 ? 3 : 1;
      for (let power = LOWEST; power <= HIGHEST; power += step) {
        const moved = { ...given, a: scaled(given.a, power), b: scaled(given.b, power) };
        NAMES.forEach((name, i) => points[i].push([power, bits(name, row, moved)]));
        await new Promise((done) => setTimeout(done));
        if (mine !== latest) return; // something else was typed meanwhile
      }
      view.picture.replaceChildren(mpgemm.chart.draw(points, NAMES.map((name) => M.METHODS[name].title)));
      view.say("");
    } catch (error) {
      view.table.replaceChildren();
      view.picture.replaceChildren();
      view.say(error.message);
    }
  }

  function resultsTable(here) {
    const rows = NAMES.map((name, i) => element("tr", {}, element("th", { scope: "row" }, M.METHODS[name].title),
      element("td", {}, String(M.METHODS[name].products.length)), element("td", {}, here[i].toFixed(2))));
    return element("table", { class: "results" },
      element("thead", {}, element("tr", {}, ["method", "products", "correct bits"].map((x) => element("th", { scope: "col" }, x)))),
      element("tbody", {}, rows));
  }

  // ---- the form --------------------------------------------------------------------------------------------------------
  const random = (rows, columns) => Array.from({ length: rows }, () =>
    Array.from({ length: columns }, () => Math.fround(Math.random() * 2 - 1)).join(", ")).join("\n");

  function matrixField(name) {
    view[name.toLowerCase()] = element("textarea", { id: `matrix-${name}`, rows: "5", spellcheck: "false", wrap: "off", oninput: show });
    const file = element("input", { type: "file", id: `file-${name}`, accept: ".csv,.txt,text/csv", onchange: async (event) => {
      const [chosen] = event.target.files;
      if (!chosen) return;
      view[name.toLowerCase()].value = await chosen.text();
      show();
    } });
    return element("div", { class: "field" }, element("label", { for: `matrix-${name}` }, `${name}, one row in each line`), view[name.toLowerCase()],
      element("label", { for: `file-${name}` }, `or a CSV file for ${name}`), file);
  }

  function build(root) {
    view = {};
    view.unit = element("select", { id: "matrix-unit", onchange: show }, M.units().map((row) => element("option", { value: row.name }, row.name)));
    view.unit.value = "hopper:mma.m16n8k16.f32.f16.f16.f32";
    view.scale = element("input", { type: "range", id: "matrix-scale", min: "0", max: String(MOST_SCALE), value: "12", oninput: show });
    view.scaleShown = element("output", { for: "matrix-scale" });
    view.table = element("div", { "aria-live": "polite" });
    view.picture = element("div", {});
    const message = element("p", { class: "message", role: "alert" });
    view.say = (words) => (message.textContent = words);
    const fill = () => {
      view.a.value = random(8, 32);
      view.b.value = random(32, 8);
      show();
    };
    root.replaceChildren(
      element("div", { class: "two" }, matrixField("A"), matrixField("B")),
      element("div", { class: "two" },
        element("div", { class: "field" }, element("label", { for: "matrix-unit" }, "Unit"), view.unit),
        element("div", { class: "field" }, element("label", { for: "matrix-scale" }, "Scale exponent of SGEMM-cube, ", view.scaleShown), view.scale)),
      element("div", { class: "row" }, element("button", { type: "button", onclick: fill }, "Random matrices")),
      message, view.table, view.picture);
    fill();
  }

  return { build };
})();
