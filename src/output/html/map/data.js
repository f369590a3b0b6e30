// The rows of the map, and who belongs to whom. An item is a row with what the page needs to show it: of which type, under which name.
const map = JSON.parse(document.getElementById("data").textContent);
const SEVERITIES = ["audit", "warn", "patch", "deny"];
const byObject = new Map();
const byId = new Map();

// As findings name objects: a namespace may be missing.
function objectName(kind, namespace, name) {
  return namespace ? `${kind} ${namespace}/${name}` : `${kind} ${name}`;
}

function push(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value); else lists.set(key, [value]);
}

const findingsOf = new Map();
for (const finding of map.findings) push(findingsOf, finding.object, finding);

// `object`: the name that findings have for it, if it is an object.
function itemOf(type, key, row, object) {
  const item = { type, key, row, object, id: `${type}:${key}`, findings: findingsOf.get(object) ?? [], namespaces: [], text: null, nodes: null };
  byId.set(item.id, item);
  if (object) byObject.set(object, item);
  return item;
}

const keyOf = (row) => `${row.namespace}/${row.name}`;
const items = {
  network: map.networks.map((row) => { const object = objectName(row.kind, row.namespace, row.name); return itemOf("network", object, row, object); }),
  nad: map.nads.map((row) => itemOf("nad", keyOf(row), row, objectName("NetworkAttachmentDefinition", row.namespace, row.name))),
  range: map.ranges.map((row) => itemOf("range", row.id, row)),
  vlan: [],
  resource: map.resources.map((row) => itemOf("resource", row.name, row)),
  policy: map.policies.map((row) => itemOf("policy", keyOf(row), row, objectName("SriovNetworkNodePolicy", row.namespace, row.name))),
  pf: map.pfs.map((row, at) => itemOf("pf", `${row.node ?? ""}/${row.name || row.pci_address || at}`, row)),
  ovn: map.ovn_networks.map((row) => itemOf("ovn", row.name, row)),
  user: map.users.map((row) => { const object = objectName(row.kind, row.namespace, row.name); return itemOf("user", object, row, object); }),
  finding: [],
};
items.finding = map.findings.map((row, at) => Object.assign(itemOf("finding", `${at}`, row), { of: byObject.get(row.object), findings: [row] }));
const find = (type, key) => byId.get(`${type}:${key}`);

// Who selects a NAD, also one that is not on the map.
const usersOfNad = new Map();
for (const user of items.user) {
  for (const nad of new Set(user.row.networks.map((network) => network.nad))) push(usersOfNad, nad, user);
}
const leasesOfRange = new Map();
const leasesOfPod = new Map();
for (const lease of map.leases) {
  push(leasesOfRange, lease.range, lease);
  push(leasesOfPod, lease.pod, lease);
}
const nadsOfVlan = new Map();
for (const nad of items.nad) if (nad.row.vlan !== undefined) push(nadsOfVlan, nad.row.vlan, nad);
for (const vlan of [...nadsOfVlan.keys()].sort((one, other) => one - other)) items.vlan.push(itemOf("vlan", `${vlan}`, { vlan }));
const resourceNamed = new Map();
for (const resource of items.resource) push(resourceNamed, resource.key.split("/").at(-1), resource);
const policiesNamed = new Map();
for (const policy of items.policy) push(policiesNamed, policy.row.name, policy);

const known = (found) => found.filter(Boolean);
const unique = (found) => [...new Set(found)];
// Why something is not known, or nothing.
const unknown = (what) => map.unknown.find((part) => part.what === what)?.why;

function worst(item) {
  return item.findings.reduce((most, finding) => Math.max(most, SEVERITIES.indexOf(finding.action) + 1), 0);
}
const hasConflict = (item) => item.findings.some((finding) => finding.is_conflict);
const podsOf = (users) => users.reduce((sum, user) => sum + (user.row.pods ?? 1), 0);
// Small numbers need no formatter, which is slow.
const NUMBERS = new Intl.NumberFormat("en");
const digits = (number) => number === undefined ? undefined : number < 1000 ? `${number}` : NUMBERS.format(number);
const counted = (number, one, many = `${one}s`) => `${digits(number)} ${number === 1 ? one : many}`;
