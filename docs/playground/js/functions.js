// Computes special functions of one number: the kernel's instructions, the table entries that the unit read, and the error of the
// result, as mpgemm.explanations.functions of the package does.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.functions = (() => {
  const F = mpgemm.formats;
  const all = () => mpgemm.catalogue.functions;
  const HIGH = "fp64 high"; // the upper word of a double

  // Computes erf by its Taylor series, whose terms are positive after e^(-x x) is factored out; from 4 on by 1 minus a continued fraction.
  function erf(x) {
    const size = Math.abs(x), outer = Math.exp(-size * size) / Math.sqrt(Math.PI);
    let found = 0;
    if (size < 4) {
      for (let n = 0, term = 2 * size; found + term !== found; n++, term *= (2 * size * size) / (2 * n + 1)) found += term;
      found *= outer;
    } else {
      let rest = size;
      for (let n = 60; n > 0; n--) rest = size + n / 2 / rest;
      found = 1 - outer / rest;
    }
    return x < 0 ? -found : found;
  }

  const exp2 = (x) => 2 ** x;
  // The exact function that each function approximates, by the first part of its name.
  const EXACT = {
    ex2: exp2, exp2f: exp2, lg2: Math.log2, rcp: (x) => 1 / x, rsqrt: (x) => 1 / Math.sqrt(x), rsqrtf: (x) => 1 / Math.sqrt(x),
    sqrt: Math.sqrt, sin: Math.sin, cos: Math.cos, sinf: Math.sin, cosf: Math.cos, tanf: Math.tan, tanh: Math.tanh, tanhf: Math.tanh,
    expf: Math.exp, __expf: Math.exp, logf: Math.log, __logf: Math.log, erff: erf, div: (x, y) => x / y, cvt: (x) => x,
  };
  // Significand bits of results and exponent of the smallest normal number; other results are FP32.
  const PRECISION = { fp16: [11, -14], bf16: [8, -126], [HIGH]: [21, -1022] };

  const CONDITIONS = ["less", "same"];

  // Returns the function "arch:name"; throws Error that names the known ones.
  function get(text) {
    const [arch, name] = [text.slice(0, text.indexOf(":")), text.slice(text.indexOf(":") + 1)];
    const known = all().architectures[arch];
    if (!known) throw new Error(`no special functions of “${arch}” are known; choose one of ${Object.keys(all().architectures).join(", ")}`);
    if (!(name in known)) {
      const where = Object.keys(all().architectures).filter((other) => name in all().architectures[other]);
      throw new Error(where.length ? `${arch} has no function “${name}”; choose one of ${where.join(", ")}` : `${arch} has no function “${name}”; choose one from the list`);
    }
    return { arch, name, evidence: all().evidence[known[name]], ...all().rows[name] };
  }

  const formatOf = (name) => F.get(name === HIGH ? "fp64" : name === "word" ? "fp32" : name);
  const FP32 = () => formatOf("fp32");

  // Converts an FP32 encoding to a narrower format; NaN becomes all ones without a sign.
  function narrowed(word, f, rounding) {
    const x = F.decode(BigInt(word), FP32());
    if (x.kind === "nan") return F.magnitudeMask(f);
    if (x.kind === "inf") return F.exponentMask(f) | (x.negative ? F.signBit(f) : 0n);
    return F.encode(x.negative, x.significand, 1n, x.exponent, f, rounding).code;
  }

  function wordOf(code, operand) {
    if (operand === HIGH) return Number(code >> 32n);
    return Number(operand === "fp32" ? code : widened(code, F.get(operand)));
  }

  function widened(code, from) {
    const x = F.decode(code, from), sign = x.negative ? F.signBit(FP32()) : 0n;
    if (x.kind === "nan") return F.magnitudeMask(FP32());
    if (x.kind === "inf") return F.exponentMask(FP32()) | sign;
    return F.encode(x.negative, x.significand, 1n, x.exponent, FP32()).code;
  }

  // Returns the place of an entry of all tables, {table, segment, segments, fractionBits}.
  function placed(entry) {
    let first = 0;
    for (const [table, segments, fractionBits] of all().tables) {
      if (entry < first + segments) return { table, segment: entry - first, segments, fractionBits };
      first += segments;
    }
    throw new Error(`the tables have no entry ${entry}`);
  }

  // Returns the unit's steps in integers. For a logarithm the kernel gives |V| of V = whole + F without its last two bits, and one unit less for V < 0.
  function lookup(name, operand, found) {
    const bits = all().unitBits[name], infinity = (0x7fffffff >> bits) << bits;
    const { fractionBits, ...place } = placed(found.entry), [c0, c1, c2] = all().coefficients.slice(3 * found.entry, 3 * found.entry + 3);
    const whole = name === "lg2" ? found.whole : null, size = whole === null ? found.total : found.total / 4;
    const first = all().tables.find(([table]) => table === all().firstTable[name])[2];
    return {
      ...place, x: found.x, c0, c1, c2, square: found.square, whole,
      total: whole !== null && found.sign ? -1 - size : size,
      fractionBits: fractionBits - (whole === null ? 0 : 2), scale: found.scale - (first - fractionBits),
      significand: leading(BigInt(size), bits + 1), replaced: found.fixed || (operand & 0x7fffffff) > infinity,
    };
  }

  function leading(x, count) {
    const places = x.toString(2).length - count;
    return x === 0n ? 0 : Number(places > 0 ? x >> BigInt(places) : x << BigInt(-places));
  }

  // Returns one result with its instructions, {code, format, value, exact, error, operations: [{name, operands, word, lookup}]}.
  function computed(row, codes) {
    const words = codes.map((code) => wordOf(code, row.operand)), registers = [...words, ...row.constants];
    const records = mpgemm.kernel.evaluate(row, words);
    const operations = records.map((found, i) => {
      const [operation, target, ...sources] = row.steps[i], name = all().operations[operation];
      const operands = sources.slice(0, row.counts[i]).map((register) => registers[register]);
      const word = CONDITIONS.includes(name) ? found.word & 1 : found.word; // the kernel's are all ones
      registers[target] = word;
      return { name, operands, word, lookup: name in all().unitBits ? lookup(name, operands[0], found) : null };
    });
    const word = registers[row.register], format = formatOf(row.result);
    const narrow = !["fp32", "word", HIGH].includes(row.result);
    const code = narrow ? narrowed(word, format, row.rounding) : row.result === HIGH ? BigInt(word) << 32n : BigInt(word);
    return { code, format, operations, ...errorOf(row, codes, F.decode(code, format)) };
  }

  function errorOf(row, codes, result) {
    const operands = codes.map((code) => F.decode(code, formatOf(row.operand)));
    const exactly = EXACT[row.name.split(".")[0]];
    const exact = exactly && operands.every((x) => x.kind === "finite") ? exactly(...operands.map(F.toNumber)) : NaN;
    if (!Number.isFinite(exact) || exact === 0) return { exact: null, error: null };
    if (result.kind !== "finite") return { exact, error: null };
    const [precision, least] = PRECISION[row.result] || [24, -126];
    const places = precision - 1 - Math.max(exponentOf(exact), least), first = Math.trunc(places / 2); // 2^1042 is no double
    return { exact, error: (F.toNumber(result) - exact) * 2 ** first * 2 ** (places - first) };
  }

  // floor(log2 |x|) of a double.
  function exponentOf(x) {
    const field = (new DataView(new Float64Array([x]).buffer).getUint32(4, true) >> 20) & 0x7ff;
    return field ? field - 1023 : exponentOf(x * 2 ** 64) - 64;
  }

  return { get, formatOf, computed };
})();
