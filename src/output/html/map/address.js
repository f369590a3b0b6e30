// The fragment of the address holds the view, the filters and the open item: `#view=nad&namespace=apps&item=nad:apps/net`.
const PARTS = ["view", "q", "namespace", "node", "findings", "item"];

function addressOf(of) {
  const address = new URLSearchParams();
  for (const part of PARTS) if (of[part] !== null && of[part] !== NO_STATE[part]) address.set(part, of[part]);
  return "#" + address.toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
}

// The same for an item beside the view and the filters that are chosen: of many rows, only the item differs.
let base = { state: null, address: "" };
function itemAddress(id) {
  if (base.state !== state) base = { state, address: addressOf({ ...state, item: null }) };
  const item = encodeURIComponent(id).replaceAll("%20", "+").replaceAll("%2F", "/").replaceAll("%3A", ":");
  return `${base.address}${base.address === "#" ? "" : "&"}item=${item}`;
}

function writeAddress() {
  try {
    history.replaceState(null, "", addressOf(state));
  } catch {
    // A browser may allow only so many changes of the address in a while; the next one has all of it.
  }
}

function readAddress() {
  // The link that skips to the list.
  if (location.hash && !location.hash.includes("=")) return;
  const address = new URLSearchParams(location.hash.slice(1));
  const read = { ...NO_STATE };
  for (const part of PARTS) if (address.has(part)) read[part] = address.get(part);
  if (read.view !== "overview" && !items[read.view]) read.view = "overview";
  if (read.item && !byId.has(read.item)) read.item = null;
  state = read;
  words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  show();
}
