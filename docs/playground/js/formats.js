// Decodes encodings into exact numbers, and rounds exact numbers to encodings, as formats.rounding of the package, in BigInt.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.formats = (() => {
  // A number is {kind: "finite" | "inf" | "nan", negative, significand, exponent}: (-1)^negative significand 2^exponent.
  const get = (name) => ({ name, ...mpgemm.catalogue.formats[name] });
  const ones = (bits) => (1n << BigInt(bits)) - 1n;
  const length = (x) => x.toString(2).length; // bits of a positive BigInt

  const emin = (f) => (f.specials === "scale" ? -f.bias : 1 - f.bias);
  const quantum = (f) => emin(f) - f.fractionBits;
  const signBit = (f) => (f.signed ? 1n << BigInt(f.bits - 1) : 0n);
  const exponentMask = (f) => ones(f.exponentBits) << BigInt(f.fractionBits + f.paddingBits);
  const magnitudeMask = (f) => ones(f.exponentBits + f.fractionBits) << BigInt(f.paddingBits);

  function largest(f) {
    if (f.numbers) return BigInt(f.numbers.findIndex(([kind, negative]) => kind === "inf" && !negative) - 1);
    const top = ones(f.exponentBits + f.fractionBits);
    if (f.specials === "ieee") return ((ones(f.exponentBits) << BigInt(f.fractionBits)) - 1n) << BigInt(f.paddingBits);
    const code = f.specials === "fn" || f.specials === "scale" ? top - 1n : top;
    return code << BigInt(f.paddingBits);
  }

  function nan(f) {
    if (f.numbers) return BigInt(f.numbers.findIndex(([kind]) => kind === "nan"));
    if (f.specials === "ieee") return exponentMask(f) | (1n << BigInt(f.fractionBits + f.paddingBits - 1));
    if (f.specials === "fnuz") return signBit(f);
    return f.specials === "fn" || f.specials === "scale" ? magnitudeMask(f) : null;
  }

  function decode(code, f) {
    const bits = BigInt(code);
    if (f.integer) {
      const cut = bits & ones(f.bits);
      const value = f.signed && cut >> BigInt(f.bits - 1) ? cut - (1n << BigInt(f.bits)) : cut;
      return { kind: "finite", negative: value < 0n, significand: value < 0n ? -value : value, exponent: 0 };
    }
    if (f.numbers) {
      const [kind, negative, significand, exponent] = f.numbers[Number(bits)];
      return { kind, negative, significand: BigInt(significand), exponent };
    }
    const fraction = (bits >> BigInt(f.paddingBits)) & ones(f.fractionBits);
    const field = Number((bits >> BigInt(f.paddingBits + f.fractionBits)) & ones(f.exponentBits));
    const negative = (bits & signBit(f)) !== 0n;
    const top = field === 2 ** f.exponentBits - 1;
    if (f.specials === "ieee" && top) return { kind: fraction ? "nan" : "inf", negative, significand: fraction, exponent: 0 };
    if ((f.specials === "fn" || f.specials === "scale") && top && fraction === ones(f.fractionBits))
      return { kind: "nan", negative, significand: fraction, exponent: 0 };
    if (f.specials === "fnuz" && negative && !field && !fraction) return { kind: "nan", negative, significand: 0n, exponent: 0 };
    const hidden = field || f.specials === "scale" ? 1n << BigInt(f.fractionBits) : 0n;
    const exponent = (hidden ? field - f.bias : emin(f)) - f.fractionBits;
    return { kind: "finite", negative, significand: fraction | hidden, exponent };
  }

  // Rounds numerator / denominator * 2^exponent, both positive, to nearest even or ("rz") toward zero with `fractionBits` kept:
  // {significand, exponent, exact}; the significand may have carried into one more bit.
  function rounded(numerator, denominator, exponent, fractionBits, lowest, rounding) {
    let leading = length(numerator) - length(denominator) + exponent; // floor(log2) or one more
    const reaches = (power) => (power >= exponent ? numerator >= denominator << BigInt(power - exponent)
                                                  : numerator << BigInt(exponent - power) >= denominator);
    if (!reaches(leading)) leading -= 1;
    const unit = Math.max(leading - fractionBits, lowest);
    const up = exponent - unit;
    const top = up > 0 ? numerator << BigInt(up) : numerator, bottom = up < 0 ? denominator << BigInt(-up) : denominator;
    let kept = top / bottom;
    const rest = top % bottom;
    if (rounding !== "rz" && (2n * rest > bottom || (2n * rest === bottom && kept & 1n))) kept += 1n;
    return { significand: kept, exponent: unit, exact: rest === 0n };
  }

  // Rounds to nearest, ties away from zero, in a format whose numbers are listed.
  function nearest(negative, numerator, denominator, exponent, f) {
    const low = Math.min(exponent, ...f.numbers.map((x) => x[3])), x = numerator << BigInt(exponent - low);
    const listed = f.numbers.map(([kind, minus, significand, e], code) => ({ code: BigInt(code), plain: kind === "finite" && !minus,
      value: BigInt(significand) * denominator << BigInt(e - low) })).filter((one) => one.plain);
    listed.push({ code: largest(f) + 1n, value: BigInt(f.beyond) * denominator << BigInt(-low) });
    const gap = (one) => (one.value < x ? x - one.value : one.value - x);
    const found = listed.reduce((best, one) => (gap(one) < gap(best) || (gap(one) === gap(best) && one.value > best.value) ? one : best));
    const over = found.code > largest(f) && found === listed.at(-1);
    return { code: found.code && negative ? found.code | signBit(f) : found.code, exact: !over && gap(found) === 0n,
             overflow: over ? "infinity" : "" };
  }

  // Returns the encoding of a positive rational with a sign, {code, exact, overflow}; overflow is "" or the name of the result of an overflow.
  function encode(negative, numerator, denominator, exponent, f, rounding = "rne") {
    if (f.numbers) return nearest(negative, numerator, denominator, exponent, f);
    const sign = negative ? signBit(f) : 0n;
    if (numerator === 0n) return { code: f.specials === "fnuz" ? 0n : sign, exact: true, overflow: "" };
    const r = rounded(numerator, denominator, exponent, f.fractionBits, quantum(f), rounding);
    const hidden = 1n << BigInt(f.fractionBits);
    let code = 0n;
    if (r.significand < hidden) code = r.significand;
    else {
      const carried = r.significand >> 1n >= hidden ? 1 : 0;
      const field = r.exponent + f.fractionBits + carried + f.bias;
      code = (BigInt(field) << BigInt(f.fractionBits)) | ((r.significand >> BigInt(carried)) & (hidden - 1n));
    }
    code <<= BigInt(f.paddingBits);
    if (code <= largest(f)) return { code: code === 0n && f.specials === "fnuz" ? 0n : code | sign, exact: r.exact, overflow: "" };
    if (rounding === "rz") return { code: largest(f) | sign, exact: false, overflow: "the largest number" };
    if (f.specials === "ieee") return { code: exponentMask(f) | sign, exact: false, overflow: "infinity" };
    if (f.specials === "finite") return { code: largest(f) | sign, exact: false, overflow: "the largest number" };
    return { code: null, exact: false, overflow: "nothing" };
  }

  // Converts an encoding to another format, rounded to nearest even, as units do before they multiply. Bits that `from` ignores are
  // read if the target is as wide as `from`.
  function convert(code, from, to, flush) {
    const whole = { ...from, fractionBits: from.fractionBits + from.paddingBits, paddingBits: 0 };
    const x = decode(code, whole), sign = x.negative ? signBit(to) : 0n;
    if (x.kind === "nan") return nan(to);
    if (x.kind === "inf") return exponentMask(to) | sign;
    const found = encode(x.negative, x.significand, 1n, x.exponent, to).code;
    return flush && !(found & exponentMask(to)) ? sign : found;
  }

  // Returns x + y in one format, rounded to nearest even; NaN is all ones without a sign, as in Gaudi's accumulators.
  function add(x, y, f) {
    const a = decode(x, f), b = decode(y, f), both = a.kind === "inf" && b.kind === "inf";
    if (a.kind === "nan" || b.kind === "nan" || (both && a.negative !== b.negative)) return magnitudeMask(f);
    if (a.kind === "inf") return BigInt(x);
    if (b.kind === "inf") return BigInt(y);
    const total = plus(a, b);
    if (total.significand === 0n) return a.significand === 0n && a.negative && b.negative && b.significand === 0n ? signBit(f) : 0n;
    return encode(total.negative, total.significand, 1n, total.exponent, f).code;
  }

  // ---- exact numbers -------------------------------------------------------------------------------------------------
  const signed = (x) => (x.negative ? -x.significand : x.significand);
  const of = (value, exponent) => // the exponent of a zero has no meaning in the kernels, and may be 2^30
    ({ kind: "finite", negative: value < 0n, significand: value < 0n ? -value : value, exponent: value ? exponent : 0 });

  function plus(x, y) {
    const exponent = Math.min(x.exponent, y.exponent);
    const lifted = (z) => signed(z) << BigInt(z.exponent - exponent);
    return of(lifted(x) + lifted(y), exponent);
  }

  const times = (x, y) => of(signed(x) * signed(y), x.exponent + y.exponent);
  const minus = (x, y) => plus(x, { ...y, negative: !y.negative });

  // Returns the double nearest to an exact number, for texts and pictures.
  function toNumber(x) {
    if (x.significand === 0n) return x.negative ? -0 : 0;
    const drop = Math.max(0, length(x.significand) - 64);
    let value = Number(x.significand >> BigInt(drop)), exponent = x.exponent + drop;
    for (; exponent > 900; exponent -= 900) value *= 2 ** 900;
    for (; exponent < -900; exponent += 900) value *= 2 ** -900;
    value *= 2 ** exponent;
    return x.negative ? -value : value;
  }

  const leading = (x) => length(x.significand) - 1 + x.exponent;

  // Returns the difference of two finite numbers in units in the last place of a format, as a double.
  function ulps(computed, exact, f) {
    const unit = f.integer ? 0 : Math.max(exact.significand ? leading(exact) : emin(f), emin(f)) - f.fractionBits;
    const error = minus(computed, exact);
    return toNumber({ ...error, exponent: error.exponent - unit });
  }

  return { get, decode, encode, convert, add, plus, minus, times, of, toNumber, leading, ulps, largest, nan, signBit,
           exponentMask, magnitudeMask, emin, quantum, ones };
})();
