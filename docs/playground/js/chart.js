// Draws the bits of each method as a line against the exponent.
"use strict";
globalThis.mpgemm = globalThis.mpgemm || {};

mpgemm.chart = (() => {
  const WIDTH = 640, HEIGHT = 300, LEFT = 44, BOTTOM = 48, TOP = 12, MOST_BITS = 26;
  const DASHES = ["", "7 3", "2 3", "9 3 2 3"];

  function svg(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    made.append(...children);
    return made;
  }

  // points: for each method [exponent, bits] in order.
  function draw(points, titles) {
    const xs = points[0].map(([x]) => x), low = xs[0], high = xs[xs.length - 1];
    const x = (value) => LEFT + ((value - low) / (high - low)) * (WIDTH - LEFT - 8);
    const y = (value) => HEIGHT - BOTTOM - (Math.min(value, MOST_BITS) / MOST_BITS) * (HEIGHT - BOTTOM - TOP);
    const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
      "aria-label": `Correct bits of ${titles.join(", ")} for entries times 2^${low} to 2^${high}` });
    for (let bits = 0; bits <= 24; bits += 4)
      picture.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(bits), y2: y(bits) }),
        svg("text", { x: LEFT - 6, y: y(bits) + 4, "text-anchor": "end" }, String(bits)));
    for (let power = Math.ceil(low / 6) * 6; power <= high; power += 6)
      picture.append(svg("text", { x: x(power), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, String(power)));
    picture.append(svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "both matrices times 2 to this power"),
      svg("text", { x: 12, y: TOP + 120, transform: `rotate(-90 12 ${TOP + 120})`, "text-anchor": "middle" }, "bits"));
    points.forEach((line, i) => picture.append(svg("polyline", { class: `line line-${i}`, "stroke-dasharray": DASHES[i],
      points: line.map(([power, bits]) => `${x(power).toFixed(1)},${y(bits).toFixed(1)}`).join(" ") })));
    const { element } = mpgemm.drawing;
    const legend = titles.map((title, i) => element("li", {},
      svg("svg", { width: "36", height: "10", "aria-hidden": "true" }, svg("line", { class: `line line-${i}`, "stroke-dasharray": DASHES[i], x1: 0, x2: 36, y1: 5, y2: 5 })),
      ` ${title}`));
    return element("figure", {}, picture, element("figcaption", {}, element("ul", { class: "legend" }, legend)));
  }

  return { draw };
})();
