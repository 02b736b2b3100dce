// Turns the kernel's records into steps: the addends, their common unit, the kept part of each, their sum and the rounded sum.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.steps = (() => {
  const F = mpgemm.formats;
  const DOUBLE = { bits: 64, bytes: 8, exponentBits: 11, fractionBits: 52, paddingBits: 0, bias: 1023, specials: "ieee", signed: true };

  // The k of each group of a pass that starts at product `start`, in the order in which the unit takes them; of units that multiply
  // significands in parts each k comes once for each part.
  function groupsOf(row, dot, start) {
    const arrangement = mpgemm.catalogue.arrangements[row.arrangement], [count, segments] = arrangement;
    const order = arrangement.slice(2, 2 + count), bounds = arrangement.slice(2 + count, 3 + count + segments);
    const groups = Array.from({ length: segments }, (_, g) => order.slice(bounds[g], bounds[g + 1]));
    return groups.map((ks) => ks.map((at) => start + at).filter((k) => k < dot.k)).filter((ks) => ks.length);
  }

  // Exact products (of units that add up groups first: exact sums of groups) in the order in which the unit takes them, labelled by k, with
  // c where it joins: before or after the first products.
  function pool(row, dot) {
    const arrangement = mpgemm.catalogue.arrangements[row.arrangement], step = Math.max(...arrangement.slice(2, 2 + arrangement[0])) + 1;
    const product = (k, at) => {
      const masks = row.parts && row.parts[at % row.parts.length], part = masks ? `, part ${(at % row.parts.length) + 1}` : "";
      return { label: `k = ${k}${part}`, number: mpgemm.units.term(row, dot, k, masks) };
    };
    const inPhase = (k, masks, part) => ({ label: `k = ${k}, part ${part}`, number: mpgemm.units.term(row, dot, k, masks) });
    const c = { label: "c", number: F.decode(dot.c[0], mpgemm.units.formatsOf(row)[2]) }, found = row.cFirst ? [c] : [];
    for (let start = 0; start < dot.k; start += step) {
      for (const ks of groupsOf(row, dot, start)) {
        const products = row.phases ? row.phases.flatMap((masks, i) => ks.map((k) => inPhase(k, masks, i + 1))) : ks.map(product), last = ks[ks.length - 1];
        if (row.family !== "GroupDotFusedSum") found.push(...products);
        else found.push({ label: `k = ${ks[0]} to ${last}`, number: products.map((p) => p.number).reduce(F.plus) });
      }
      if (!row.cFirst && start === 0) found.push(c);
    }
    if (row.rollup) found.sort((x, y) => turn(row, x) - turn(row, y));
    return found.filter((entry) => entry.number.kind === "finite");
  }

  const turn = (row, { label }) => (label === "c" ? -1 : parseInt(label.slice(4), 10) % row.rollup.accumulators);
  const same = (x, y) => F.minus(x, y).significand === 0n;
  const double = (bits) => F.decode(BigInt.asUintN(64, bits), DOUBLE);

  // Builds steps one after the other; addends find their names among the products, c and earlier results by their values.
  class Builder {
    constructor(row, dot) {
      this.d = mpgemm.units.inside(row)[3];
      this.nameless = row.family === "FidelityPhases" ? "a group of parts" : "sum so far";
      this.entries = pool(row, dot);
      this.steps = [];
      this.open = null;
    }

    begin(unit) {
      this.close();
      this.open = { addends: [], loose: [], unit, sum: null, rounded: null };
    }

    addend(number, kept) {
      const at = this.entries.findIndex((entry) => same(entry.number, number));
      const label = at < 0 ? this.nameless : this.entries.splice(at, 1)[0].label;
      if (at >= 0 || number.significand) this.open.addends.push({ label, number, kept }); // zeros without a name fill up a pass
    }

    // Ends the step that is open. Steps that only pass a number on are left out, and their result keeps that number's name.
    close() {
      const step = this.open;
      this.open = null;
      if (!step) return;
      if (!step.addends.length && step.unit !== null) {
        this.open = step;
        step.loose.forEach((number) => this.addend(number, null));
        this.open = null;
      }
      if (!step.addends.length) return;
      if (step.addends.every((x) => x.kept === null)) this.unaligned(step);
      const result = step.rounded || step.sum, [first] = step.addends;
      if (!result) return;
      if (step.addends.length === 1 && result.kind === "finite" && same(result, first.number)) {
        this.entries.unshift({ label: first.label, number: result });
        return;
      }
      this.steps.push(step);
      if (result.kind === "finite") this.entries.unshift({ label: `[${this.steps.length}]`, number: result });
    }

    // A sum whose addends are not aligned: nothing is cut before it is rounded, at the last place of the result.
    unaligned(step) {
      step.sum = step.addends.map((x) => x.number).reduce(F.plus);
      const leading = step.sum.significand ? F.leading(step.sum) : -Infinity;
      step.unit = this.d.integer ? 0 : Math.max(leading, F.emin(this.d)) - this.d.fractionBits;
    }

    lane(numbers, rounded) {
      this.begin(null);
      numbers.forEach((number) => this.addend(number, null));
      this.open.rounded = rounded;
    }

    read({ kind, index, exponent, value, kept, format }) {
      if (kind.startsWith("lane")) {
        const [x, y, z] = [value, kept, index].map(double), rounded = double(exponent);
        if ([x, y, z].some((number) => number.kind !== "finite")) return;
        this.lane(kind === "laneAdd" ? [x, y] : kind === "laneCut" ? [x] : [z, F.times(x, y)], rounded);
        return;
      }
      const number = F.of(value, Number(exponent));
      if (kind === "align") this.begin(Number(exponent));
      else if (kind === "addend") this.addend(number, F.of(kept, this.open.unit));
      else if (kind === "sum") this.open.sum = number;
      else if (kind === "rounded") this.rounded(number, kept, format || this.d);
      else if (kind === "add") {
        if (index === 0n) this.begin(null);
        this.addend(number, null);
      } else {
        if (!this.open || this.open.sum) this.begin(this.d.integer ? 0 : null);
        this.open.loose.push(number);
      }
    }

    rounded(number, code, format) {
      if (!this.open) return;
      this.open.sum = this.open.sum || number;
      this.open.rounded = F.decode(BigInt.asUintN(64, code), format);
    }
  }

  // [{addends: [{label, number, kept}], sum, unit, rounded}] of one recorded dot product. `unit` is the exponent of the last bit that is
  // kept: of the aligned addends, or, in additions without an alignment (`kept` is null), of the result.
  function of(row, dot, records) {
    const builder = new Builder(row, dot);
    for (const record of records) builder.read(record);
    builder.close();
    return builder.steps;
  }

  return { of };
})();
