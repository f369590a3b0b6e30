"use strict";
// Rows are hidden unless they hold every word that is searched for, and what their table is filtered by. A row and its details, if it
// has any, are a tbody.
const search = document.getElementById("search");
const tables = [...document.querySelectorAll("table")].map((table) => {
  const column = Number(table.dataset.filter);
  const rows = [...table.tBodies].map((body) => ({
    body, text: body.textContent.toLowerCase(), key: body.rows[0].cells[column].textContent, open: opener(body),
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
// The first cell of a row with details becomes a button that opens and closes it. Closed it still prints.
function opener(body) {
  const [row, details] = body.rows;
  if (!details) return () => {};
  const button = document.createElement("button");
  button.type = "button";
  button.append(...row.cells[0].childNodes);
  row.cells[0].append(button);
  const open = (isOpen) => {
    button.setAttribute("aria-expanded", isOpen);
    details.classList.toggle("closed", !isOpen);
  };
  button.addEventListener("click", () => open(details.classList.contains("closed")));
  open(false);
  return open;
}
function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { rows, select, count } of tables) {
    let shown = 0;
    for (const { body, text, key } of rows) {
      body.hidden = !(words.every((word) => text.includes(word)) && (select.value === "" || select.value === key));
      shown += !body.hidden;
    }
    count.textContent = shown === rows.length ? `${shown}` : `${shown} of ${rows.length}`;
  }
}
search.addEventListener("input", show);
function fromAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const only = address.get("only");
  search.value = address.get("q") || "";
  for (const { rows, select } of tables) {
    select.value = rows.some((row) => row.key === only) ? only : "";
    for (const row of rows) row.open(address.get("open") === "1");
  }
  show();
}
addEventListener("hashchange", fromAddress);
fromAddress();
