// Reads what a person types exactly (decimal numbers, fractions, powers of two, hexadecimal numbers, bit patterns), and writes numbers as text.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.numbers = (() => {
  const F = mpgemm.formats;
  const MOST = 5000; // exponents beyond this are refused: no format reaches them, and 10^9 would take all memory
  const EXAMPLES = "write it as -1.5, 1e-3, 1/3, 3*2^-12, 0x1.8p-4, inf, nan, or as bits: 0x3c00";

  const wrong = (text, why) => new Error(`“${text}” ${why}`);
  const power = (text, digits) => {
    const exponent = Number(digits);
    if (Math.abs(exponent) > MOST) throw wrong(text, `has an exponent beyond ${MOST}, which no format has`);
    return BigInt(exponent);
  };
  const raised = (base, exponent) => (exponent >= 0n ? [base ** exponent, 1n] : [1n, base ** -exponent]);

  // Returns [numerator, denominator] of one factor without a sign, or null if it is no number.
  function factor(text, whole) {
    let found = text.match(/^(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i);
    if (found && (found[1] || found[2])) {
      const [up, down] = raised(10n, power(whole, found[3] || "0") - BigInt(found[2].length));
      return [BigInt(found[1] + found[2]) * up, down];
    }
    found = text.match(/^0x([\da-f]*)\.?([\da-f]*)p([+-]?\d+)$/i);
    if (found && (found[1] || found[2])) {
      const [up, down] = raised(2n, power(whole, found[3]) - 4n * BigInt(found[2].length));
      return [BigInt("0x" + found[1] + found[2]) * up, down];
    }
    found = text.match(/^2(?:\^|\*\*)\(?([+-]?\d+)\)?$/);
    return found ? raised(2n, power(whole, found[1])) : null;
  }

  // {negative, numerator, denominator} of a text.
  function rational(text) {
    const body = text.trim().replace(/\s+/g, "").replace("−", "-");
    const negative = body.startsWith("-"), rest = body.replace(/^[+-]/, "");
    const parts = rest.split(/(\/|(?<!\*)\*(?!\*))/); // factors with * and / between them; ** is a power
    let numerator = 1n, denominator = 1n;
    for (let i = 0; i < parts.length; i += 2) {
      const found = factor(parts[i], text);
      if (!found) throw wrong(text, `is not a number: ${EXAMPLES}`);
      const [up, down] = parts[i - 1] === "/" ? [found[1], found[0]] : found;
      numerator *= up;
      denominator *= down;
    }
    if (denominator === 0n) throw wrong(text, "divides by zero");
    return { negative, numerator, denominator };
  }

  function integer(text, f) {
    const { negative, numerator, denominator } = rational(text);
    if (numerator % denominator) throw wrong(text, `is no integer, and ${f.name} holds only integers: type an integer`);
    const value = (negative ? -numerator : numerator) / denominator;
    const low = f.signed ? -(1n << BigInt(f.bits - 1)) : 0n, high = F.ones(f.bits - (f.signed ? 1 : 0));
    if (value < low || value > high) throw wrong(text, `is outside of ${f.name}, which holds ${low} to ${high}`);
    return { code: value & F.ones(f.bits), note: "" };
  }

  // Returns the encoding of a text in a format, {code: BigInt, note}; the note says if the number was rounded. Throws Error with a message.
  function parse(text, f) {
    const body = text.trim().toLowerCase();
    if (!body) throw new Error(`a value is missing: ${EXAMPLES}`);
    if (/^0x[\da-f]+$/.test(body)) {
      const code = BigInt(body);
      if (code >> BigInt(f.bits)) throw wrong(text, `has more than the ${f.bits} bits of ${f.name}`);
      return { code, note: "" };
    }
    if (f.integer) return integer(text, f);
    const special = body.match(/^([+-]?)(inf|infinity|nan)$/);
    if (special) return { code: named(text, special[2], special[1] === "-", f), note: "" };
    const { negative, numerator, denominator } = rational(text);
    if (negative && !f.signed && numerator) throw wrong(text, `is negative, and ${f.name} has no sign: type a positive number`);
    if (f.specials === "scale" && !numerator) throw wrong(text, `is zero, which ${f.name} does not have: type a power of two`);
    const found = F.encode(negative, numerator, denominator, 0, f);
    const most = decimal(F.toNumber(F.decode(F.largest(f), f)));
    if (found.code === null) throw wrong(text, `is beyond ${most}, the largest number of ${f.name}, which has no infinity`);
    if (found.overflow) return { code: found.code, note: `“${text.trim()}” is beyond ${most}, the largest number of ${f.name}, and became ${found.overflow}` };
    const shown = found.exact ? "" : `“${text.trim()}” is no number of ${f.name}: it was rounded to ${show(found.code, f)}`;
    return { code: found.code, note: shown };
  }

  function named(text, name, negative, f) {
    const sign = negative ? F.signBit(f) : 0n;
    if (name === "nan") {
      if (F.nan(f) === null) throw wrong(text, `is none of the numbers of ${f.name}, which has no NaN`);
      return F.nan(f);
    }
    if (f.specials !== "ieee") throw wrong(text, `is none of the numbers of ${f.name}, which has no infinity`);
    return F.exponentMask(f) | sign;
  }

  // ---- numbers as text -------------------------------------------------------------------------------------------------
  const decimal = (value) => (Object.is(value, -0) ? "-0" : String(value));

  function show(code, f) {
    const x = F.decode(code, f);
    if (x.kind === "nan") return "NaN";
    if (x.kind === "inf") return x.negative ? "-infinity" : "infinity";
    return f.integer ? String(x.negative ? -x.significand : x.significand) : decimal(F.toNumber(x));
  }

  const hex = (code, f) => "0x" + BigInt(code).toString(16).padStart(Math.ceil(f.bits / 4), "0");

  return { parse, show, hex, decimal };
})();
