// Multiplies on rows of the catalogue; operands are converted and padded as in the package's engines.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.units = (() => {
  const F = mpgemm.formats;

  // Returns a message about an unknown name: it is a device, a part of known names, or neither.
  function unknown(name) {
    const { rows, devices } = mpgemm.catalogue, part = name.toLowerCase(), arch = devices[part];
    const like = rows.map((row) => row.name).filter((full) => (arch ? full.startsWith(`${arch}:`) : full.toLowerCase().includes(part)));
    const such = `${like.slice(0, 3).join(", ")}${like.length > 3 ? ` and ${like.length - 3} more` : ""}`;
    if (arch) return `“${name}” is a device; choose one of its instructions: ${such}`;
    return `no instruction of the catalogue is named “${name}”${like.length ? `; these names have it: ${such}` : ""}`;
  }

  // Returns the row with a name; throws Error if there is none.
  function get(name) {
    const row = mpgemm.catalogue.rows.find((candidate) => candidate.name === name);
    if (!row) throw new Error(unknown(name));
    return row;
  }

  const formatsOf = (row) => row.formats.map(F.get);

  // Returns the rows that take the same operands as a row, the row itself included.
  const alike = (row) =>
    mpgemm.catalogue.rows.filter((other) => other.formats.join() === row.formats.join() &&
      JSON.stringify(other.scale) === JSON.stringify(row.scale));

  const tables = new Map(); // converted encodings of all encodings of a narrow format

  function converted(codes, row, side) {
    const rule = row.convert[side];
    if (!rule) return codes;
    const from = F.get(row.formats[side]), to = F.get(rule.to);
    const key = [from.name, to.name, rule.flush].join();
    if (!tables.has(key)) tables.set(key, new Map());
    const known = tables.get(key);
    return codes.map((code) => {
      if (!known.has(code)) known.set(code, F.convert(code, from, to, rule.flush));
      return known.get(code);
    });
  }

  // Returns the rows of `x`, each padded with zeros from `from` to `to` values.
  function padded(x, from, to) {
    if (from === to) return x;
    const rows = [];
    for (let i = 0; i < x.length; i += from) rows.push(...x.slice(i, i + from), ...Array(to - from).fill(0));
    return rows;
  }

  // Returns the formats in which a unit adds; if c and results are converted around the sum, the format of the sum.
  const inside = (row) => formatsOf(row).map((f, i) => (row.between && i > 1 ? F.get(row.between.format) : f));

  function chain(row, m, n, k, a, b, c, scaleA, scaleB, record) {
    const whole = Math.ceil(k / row.k) * row.k, formats = inside(row);
    const sizes = formats.map((f) => f.bytes);
    row.convert.forEach((rule, side) => {
      if (rule) sizes[side] = F.get(rule.to).bytes;
    });
    const block = row.scale ? row.scale.block : 1, wanted = row.scale ? Math.ceil(whole / block) : 0;
    const given = row.scale ? Math.ceil(k / block) : 0;
    return mpgemm.kernel.product({
      plan: mpgemm.catalogue.plans[row.plan],
      arrangement: mpgemm.catalogue.arrangements[row.arrangement],
      m, n, k: whole, c, record,
      a: padded(converted(a, row, 0), k, whole),
      b: [...converted(b, row, 1), ...Array((whole - k) * n).fill(0)],
      scaleA: row.scale ? padded(scaleA, given, wanted) : [],
      scaleB: row.scale ? [...scaleB, ...Array((wanted - given) * n).fill(0)] : [],
      sizes: [...sizes, row.scale ? F.get(row.scale.format).bytes : 1],
    });
  }

  // Sums between conversions of c and of results (families/widened.py), which are rounded after so many products.
  function convertedBetween(row, m, n, k, a, b, c, record) {
    const [, , from, d] = formatsOf(row), via = F.get(row.between.format), [nan, last] = row.between.nans.map(BigInt);
    const to = (code, f, target, nanCode) =>
      (f.name === target.name ? BigInt(code) : F.decode(code, f).kind === "nan" ? nanCode : F.convert(code, f, target, false));
    const every = row.between.every || k, records = [];
    let sums = c, held = from;
    for (let start = 0; start < k; start += every) {
      const end = Math.min(start + every, k), inPart = (_, at) => at % k >= start && at % k < end;
      const mine = chain(row, m, n, end - start, a.filter(inPart), b.slice(start * n, end * n), sums.map((x) => to(x, held, via, nan)), [], [], record);
      sums = mine.d.map((x) => to(x, via, d, last));
      held = d;
      records.push(...mine.records);
      if (record && d.name !== via.name && F.decode(mine.d[0], via).kind === "finite")
        records.push(addend(mine.d[0], 0n, via), { kind: "rounded", value: 0n, exponent: 0n, kept: sums[0], format: d });
    }
    return { d: sums, records };
  }

  // Returns an operand of an addition in the form in which the kernel records it.
  function addend(code, index, f) {
    const { negative, significand, exponent } = F.decode(code, f);
    return { kind: "add", index, exponent: BigInt(exponent), value: negative ? -significand : significand, kept: 0n };
  }

  // Accumulators that take turns over k, and their sum (engines/rollup.py).
  function rolledUp(row, m, n, k, a, b, c, record) {
    const { accumulators, flush_adds: flush } = row.rollup, d = formatsOf(row)[3];
    const zero = Array(m * n).fill(0n), records = [];
    const added = (x, y) => {
      const total = F.add(x, y, d), kept = flush && !(total & F.exponentMask(d)) ? total & F.signBit(d) : total;
      if (record) records.push(addend(x, 0n, d), addend(y, 1n, d), { kind: "rounded", value: 0n, exponent: 0n, kept });
      return kept;
    };
    let sums = Array.from({ length: accumulators }, (_, i) => {
      const taken = Array.from({ length: k }, (_, q) => q).filter((q) => q % accumulators === i);
      if (!taken.length) return zero;
      const mine = chain(row, m, n, taken.length, a.filter((_, at) => (at % k) % accumulators === i),
        taken.flatMap((q) => b.slice(q * n, (q + 1) * n)), i ? zero : c, [], [], record);
      records.push(...mine.records);
      return mine.d.map(BigInt);
    });
    sums = [...sums.slice(k % accumulators), ...sums.slice(0, k % accumulators)];
    while (sums.length > 1)
      sums = Array.from({ length: sums.length / 2 }, (_, i) => sums[2 * i].map((x, at) => added(x, sums[2 * i + 1][at])));
    return { d: sums[0].map((x) => added(x, 0n)), records };
  }

  // d = a b + c on encodings: a (m, k), b (k, n), c (m, n); scaleA (m, blocks) and scaleB (blocks, n) for units with block scales.
  // Returns {d, records}; d are numbers, or BigInt where the format has 64 bits.
  function product(row, { m, n, k, a, b, c, scaleA = [], scaleB = [], record = false }) {
    if (row.rollup) return rolledUp(row, m, n, k, a, b, c, record);
    if (row.between) return convertedBetween(row, m, n, k, a, b, c, record);
    return chain(row, m, n, k, a, b, c, scaleA, scaleB, record);
  }

  // The exact product of one k as the unit forms it, from converted operands, its block scales included; with `masks` of the bits that
  // these leave of the two significands.
  function term(row, { a, b, scaleA = [], scaleB = [] }, k, masks = null) {
    const [x, y] = [a, b].map((codes, side) => {
      const rule = row.convert[side];
      const whole = F.decode(converted([codes[k]], row, side)[0], F.get(rule ? rule.to : row.formats[side]));
      return masks ? { ...whole, significand: whole.significand & BigInt(masks[side]) } : whole;
    });
    const block = row.scale ? Math.floor(k / row.scale.block) : 0;
    const scales = row.scale ? [scaleA, scaleB].map((side) => F.decode(side[block], F.get(row.scale.format))) : [];
    const parts = [x, y, ...scales];
    return parts.every((part) => part.kind === "finite") ? parts.reduce(F.times) : { kind: "nan" };
  }

  // The exact sum of products and c as a number, null where an operand is no finite number.
  function exact(row, { k, a, b, c, scaleA = [], scaleB = [] }) {
    const [fa, fb, fc] = formatsOf(row), scale = row.scale && F.get(row.scale.format);
    let total = F.decode(c[0], fc);
    for (let q = 0; q < k; q++) {
      const parts = [F.decode(a[q], fa), F.decode(b[q], fb)];
      if (scale) for (const side of [scaleA, scaleB]) parts.push(F.decode(side[Math.floor(q / row.scale.block)], scale));
      if (total.kind !== "finite" || parts.some((x) => x.kind !== "finite")) return null;
      total = F.plus(total, parts.reduce(F.times));
    }
    return total.kind === "finite" ? total : null;
  }

  return { get, formatsOf, inside, alike, product, exact, term };
})();
