// Searches random dot products on which two units differ, and makes them as short as possible.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.search = (() => {
  const F = mpgemm.formats;
  const TRIES = 20000, BATCH = 200, MOST_TERMS = 32;

  const below = (n) => Math.floor(Math.random() * n);
  const bits = (count) => BigInt.asUintN(count, (BigInt(below(2 ** 32)) << 32n) | BigInt(below(2 ** 32)));

  // Returns a random encoding: any integer, or a number whose exponent is near 0, so that sums cancel and round.
  function draw(f) {
    if (f.integer) return bits(f.bits);
    const spread = Math.min(6, F.emin(f) < -6 ? 6 : -F.emin(f) + 1);
    const field = Math.max(1, Math.min(2 ** f.exponentBits - 2, f.bias - spread + below(2 * spread + 1)));
    const code = ((BigInt(field) << BigInt(f.fractionBits)) | bits(f.fractionBits)) << BigInt(f.paddingBits);
    return (below(2) ? F.signBit(f) : 0n) | code;
  }

  function randomDot(rows) {
    const [fa, fb, fc] = mpgemm.units.formatsOf(rows[0]), k = 1 + below(MOST_TERMS), scale = rows[0].scale;
    const many = (f, count) => Array.from({ length: count }, () => draw(f));
    const dot = { k, a: many(fa, k), b: many(fb, k), c: below(2) ? [draw(fc)] : [0n] };
    if (scale) {
      const one = mpgemm.numbers.parse("1", F.get(scale.format)).code, blocks = Math.ceil(k / scale.block);
      dot.scaleA = Array(blocks).fill(one);
      dot.scaleB = Array(blocks).fill(one);
    }
    return dot;
  }

  const result = (row, dot) => BigInt(mpgemm.units.product(row, { m: 1, n: 1, ...dot }).d[0]);
  const differ = (rows, dot) => result(rows[0], dot) !== result(rows[1], dot);

  // Leaves out c and single products if the results still differ without them.
  function shortened(rows, dot) {
    let best = dot;
    const attempt = (changed) => {
      if (differ(rows, changed)) best = changed;
    };
    attempt({ ...best, c: [0n] });
    for (let q = best.k - 1; q >= 0 && best.k > 1; q--) {
      const without = (values) => values.filter((_, at) => at !== q);
      const blocks = rows[0].scale ? Math.ceil((best.k - 1) / rows[0].scale.block) : 0;
      const scales = rows[0].scale ? { scaleA: best.scaleA.slice(0, blocks), scaleB: best.scaleB.slice(0, blocks) } : {};
      attempt({ ...best, k: best.k - 1, a: without(best.a), b: without(best.b), ...scales });
    }
    return best;
  }

  // Returns a dot product on which the first two units differ, or null. `pause` is awaited between batches, with the number of tries so far.
  async function difference(rows, pause) {
    for (let tried = 0; tried < TRIES; tried += BATCH) {
      for (let i = 0; i < BATCH; i++) {
        const dot = randomDot(rows);
        if (differ(rows, dot)) return shortened(rows, dot);
      }
      await pause(tried + BATCH);
    }
    return null;
  }

  return { difference, draw, TRIES };
})();
