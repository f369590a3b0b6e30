// An entry is shown if it holds every word of the search, has every label that is chosen, and a finding that has all that is chosen of
// a finding. A filter does not concern entries that have nothing of its sort: a write loop has no rule.
const status = document.getElementById("status");
const reset = document.getElementById("reset");

function chosen() {
  return selects.filter((select) => select.selectedIndex > 0).map((select) => [select.name, select.value]);
}

function choose(name, value) {
  const select = selects.find((one) => one.name === name);
  if (!select) return;
  const index = value === null ? 0 : [...select.options].findIndex((option, at) => at > 0 && option.value === value);
  select.selectedIndex = Math.max(index, 0);
}

// The findings of an entry that match; null if the entry itself does not.
function matching(entry, wanted) {
  if (!entry.isHit) return null;
  const has = (of) => wanted.every(([name, value]) => of[name] === undefined || of[name] === value);
  if (!has(entry.labels)) return null;
  const findings = entry.findings.filter(has);
  return findings.length > 0 || entry.findings.length === 0 ? findings : null;
}

function searchWords() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const entry of entries) entry.isHit = words.every((word) => textOf(entry).includes(word));
}

function show() {
  const wanted = chosen();
  lists.forEach((list) => showList(list, wanted));
  for (const select of selects) select.classList.toggle("on", select.selectedIndex > 0);
  reset.disabled = wanted.length === 0 && search.value === "";
  charts.forEach((chart) => showChart(chart, wanted));
  showPressed();
  const first = lists[0];
  const findings = first.entries.reduce((sum, entry) => sum + (matching(entry, wanted)?.length ?? 0), 0);
  status.textContent = `${findings} ${findings === 1 ? "finding" : "findings"} shown`;
}

function showList(list, wanted) {
  let shown = 0;
  for (const entry of list.entries) {
    const isShown = matching(entry, wanted) !== null;
    setState(entry, !isShown ? "hidden" : shown < list.limit ? "shown" : "later");
    shown += isShown;
  }
  const all = list.entries.length;
  list.count.textContent = shown === all ? `${shown}` : `${shown} of ${all}`;
  list.empty.hidden = shown > 0;
  list.rest.hidden = shown <= list.limit;
  list.rest.textContent = `Show ${Math.min(CHUNK, shown - list.limit)} more of ${shown}`;
}

function showMore(list) {
  list.limit += CHUNK;
  showList(list, chosen());
}

for (const list of lists) {
  list.rest.addEventListener("click", () => showMore(list));
  const watch = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) showMore(list); }, { rootMargin: "800px" });
  watch.observe(list.rest);
}

function changed() {
  for (const list of lists) list.limit = CHUNK;
  show();
  writeAddress();
}

search.addEventListener("input", () => { searchWords(); changed(); });
selects.forEach((select) => select.addEventListener("change", changed));
reset.addEventListener("click", () => {
  search.value = "";
  selects.forEach((select) => { select.selectedIndex = 0; });
  searchWords();
  changed();
  search.focus();
});
