// Moves the focus from one of these elements to the one that the key means: the search is above the first.
function step(all, from, key) {
  const at = all.indexOf(from);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[key];
  const next = to < 0 ? search : all[to];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

