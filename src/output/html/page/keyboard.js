// `/` goes to the search, Escape clears it, and the arrow keys go from entry to entry, from the search on.
const summaries = () => entries.filter((entry) => entry.details && entry.state === "shown").map((entry) => entry.details.firstElementChild);

function step(from, key) {
  const all = summaries();
  const at = all.indexOf(from);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[key];
  const next = to < 0 ? search : all[to];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

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
    step(target, key);
  } else {
    return;
  }
  event.preventDefault();
});
