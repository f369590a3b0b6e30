// A chart counts what the other filters and the search leave, so that it also shows what else there is to choose.
const FEW = 5;
const charts = [...document.querySelectorAll("table[data-chart]")].map((table) => {
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row,
    value: row.querySelector("button").value,
    cells: [...row.querySelectorAll("td")],
    bars: [...row.querySelectorAll("rect")],
  }));
  const chart = { name: table.dataset.chart, rows, columns: table.dataset.columns.split(" "), isOpen: false };
  chart.more = table.parentElement.querySelector(".more");
  chart.more.addEventListener("click", () => {
    chart.isOpen = !chart.isOpen;
    showChart(chart, chosen());
  });
  return chart;
});
const picks = [...document.querySelectorAll("button[data-pick]")];

function counted(chart, wanted) {
  const others = wanted.filter(([name]) => name !== chart.name);
  const counts = new Map();
  for (const entry of entries) {
    const seen = new Set();
    for (const finding of matching(entry, others) ?? []) {
      const value = finding[chart.name] ?? entry.labels[chart.name];
      if (value === undefined) continue;
      const count = counts.get(value) ?? counts.set(value, { objects: 0 }).get(value);
      count[finding.severity] = (count[finding.severity] ?? 0) + 1;
      count.objects += !seen.has(value);
      seen.add(value);
    }
  }
  return counts;
}

function showChart(chart, wanted) {
  const counts = counted(chart, wanted);
  const isChosen = (value) => wanted.some(([name, one]) => name === chart.name && one === value);
  const severities = chart.columns.filter((column) => column !== "objects");
  const total = (count) => severities.reduce((sum, severity) => sum + (count[severity] ?? 0), 0);
  const most = Math.max(1, ...[...counts.values()].map(total).sort((one, other) => other - one).slice(0, 1));
  const left = chart.rows.filter(({ value }) => counts.has(value) || isChosen(value));
  const shown = new Set(chart.isOpen ? left : left.filter(({ value }, at) => at < FEW || isChosen(value)));
  for (const one of chart.rows) {
    const { row, value, cells, bars } = one;
    row.hidden = !shown.has(one);
    if (row.hidden) continue;
    const count = counts.get(value) ?? {};
    chart.columns.forEach((column, at) => {
      const number = count[column] ?? 0;
      cells[at].textContent = number || "–";
      cells[at].classList.toggle("some", number > 0);
    });
    let from = 0;
    severities.forEach((severity, at) => {
      const width = 100 * (count[severity] ?? 0) / most;
      bars[at].setAttribute("x", from);
      bars[at].setAttribute("width", width);
      from += width;
    });
  }
  chart.more.hidden = left.length <= FEW;
  chart.more.textContent = chart.isOpen ? "Show fewer" : `Show all ${left.length}`;
  chart.more.setAttribute("aria-expanded", chart.isOpen);
}

// A figure or a row of a chart chooses its value, or gives it up again.
function showPressed() {
  const wanted = chosen();
  for (const pick of picks) {
    const isPressed = wanted.some(([name, value]) => name === pick.dataset.pick && value === pick.value);
    pick.setAttribute("aria-pressed", isPressed);
  }
}

for (const pick of picks) {
  pick.addEventListener("click", () => {
    choose(pick.dataset.pick, pick.getAttribute("aria-pressed") === "true" ? null : pick.value);
    changed();
  });
}
