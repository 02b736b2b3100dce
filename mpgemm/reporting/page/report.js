"use strict";
// A click on a heading sorts its table by that column, a second click the other way round.
for (const table of document.querySelectorAll("table")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const ascending = heading.getAttribute("aria-sort") !== "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const value = (row) => {
        const cell = row.cells[column];
        return "order" in cell.dataset ? Number(cell.dataset.order) : cell.textContent;
      };
      const compare = (x, y) => {
        const a = value(x), b = value(y);
        if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
        return a.localeCompare(b, "en", { numeric: true });
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((x, y) => (ascending ? compare(x, y) : compare(y, x)));
      body.append(...rows);
    });
  });
}
// A picture that the page makes smaller can be shown whole: it scrolls then.
for (const figure of document.querySelectorAll("figure")) {
  const [picture, caption] = [figure.querySelector("img"), figure.querySelector("figcaption")];
  const button = document.createElement("button");
  const name = (whole) => (button.textContent = whole ? "fit to the page" : "full size");
  button.type = "button";
  name(false);
  button.addEventListener("click", () => name(figure.classList.toggle("whole")));
  const offer = () => (button.hidden = picture.naturalWidth <= figure.clientWidth);
  caption.append(" ", button);
  addEventListener("resize", offer);
  picture.decode().then(offer, offer);
}
