// The package's generic kernel as WebAssembly: loads it, lays out operands in its memory, and reads results and steps back.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.kernel = (() => {
  const KINDS = ["product", "group", "c", "align", "addend", "sum", "add", "rounded", "laneAdd", "laneCut", "laneFma"];
  const ARRAYS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array };
  let module = null;

  // Compiles the module; every other function needs it.
  async function load() {
    const bytes = Uint8Array.from(atob(mpgemm.module), (letter) => letter.charCodeAt(0));
    module = (await WebAssembly.instantiate(bytes, {})).instance.exports;
  }

  function allocated(bytes) {
    const address = module.allocate(Math.max(bytes, 1));
    if (!address) throw new Error("the browser gives this page no more memory");
    return address;
  }

  function stored(values, Type) {
    const address = allocated(values.length * Type.BYTES_PER_ELEMENT);
    const to = new Type(module.memory.buffer, address, values.length);
    const converted = Type === BigUint64Array ? BigInt : Number;
    for (let i = 0; i < values.length; i++) to[i] = converted(values[i]);
    return address;
  }

  function planAt(words) {
    const size = module.plan_size(), address = allocated(size);
    const to = new Uint32Array(module.memory.buffer, address, size / 4).fill(0);
    for (let i = 0; i < words.length; i += 2) to[words[i]] = words[i + 1];
    return address;
  }

  // d = a b + c. `call` has plan, arrangement, m, n, k, the encodings a (m, k), b (k, n), c (m, n), scaleA, scaleB (or empty), the
  // bytes of one encoding of each (`sizes`: a, b, c, d, scales), and `record`. Returns {d: encodings, records}.
  function product(call) {
    module.release();
    const { m, n, k, sizes } = call;
    const plan = planAt(call.plan), arrangement = stored(call.arrangement, Int32Array);
    const [a, b, c] = [call.a, call.b, call.c].map((values, i) => stored(values, ARRAYS[sizes[i]]));
    const scales = [call.scaleA, call.scaleB].map((values) => stored(values, ARRAYS[sizes[4]]));
    const bytes = stored(sizes, Int32Array), d = allocated(m * n * sizes[3]);
    if (module.product(plan, arrangement, m, n, k, a, b, c, d, ...scales, bytes, call.record ? 1 : 0))
      throw new Error("the browser gives this page no more memory");
    return { d: Array.from(new ARRAYS[sizes[3]](module.memory.buffer, d, m * n)), records: call.record ? records() : [] };
  }

  // The steps of the last recorded product: kind, index, exponent, and value and kept as signed integers of 128 bits.
  function records() {
    const count = module.record_count(), words = new BigInt64Array(module.memory.buffer, module.records(), 8 * count);
    const wide = (i) => (words[i + 1] << 64n) | BigInt.asUintN(64, words[i]);
    return Array.from({ length: count }, (_, r) => ({
      kind: KINDS[Number(words[8 * r])],
      index: words[8 * r + 1],
      exponent: words[8 * r + 2],
      value: wide(8 * r + 3),
      kept: wide(8 * r + 5),
    }));
  }

  // The instructions of a special function for operands of 32 bits: {word, fixed, entry, x, scale, whole, sign, square,
  // total} of each.
  function evaluate(row, operands) {
    module.release();
    const { coefficients, units } = mpgemm.catalogue.functions, count = row.steps.length;
    const steps = stored(row.steps.flat(), Int32Array), words = stored([...operands, ...row.constants], Uint32Array);
    const tables = [stored(coefficients, Float64Array), stored(units, Int32Array)], found = allocated(40 * count);
    module.evaluate(steps, count, words, operands.length + row.constants.length, ...tables, found);
    const memory = new DataView(module.memory.buffer, found, 40 * count);
    return row.steps.map((_, i) => {
      const [word, fixed, entry, x, scale, whole, sign, square] = Array.from({ length: 8 }, (_, j) => memory.getInt32(40 * i + 4 * j, true));
      return { word: word >>> 0, fixed: fixed !== 0, entry, x, scale, whole, sign: sign !== 0, square, total: memory.getFloat64(40 * i + 32, true) };
    });
  }

  return { load, product, evaluate };
})();
