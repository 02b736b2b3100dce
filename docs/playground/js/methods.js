// Recovery methods on words of fp16, as the package's rows state them (mpgemm/recovery): how operands are split, multiplied and joined.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.methods = (() => {
  const METHODS = {
    fp16: { title: "FP16 alone", words: 1, rounding: "rne", scale: 0, products: [[0, 0]], accumulation: "core" },
    markidis: { title: "Markidis", words: 2, rounding: "rz", scale: 0, products: [[1, 1], [0, 1], [1, 0], [0, 0]], accumulation: "core" },
    ootomo: { title: "Ootomo and Yokota", words: 2, rounding: "rne", scale: 11, products: [[0, 1], [1, 0], [0, 0]], accumulation: "k_step" },
    sgemm_cube: { title: "SGEMM-cube", words: 2, rounding: "rne", scale: 12, products: [[0, 1], [1, 0], [0, 0]], accumulation: "termwise" },
  };

  // ---- fp16 --------------------------------------------------------------------------------------------------------------
  const FLOAT = new Float32Array(1), BITS = new Uint32Array(FLOAT.buffer);
  const NAN = 0x7e00, INFINITY = 0x7c00;

  function floorLog2(x) {
    let e = Math.floor(Math.log2(x)); // off by one next to powers of two
    if (2 ** e > x) e -= 1;
    return 2 ** (e + 1) <= x ? e + 1 : e;
  }

  // The encoding in fp16 of a double that is no double-rounding's victim: one of FP32 times a power of two.
  function narrow(x, rounding) {
    const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0, size = Math.abs(x);
    if (Number.isNaN(x)) return NAN;
    if (size === Infinity) return sign | INFINITY;
    if (size === 0) return sign;
    const exponent = size < 2 ** -14 ? -14 : floorLog2(size), scaled = size * 2 ** (10 - exponent);
    let kept = Math.floor(scaled);
    const rest = scaled - kept;
    if (rounding === "rne" && (rest > 0.5 || (rest === 0.5 && kept % 2))) kept += 1;
    const code = (exponent + 14) * 1024 + kept; // the hidden bit of a normal number adds 1 to the field
    if (code >= INFINITY) return sign | (rounding === "rz" ? INFINITY - 1 : INFINITY);
    return sign | code;
  }

  function widened(code) {
    const field = (code >> 10) & 31, fraction = code & 1023, sign = code & 0x8000 ? -1 : 1;
    if (field === 31) return fraction ? NaN : sign * Infinity;
    return sign * (field ? (1024 + fraction) * 2 ** (field - 25) : fraction * 2 ** -24);
  }

  function toFloat(code) {
    BITS[0] = Number(code);
    return FLOAT[0];
  }

  function toCode(value) {
    FLOAT[0] = value;
    return Number.isNaN(value) ? 0x7fc00000 : BITS[0];
  }

  // Words of FP32 values: word 0 is x rounded, word 1 what is left of it times 2^scale, rounded.
  function split(values, method) {
    const words = [values.map((x) => narrow(x, method.rounding))];
    if (method.words === 2)
      words.push(values.map((x, i) => narrow(Math.fround(x - widened(words[0][i])) * 2 ** method.scale, method.rounding)));
    return words;
  }

  // ---- products ------------------------------------------------------------------------------------------------------------
  // Several products in one chain: step by step of k, each in turn, padded to whole steps.
  function joined(pairs, m, n, k, step) {
    if (pairs.length === 1) return { a: pairs[0][0], b: pairs[0][1], k };
    const steps = Math.ceil(k / step), a = [], b = [];
    for (let i = 0; i < m; i++)
      for (let s = 0; s < steps; s++)
        for (const [x] of pairs) for (let q = s * step; q < (s + 1) * step; q++) a.push(q < k ? x[i * k + q] : 0);
    for (let s = 0; s < steps; s++)
      for (const [, y] of pairs) for (let q = s * step; q < (s + 1) * step; q++)
        for (let j = 0; j < n; j++) b.push(q < k ? y[q * n + j] : 0);
    return { a, b, k: steps * step * pairs.length };
  }

  function chain(row, m, n, k, pairs) {
    const dot = joined(pairs, m, n, k, row.k);
    return mpgemm.units.product(row, { m, n, ...dot, c: Array(m * n).fill(0) }).d.map(toFloat);
  }

  const added = (x, y) => x.map((value, i) => Math.fround(value + y[i]));
  const times = (x, power) => x.map((value) => Math.fround(value * 2 ** power));

  // Every k step from zero, added up in FP32 outside of the unit.
  function promoted(row, m, n, k, [a, b]) {
    let total = Array(m * n).fill(0);
    for (let start = 0; start < k; start += row.k) {
      const length = Math.min(row.k, k - start), part = [];
      for (let i = 0; i < m; i++) part.push(...a.slice(i * k + start, i * k + start + length));
      total = added(total, chain(row, m, n, length, [[part, b.slice(start * n, (start + length) * n)]]));
    }
    return total;
  }

  // C = A B in FP32 values: a (m, k), b (k, n) are arrays of FP32 values, `scale` replaces the method's own s.
  function product(name, row, { m, n, k, a, b, scale }) {
    const method = { ...METHODS[name], ...(scale === undefined ? {} : { scale }) };
    const words = [split(a, method), split(b, method)];
    const pair = ([i, j]) => [words[0][i], words[1][j]];
    if (method.accumulation === "core") return chain(row, m, n, k, method.products.map(pair));
    const [first, second, main] = method.products.map(pair);
    const low = method.accumulation === "k_step" ? chain(row, m, n, k, [first, second])
      : added(chain(row, m, n, k, [first]), chain(row, m, n, k, [second]));
    const high = method.accumulation === "k_step" ? promoted(row, m, n, k, main) : chain(row, m, n, k, [main]);
    return added(times(low, -method.scale), high);
  }

  // Bits of a result that are right: -log2 of the error in the Frobenius norm (eq. 13 of the SGEMM-cube paper), against sums in double
  // precision, whose own error is 2^-50 or less of that.
  function effectiveBits(computed, { m, n, k, a, b }) {
    let error = 0, size = 0;
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let exact = 0;
        for (let q = 0; q < k; q++) exact += a[i * k + q] * b[q * n + j];
        error += (computed[i * n + j] - exact) ** 2;
        size += exact ** 2;
      }
    if (!(error < Infinity)) return 0;
    return error === 0 ? 53 : Math.max(0, -0.5 * Math.log2(error / size));
  }

  // Units that take fp16 words and give FP32.
  const units = () => mpgemm.catalogue.rows.filter((row) => row.formats.join() === "fp16,fp16,fp32,fp32" && !row.scale);

  return { METHODS, product, effectiveBits, units, toCode };
})();
