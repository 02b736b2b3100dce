// Makes elements of the page, and draws the steps of a sum as bits on a ruler.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.drawing = (() => {
  const F = mpgemm.formats;
  const MOST_CUT = 24; // bits right of the cut that are drawn
  const MOST_KEPT = 64; // bits left of it

  // Returns an element with attributes and children; texts are inserted as text and never as markup.
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  }

  const text = (number) => mpgemm.numbers.decimal(F.toNumber(number));

  // Returns the binary digits of a magnitude from place `high` down to place `low`, with spaces above its first digit.
  function digits(number, high, low) {
    if (high < low) return "";
    const shift = number.exponent - low;
    const scaled = shift >= 0 ? number.significand << BigInt(shift) : number.significand >> BigInt(-shift);
    const cut = (scaled & F.ones(high - low + 1)).toString(2);
    return scaled === 0n ? " ".repeat(high - low) + "0" : cut.padStart(high - low + 1, " ");
  }

  function highest(step) {
    const numbers = [...step.addends.map((x) => x.kept || x.number), step.sum].filter((x) => x.significand);
    return Math.min(Math.max(step.unit, ...numbers.map(F.leading)), step.unit + MOST_KEPT - 1);
  }

  function lowest(step) {
    const ends = step.addends.map((x) => x.number).filter((x) => x.significand).map((x) => {
      let zeros = 0;
      while (!((x.significand >> BigInt(zeros)) & 1n)) zeros++;
      return x.exponent + zeros;
    });
    return Math.max(Math.min(step.unit, ...ends), step.unit - MOST_CUT);
  }

  // Returns one line with name, sign, kept bits, lost bits and value.
  function line(name, number, kept, step, [high, low], className) {
    const shown = kept || number, aligned = kept !== null;
    const left = digits(shown, high, step.unit), lost = { ...number, significand: number.significand };
    let right = digits(lost, step.unit - 1, low).replace(/ /g, number.significand ? "0" : " ");
    if (number.significand && F.leading(number) < low && step.unit > low) right = right.replace(/0$/, "…");
    return element("tr", { class: className },
      element("th", { scope: "row" }, name),
      element("td", {}, (shown.significand ? shown : number).negative ? "−" : "+"),
      element("td", { class: "bits" }, left, element("span", { class: "cut", title: aligned ? "cut off" : "rounded away" }, right)),
      element("td", { class: "value" }, text(number), aligned && !sameValue(number, kept) ? ` → ${text(kept)}` : ""));
  }

  const sameValue = (x, y) => F.minus(x, y).significand === 0n;

  // Returns a sentence that says what a step does.
  function sentence(step, number) {
    const lost = step.addends.filter((x) => x.kept && !sameValue(x.kept, x.number)).length;
    const aligned = step.addends.some((x) => x.kept);
    const how = !aligned ? `[${number}] addends are added exactly; the last bit of the result is 2^${step.unit}`
      : `[${number}] addends are aligned, and bits below 2^${step.unit} are cut off` + (lost ? `, from ${lost} of ${step.addends.length} addends` : "; no bit is lost");
    return how + (step.rounded ? `; the sum is rounded to ${step.rounded.kind === "finite" ? text(step.rounded) : step.rounded.kind}` : "");
  }

  // Returns a step as a table of bits.
  function ruler(step, number) {
    const range = [highest(step), lowest(step)];
    const rows = step.addends.map((x) => line(x.label, x.number, x.kept, step, range, ""));
    rows.push(line("sum", step.sum, null, step, range, "sum"));
    if (step.rounded && step.rounded.kind === "finite" && !sameValue(step.rounded, step.sum))
      rows.push(line("rounded", step.rounded, null, step, range, "sum"));
    return element("div", { class: "step", tabindex: "0", role: "group", "aria-label": `step ${number}` },
      element("table", {},
        element("caption", {}, sentence(step, number)),
        element("thead", {}, element("tr", {}, element("th", {}, "addend"), element("th", {}),
          element("th", {}, `2^${range[0]} … 2^${step.unit}`), element("th", {}, "value"))),
        element("tbody", {}, rows)));
  }

  return { element, ruler, text };
})();
