// A click on a table's head sorts its rows by that column: numbers from the greatest, words from a.
document.addEventListener("click", (event) => {
  const head = event.target.closest(".md-typeset th");
  const body = head?.closest("table")?.tBodies[0];
  if (!body) return;
  const text = (row) => row.cells[head.cellIndex]?.textContent.trim() ?? "";
  const rising = head.getAttribute("aria-sort") === "descending";
  const compare = (a, b) => {
    const [x, y] = [a, b].map((row) => Number.parseFloat(text(row).replace(/^[–−]/, "-")));
    if (Number.isNaN(x) && Number.isNaN(y)) return text(b).localeCompare(text(a));
    return (Number.isNaN(x) ? -Infinity : x) - (Number.isNaN(y) ? -Infinity : y);
  };
  const rows = [...body.rows].sort((a, b) => (rising ? compare(a, b) : compare(b, a)));
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  body.append(...rows);
});
