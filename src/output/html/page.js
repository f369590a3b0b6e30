"use strict";
// Rows are hidden unless they hold every word that is searched for, and what their table is filtered by.
const search = document.getElementById("search");
const tables = [...document.querySelectorAll("table")].map((table) => {
  const column = Number(table.dataset.filter);
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row, text: row.textContent.toLowerCase(), key: row.cells[column].textContent,
  }));
  const section = table.closest("section");
  const select = document.createElement("select");
  select.setAttribute("aria-label", "Filter by " + table.tHead.rows[0].cells[column].textContent);
  select.append(new Option("all", ""));
  for (const key of [...new Set(rows.map((row) => row.key))].sort()) select.append(new Option(key, key));
  select.addEventListener("change", show);
  section.insertBefore(select, section.children[1]);
  return { rows, select, count: section.querySelector(".count") };
});
function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { rows, select, count } of tables) {
    let shown = 0;
    for (const { row, text, key } of rows) {
      row.hidden = !(words.every((word) => text.includes(word)) && (select.value === "" || select.value === key));
      shown += !row.hidden;
    }
    count.textContent = shown === rows.length ? `${shown}` : `${shown} of ${rows.length}`;
  }
}
search.addEventListener("input", show);
function fromAddress() {
  search.value = new URLSearchParams(location.hash.slice(1)).get("q") || "";
  show();
}
addEventListener("hashchange", fromAddress);
fromAddress();
