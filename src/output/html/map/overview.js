// The first view: how much there is, what does not fit together, and what is about to run out.
const overview = document.getElementById("overview");
const TOP = 5;

function figure(type, more, severity) {
  const number = matched(type).length;
  return element("li", { class: `card ${severity ?? ""}` }, element("button", { class: "figure", type: "button", onclick: () => change({ view: type, item: null }) },
    element("span", { class: severity ? "sign" : null }, TYPES[type].many), element("b", { class: number ? null : "zero" }, digits(number)), element("small", {}, more)));
}

function showAll(type, number, changes = {}) {
  return number > TOP && element("button", { class: "plain more", type: "button", onclick: () => change({ view: type, item: null, ...changes }) }, `Show all ${digits(number)}`);
}

function conflictRow({ row, of }) {
  const others = known((row.related ?? []).map((other) => byObject.get(other)));
  return element("li", { class: "conflict" }, element("p", {}, sign(row.action, row.rule), " ", element("span", {}, row.message)),
    element("p", { class: "chips" }, of ? chip(of, row.object) : row.object, ...others.filter((other) => other !== of).map((other) => chip(other, other.object))));
}

function meterRow(item) {
  return element("li", {}, element("a", { class: "line", href: addressOf({ ...state, item: item.id, view: item.type }), "data-item": item.id, "data-view": item.type }, named(item), ...meter(item)));
}

function namespaceRow(row) {
  const isChosen = state.namespace === row.name;
  return element("tr", {}, element("th", { scope: "row" }, element("button", { class: "pick", type: "button", "aria-pressed": String(isChosen), onclick: () => change({ namespace: isChosen ? null : row.name }) }, element("span", {}, row.name || "(no namespace)"))),
    ...[row.networks, row.nads, row.users, row.findings].map((number) => element("td", {}, number ? digits(number) : "–")));
}

let allNamespaces = false;
function namespaceCard() {
  const sorted = [...map.namespaces].sort((one, other) => other.findings - one.findings || other.nads - one.nads);
  const rows = allNamespaces ? sorted : sorted.slice(0, 8);
  const head = element("tr", {}, element("th", { scope: "col" }, element("h2", {}, "Namespaces")), ...["Networks", "NADs", "Users", "Findings"].map((title) => element("th", { scope: "col" }, title)));
  return element("section", { class: "card panel chart" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows.map(namespaceRow))),
    sorted.length > 8 && element("button", { class: "plain more", type: "button", onclick: () => { allNamespaces = !allNamespaces; show(); } }, allNamespaces ? "Show fewer" : `Show all ${digits(sorted.length)}`));
}

function showOverview() {
  const conflicts = matched("finding").filter((finding) => finding.row.is_conflict);
  const others = matched("finding").length - conflicts.length;
  const full = matched("range").filter((range) => share(range.row) !== null);
  const requested = matched("resource").filter((resource) => resource.row.allocatable);
  const isBad = conflicts.some((one) => one.row.action === "deny") ? "deny" : conflicts.length ? "warn" : undefined;
  const left = Object.entries(map.left_out ?? {}).map(([what, number]) => `${digits(number)} ${what} were left out: the map is full`);
  overview.replaceChildren(
    element("ul", { class: "figures" },
      figure("nad", counted(map.namespaces.filter((one) => one.nads).length, "namespace")), figure("range", counted(full.length, "with known leases", "with known leases")),
      figure("resource", counted(matched("pf").length, "PF")), figure("user", podWord(podsOf(matched("user")))),
      figure("finding", counted(conflicts.length, "conflict"), isBad)),
    element("div", { class: "panels" },
      card("Conflicts", conflicts.length ? element("ul", { class: "conflicts" }, ...conflicts.slice(0, TOP).map(conflictRow)) : element("p", { class: "soft" }, "No two objects are known to have anything against each other."),
        showAll("finding", conflicts.length, { findings: "conflicts" }),
        others > 0 && element("p", { class: "soft" }, `${counted(others, "other finding")}: `, element("a", { href: addressOf({ ...state, view: "finding" }), "data-view": "finding" }, "show them"))),
      namespaceCard(),
      full.length > 0 && card("Fullest ranges", element("ul", {}, ...full.slice().sort((one, other) => share(other.row) - share(one.row)).slice(0, TOP).map(meterRow)), showAll("range", full.length)),
      requested.length > 0 && card("Most requested devices", element("ul", {}, ...requested.slice().sort((one, other) => weight(other) - weight(one)).slice(0, TOP).map(meterRow)), showAll("resource", requested.length)),
      (map.unknown.length > 0 || left.length > 0) && card("Not known", element("ul", { class: "unknowns" }, ...map.unknown.map((part) => element("li", {}, element("b", {}, part.what), " ", part.why)), ...left.map((line) => element("li", {}, line))))));
  status.textContent = state.namespace === null && state.node === null && !state.q ? "" : "Everything below is filtered";
}
