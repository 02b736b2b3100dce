// The panel of dot products reads values and units, and shows results side by side and their steps. The address holds the choices.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.dots = (() => {
  const { element, ruler } = mpgemm.drawing;
  const F = mpgemm.formats, N = mpgemm.numbers, U = mpgemm.units;
  const MOST_TERMS = 32, MOST_UNITS = 6, MOST_STEPS = 40;
  const USUAL = {
    units: "volta:mma.m8n8k4.f32.f16.f16.f32 ampere:mma.m16n8k16.f32.f16.f16.f32 hopper:mma.m16n8k16.f32.f16.f16.f32",
    a: "4096 -4096 2^-12", b: "1 1 1", c: "0", sa: "1", sb: "1",
  };
  const FIELDS = { a: "a, one value for each k", b: "b, as many values as a", c: "c", sa: "scales of a, one for each block", sb: "scales of b, one for each block" };
  let view = null, START = USUAL;

  // ---- the input ---------------------------------------------------------------------------------------------------
  const words = (text) => text.split(/[\s,;]+/).filter(Boolean);

  function chosen() {
    const names = words(view.units.value);
    if (!names.length) throw new Error("choose an instruction first");
    if (names.length > MOST_UNITS) throw new Error(`${names.length} instructions are chosen, at most ${MOST_UNITS} can stand side by side; delete some`);
    return names.map(U.get);
  }

  function values(name, f, count) {
    const given = words(view[name].value);
    if (given.length > MOST_TERMS) throw new Error(`${name} has ${given.length} values, at most ${MOST_TERMS}: leave out the rest`);
    if (count !== undefined && given.length !== count) {
      const each = name === "c" ? "" : `: type one for each ${name[0] === "s" ? "block" : "value of a"}`;
      throw new Error(`${name} has ${given.length} values, ${count} ${count === 1 ? "is" : "are"} needed${each}`);
    }
    return given.map((text) => N.parse(text, f));
  }

  // Returns the dot product in the formats of one unit, {k, a, b, c, scaleA, scaleB}, and notes about values that were rounded.
  function taken(row) {
    const [fa, fb, fc] = U.formatsOf(row), a = values("a", fa);
    if (!a.length) throw new Error("a has no values: type at least one");
    const b = values("b", fb, a.length), c = values("c", fc, 1);
    const dot = { k: a.length, a: a.map((x) => x.code), b: b.map((x) => x.code), c: [c[0].code] };
    const notes = [...a, ...b, ...c].map((x) => x.note);
    if (row.scale) {
      const scale = F.get(row.scale.format), blocks = Math.ceil(a.length / row.scale.block);
      for (const [name, side] of [["sa", "scaleA"], ["sb", "scaleB"]]) {
        const one = words(view[name].value).length === 1 && blocks > 1;
        const read = one ? Array(blocks).fill(values(name, scale, 1)[0]) : values(name, scale, blocks);
        dot[side] = read.map((x) => x.code);
        notes.push(...read.map((x) => x.note));
      }
    }
    return { dot, notes: [...new Set(notes.filter(Boolean))] };
  }

  // ---- the output --------------------------------------------------------------------------------------------------
  function computed(row) {
    const { dot, notes } = taken(row), d = U.formatsOf(row)[3];
    const { d: [code], records } = U.product(row, { m: 1, n: 1, ...dot, record: true });
    const exact = U.exact(row, dot), result = F.decode(code, d);
    const error = exact && result.kind === "finite" ? F.ulps(result, exact, d) : null;
    return { row, dot, notes, code: BigInt(code), d, exact, error, steps: mpgemm.steps.of(row, dot, records) };
  }

  function resultRow(found, different) {
    const error = found.error === null ? "–" : found.error === 0 ? "exact" : `${found.error > 0 ? "+" : ""}${Number(found.error.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 })} ulp`;
    return element("tr", { class: different ? "different" : null },
      element("th", { scope: "row" }, found.row.name), element("td", {}, N.show(found.code, found.d)),
      element("td", {}, element("code", {}, N.hex(found.code, found.d))), element("td", {}, error),
      element("td", {}, found.exact ? N.decimal(F.toNumber(found.exact)) : "–"));
  }

  function results(all) {
    const same = (x) => x.d.name === all[0].d.name && x.code === all[0].code;
    const agree = all.every(same), several = all.length > 1;
    const verdict = !several ? "" : agree ? "All instructions give the same bits." : "The results differ; rows whose bits differ from those of the first row are marked.";
    return [
      element("p", { class: "verdict" }, verdict),
      element("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "results" }, element("table", { class: "results" },
        element("thead", {}, element("tr", {}, ["instruction", "result", "bits", "error", "exact"].map((x) => element("th", { scope: "col" }, x)))),
        element("tbody", {}, all.map((found) => resultRow(found, several && !same(found)))))),
      ...[...new Set(all.flatMap((found) => found.notes))].map((note) => element("p", { class: "note" }, note + ".")),
    ];
  }

  function stepsOf(found, open) {
    const shown = found.steps.slice(0, MOST_STEPS);
    const rest = found.steps.length - shown.length;
    const body = shown.length ? shown.map((step, i) => ruler(step, i + 1))
      : [element("p", {}, found.exact ? "Every product and c is zero." : "An operand is an infinity or NaN, which determines the result, so nothing is added.")];
    return element("details", { open },
      element("summary", {}, `${found.row.name}, step by step: ${found.row.title}`), ...body,
      rest ? element("p", {}, `and ${rest} more steps`) : null);
  }

  function show() {
    let parts;
    try {
      const all = chosen().map(computed);
      parts = [...results(all), ...all.map((found, i) => stepsOf(found, i === 0))];
      view.say("");
    } catch (error) {
      parts = [];
      view.say(error.message);
    }
    view.out.replaceChildren(...parts);
    const scaled = words(view.units.value).some((name) => mpgemm.catalogue.rows.some((row) => row.name === name && row.scale));
    view.scales.hidden = !scaled;
    remember();
  }

  // ---- the address -----------------------------------------------------------------------------------------------------
  const state = () => Object.fromEntries(Object.keys(START).map((name) => [name, words(view[name].value).join(" ")]));

  // Writes the fields that differ from the page's own start to the address; anchors of the page are left alone.
  function remember() {
    mpgemm.address.write(Object.fromEntries(Object.entries(state()).map(([name, value]) => [name, value === START[name] ? null : value])));
  }

  function recall() {
    const given = mpgemm.address.fields();
    for (const name of Object.keys(START)) view[name].value = (given.get(name) ?? START[name]).replaceAll(" ", name === "units" ? "\n" : " ");
    show();
  }

  // ---- the buttons -----------------------------------------------------------------------------------------------
  function fill(row, dot) {
    const [fa, fb, fc] = U.formatsOf(row), hex = (codes, f) => codes.map((code) => N.hex(code, f)).join(" ");
    view.a.value = hex(dot.a, fa);
    view.b.value = hex(dot.b, fb);
    view.c.value = hex(dot.c, fc);
    if (row.scale) {
      view.sa.value = hex(dot.scaleA, F.get(row.scale.format));
      view.sb.value = hex(dot.scaleB, F.get(row.scale.format));
    }
  }

  async function makeThemDiffer() {
    if (view.searching) return;
    view.searching = true;
    try {
      const rows = chosen().slice(0, 2);
      if (rows.length < 2) throw new Error("one instruction does not differ from itself: choose two instructions");
      if (rows[0] === rows[1]) throw new Error(`${rows[0].name} is chosen twice and does not differ from itself: choose another instruction`);
      if (!U.alike(rows[0]).includes(rows[1]))
        throw new Error(`${rows[0].name} and ${rows[1].name} take different operands: choose two of the same formats`);
      const found = await mpgemm.search.difference(rows, async (tried) => {
        view.say(`${tried} random inputs tried …`);
        await new Promise((done) => setTimeout(done));
      });
      if (found) fill(rows[0], found);
      show();
      view.say(found ? "" : `The two instructions gave the same bits on ${mpgemm.search.TRIES} random inputs.`);
    } catch (error) {
      view.say(error.message);
    } finally {
      view.searching = false;
    }
  }

  function takeExample(index) {
    const example = mpgemm.catalogue.examples[index];
    if (!example) return;
    location.hash = "#" + new URLSearchParams(example.state);
  }

  async function copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      view.say("The link is in the clipboard.");
    } catch {
      view.say(`The browser does not let this page write to the clipboard; copy the link from its address line: ${location.href}`);
    }
  }

  // ---- the form --------------------------------------------------------------------------------------------------------
  function field(name, label, tag) {
    view[name] = element(tag, { id: `dot-${name}`, spellcheck: "false", autocomplete: "off", oninput: show, rows: tag === "textarea" ? "2" : null });
    return element("div", { class: "field" }, element("label", { for: `dot-${name}` }, label), view[name]);
  }

  function unitPicker() {
    const names = mpgemm.catalogue.rows.map((row) => element("option", { value: row.name }, `${row.formats.join(", ")}: ${row.title}`));
    const picked = element("input", { id: "dot-pick", list: "dot-names", spellcheck: "false", autocomplete: "off",
      placeholder: "part of a name, as mfma or e4m3" });
    const add = () => {
      if (!picked.value.trim()) return;
      view.units.value = words(view.units.value).concat(picked.value.trim()).join("\n");
      picked.value = "";
      show();
    };
    picked.addEventListener("keydown", (event) => event.key === "Enter" && add());
    return element("div", { class: "field" }, element("label", { for: "dot-pick" }, "Add an instruction"),
      element("div", { class: "row" }, picked, element("button", { type: "button", onclick: add }, "Add")),
      element("datalist", { id: "dot-names" }, names));
  }

  function build(root) {
    view = {};
    if (root.dataset.state) START = { ...USUAL, ...JSON.parse(root.dataset.state) };
    const examples = element("select", { id: "dot-example", onchange: (event) => takeExample(event.target.value) },
      element("option", { value: "" }, "choose …"), mpgemm.catalogue.examples.map((x, i) => element("option", { value: i }, x.title)));
    view.out = element("div", { "aria-live": "polite" });
    const message = element("p", { class: "message", role: "alert" });
    view.say = (words) => (message.textContent = words);
    const units = field("units", "Instructions, one in each line; delete those that you do not need", "textarea");
    view.units.rows = 4;
    view.scales = element("div", { class: "two" }, field("sa", FIELDS.sa, "input"), field("sb", FIELDS.sb, "input"));
    root.replaceChildren(
      element("div", { class: "two" }, units, element("div", {}, unitPicker(),
        element("div", { class: "field" }, element("label", { for: "dot-example" }, "Or choose an input on which units differ"), examples))),
      field("a", FIELDS.a, "textarea"), field("b", FIELDS.b, "textarea"), field("c", FIELDS.c, "input"), view.scales,
      element("div", { class: "row" }, element("button", { type: "button", onclick: makeThemDiffer }, "Make the first two differ"),
        element("button", { type: "button", onclick: copyLink }, "Copy the link")),
      message, view.out);
    recall();
    window.addEventListener("hashchange", recall);
  }

  return { build };
})();
