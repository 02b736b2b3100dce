// The panel of special functions reads an architecture, a function and its operands, and shows bits, value, error and each instruction.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.lookups = (() => {
  const { element } = mpgemm.drawing;
  const N = mpgemm.numbers, S = mpgemm.functions;
  const USUAL = { function: "hopper:ex2.approx.ftz.f32", x: "-0.078155517578125", y: "3" };
  let view = null;

  // ---- the output --------------------------------------------------------------------------------------------------
  const word = (x) => "0x" + x.toString(16).padStart(8, "0");
  const signed = (x, digits) => (x < 0 ? "" : "+") + x.toFixed(digits);

  // Returns lines that show the table's segment, the coefficients, the square, the sum and its truncation.
  function lookupLines(found) {
    if (found.replaced) return ["the operand is a special one or outside of the tables: the result is fixed"];
    const sum = found.whole === null ? "F" : `${found.whole} + F`, sign = found.total < 0 ? "-" : "";
    return [
      `segment  ${found.segment} of ${found.segments} in table ${found.table}, x = ${found.x} of 2^17`,
      `c0 c1 c2 0x${found.c0.toString(16)}, ${found.c1}, ${found.c2}`,
      `square   Q(x) = ${found.square}; x^2 / 2^19 = ${(found.x ** 2 / 2 ** 19).toFixed(3)}`,
      `sum      F = c0 + c1 x + c2 Q(x); ${sum} = ${sign}0x${Math.abs(found.total).toString(16)} 2^${-found.fractionBits} = ${Number((found.total * 2 ** -found.fractionBits).toPrecision(12))}`,
      `cut      ${found.significand.toString(2).length} leading bits: 0x${found.significand.toString(16)}, the rest of F is left out; times 2^${found.scale}`,
    ];
  }

  function instruction({ name, operands, word: result, lookup }, number) {
    const lines = lookup ? lookupLines(lookup) : [];
    return element("div", { class: "step", tabindex: "0", role: "group", "aria-label": `instruction ${number}` },
      element("pre", {}, [`${name}(${operands.map(word).join(", ")}) = ${word(result)}`, ...lines.map((line) => `  ${line}`)].join("\n")));
  }

  function results(row, found) {
    const error = found.error === null ? "–" : `${signed(found.error, 3)} ulp`, exact = found.exact === null ? "–" : Number(found.exact.toPrecision(12));
    const cells = [N.show(found.code, found.format), element("code", {}, N.hex(found.code, found.format)), error, String(exact)];
    return [
      element("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "result of the function" }, element("table", { class: "results" },
        element("thead", {}, element("tr", {}, ["function", "result", "bits", "error", "exact"].map((x) => element("th", { scope: "col" }, x)))),
        element("tbody", {}, element("tr", {}, element("th", { scope: "row" }, row.name), cells.map((cell) => element("td", {}, cell)))))),
      element("p", { class: "note" }, `Error of ${row.name}: ${row.error}. Evidence: ${row.evidence}.`),
      element("details", { open: true }, element("summary", {}, `${row.arch}:${row.name}, instruction by instruction`),
        found.operations.length ? found.operations.map((one, i) => instruction(one, i + 1)) : element("p", {}, "This function is a conversion, which reads no table.")),
    ];
  }

  function show() {
    let parts = [];
    try {
      const row = S.get(`${view.arch.value}:${view.name.value.trim()}`), format = S.formatOf(row.operand);
      view.second.hidden = row.operands.length < 2;
      const read = row.operands.map((_, i) => N.parse(view["xy"[i]].value, format));
      const notes = [...new Set(read.map((x) => x.note).filter(Boolean))].map((note) => element("p", { class: "note" }, note + "."));
      parts = [...notes, ...results(row, S.computed(row, read.map((x) => x.code)))];
      view.say("");
    } catch (error) {
      view.say(error.message);
    }
    view.out.replaceChildren(...parts);
    const state = { function: `${view.arch.value}:${view.name.value.trim()}`, x: view.x.value.trim(), y: view.y.value.trim() };
    mpgemm.address.write(Object.fromEntries(Object.keys(USUAL).map((key) => [key, state[key] === USUAL[key] ? null : state[key]])));
  }

  function recall() {
    const given = mpgemm.address.fields(), state = { ...USUAL, ...Object.fromEntries(Object.keys(USUAL).filter((key) => given.has(key)).map((key) => [key, given.get(key)])) };
    const [arch, name] = [state.function.split(":")[0], state.function.split(":").slice(1).join(":")];
    view.arch.value = arch;
    view.name.value = name;
    view.x.value = state.x;
    view.y.value = state.y;
    list();
    show();
  }

  // Lists the names of the architecture's functions.
  function list() {
    const names = Object.keys(mpgemm.catalogue.functions.architectures[view.arch.value] || {});
    view.names.replaceChildren(...names.map((name) => element("option", { value: name })));
  }

  // ---- the form --------------------------------------------------------------------------------------------------------
  const labelled = (id, label, control) => element("div", { class: "field" }, element("label", { for: id }, label), control);

  function build(root) {
    view = { out: element("div", { "aria-live": "polite" }), names: element("datalist", { id: "function-names" }) };
    const message = element("p", { class: "message", role: "alert" });
    view.say = (words) => (message.textContent = words);
    const typed = (id, more = {}) => element("input", { id, spellcheck: "false", autocomplete: "off", oninput: show, ...more });
    view.arch = element("select", { id: "function-arch", onchange: () => { list(); show(); } },
      Object.keys(mpgemm.catalogue.functions.architectures).map((name) => element("option", { value: name }, name)));
    view.name = typed("function-name", { list: "function-names" });
    view.x = typed("function-x");
    view.y = typed("function-y");
    view.second = labelled("function-y", "y, the divisor", view.y);
    root.replaceChildren(
      element("div", { class: "two" }, labelled("function-arch", "Architecture", view.arch), labelled("function-name", "Function", view.name)),
      element("div", { class: "two" }, labelled("function-x", "x", view.x), view.second), view.names, message, view.out);
    recall();
    window.addEventListener("hashchange", recall);
  }

  return { build };
})();
