// `/` goes to the search, Escape clears it, and the arrow keys go from entry to entry, from the search on.
const summaries = () => entries.filter((entry) => entry.details && entry.state === "shown").map((entry) => entry.details.firstElementChild);

addEventListener("keydown", (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isField = target.matches("input, select, textarea");
  if (key === "/" && !isField) {
    search.focus();
    search.select();
  } else if (key === "Escape" && target === search && search.value) {
    search.value = "";
    searchWords();
    changed();
  } else if (target === search ? key === "ArrowDown" : target.matches("[data-entry] > details > summary") && /^(Arrow(Up|Down)|Home|End)$/.test(key)) {
    step(summaries(), target, key);
  } else {
    return;
  }
  event.preventDefault();
});
