// A list shows a chunk of its rows, and the next one when its end comes into view.
const CHUNK = 100;
const list = document.getElementById("rows");
const rest = document.getElementById("rest");
const empty = document.getElementById("empty");
let shown = [];
let limit = CHUNK;

// The worst first; then what is fuller, then the name.
function weight(item) {
  if (item.type === "range") return share(item.row) ?? -1;
  if (item.type === "resource") return item.row.allocatable ? item.row.requested / item.row.allocatable : -1;
  return 0;
}
for (const [type, all] of Object.entries(items)) {
  const keys = new Map(all.map((item) => [item, [worst(item) + (hasConflict(item) ? 10 : 0), weight(item)]]));
  // The sort is stable: equal items stay in the order of their names.
  if (type !== "vlan") all.sort((one, other) => keys.get(other)[0] - keys.get(one)[0] || keys.get(other)[1] - keys.get(one)[1]);
}

function meter(item) {
  const { type, row } = item;
  if (type === "range" && share(row) !== null) return [element("span", { class: "measure" }, `${leasesText(row)} · ${percent(share(row))}`), bar(share(row), leasesText(row))];
  if (type === "resource" && row.allocatable) {
    const part = row.requested / row.allocatable;
    return [element("span", { class: "measure" }, part > 1 ? `${digits(row.requested - row.allocatable)} too many requested` : `${digits(row.requested)} of ${digits(row.allocatable)} requested · ${percent(part)}`), bar(Math.min(1, part), `${row.requested} of ${row.allocatable} requested`)];
  }
  if (type === "pf") return [partitionBar(row)];
  return [element("span", { class: "measure" }, usersText(item))];
}

function rowOf(item) {
  // A finding leads to its object.
  const to = item.type === "finding" ? item.of ?? item : item;
  const facts = factsOf(item).filter((fact) => typeof fact === "string");
  return element("li", {}, element("a", { class: "row", href: itemAddress(to.id), "data-item": to.id, "aria-current": state.item === to.id ? "true" : null },
    element("span", { class: "mark" }, severitySign(item)),
    element("span", { class: "what" }, named(item), element("span", { class: "of" }, facts.join(" · "))),
    element("span", { class: "meter" }, ...meter(item))));
}

function showList(type) {
  shown = matched(type);
  limit = CHUNK;
  list.replaceChildren(...shown.slice(0, limit).map(rowOf));
  const isFiltered = shown.length < items[type].length;
  empty.hidden = shown.length > 0;
  empty.textContent = items[type].length ? "Nothing matches the search and the filters." : emptyText(type);
  status.textContent = isFiltered ? `${digits(shown.length)} of ${digits(items[type].length)} shown` : counted(shown.length, "row");
  showRest();
}

// Where a kind could not be read, an empty list means nothing.
function emptyText(type) {
  const parts = { nad: ["NADs"], network: ["SriovNetworks", "SriovIBNetworks", "OVSNetworks"], user: ["pods"], policy: ["SriovNetworkNodePolicies"], pf: ["SriovNetworkNodeStates", "SriovNetworkNodePolicies"], finding: ["findings"] };
  const why = (parts[type] ?? []).map(unknown).find(Boolean);
  return why ? `Not known: ${why}` : `${TYPES[type].empty} on this map.`;
}

function showRest() {
  rest.hidden = shown.length <= limit;
  rest.textContent = `Show ${Math.min(CHUNK, shown.length - limit)} more of ${digits(shown.length)}`;
}

function showMore(number = CHUNK) {
  list.append(...shown.slice(limit, limit + number).map(rowOf));
  limit += number;
  showRest();
}
rest.addEventListener("click", () => showMore());
new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) showMore(); }, { rootMargin: "600px" }).observe(rest);
