"use strict";
/* The page's own script: lists by Tabulator, curves by uPlot. It reads the JSON blocks of the page, and nothing else.
   Names are put in as text, never as markup. */
(() => {
  const block = (key) => JSON.parse(document.getElementById(key).textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const whole = (value) => Math.round(value).toLocaleString("en-US");

  /* The digits of present/numbers.py. */
  const within = (places) => Math.min(Math.max(places, 0), 10);
  const decimals = (lower, upper, value) => {
    const half = 50 * (upper - lower);
    if (half <= 0) return value <= 0 ? 2 : within(2 - Math.floor(Math.log10(100 * value)));
    const found = within(Math.ceil(-Math.log10(half)));
    return half * 10 ** found < 2 ? within(found + 1) : found;
  };
  const percent = (value, places) => {
    if (value <= 0) return "0%";
    const text = (100 * value).toFixed(places);
    return Number(text) === 0 ? `<${(10 ** -places).toFixed(places)}%` : `${text}%`;
  };
  const figure = (row, shares) => (shares ? percent(row.v, decimals(row.l, row.u, row.v)) : whole(row.v));
  const interval = (row, shares) => {
    if (!shares) return `${whole(row.l)} to ${whole(row.u)}`;
    const places = decimals(row.l, row.u, row.v);
    return `${row.l <= 0 ? "0" : (100 * row.l).toFixed(places)} to ${(100 * row.u).toFixed(places)}%`;
  };

  /* ---- lists ---- */
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const bar = (row, full) => {
    const at = (value) => (100 * Math.min(Math.max(value / full, 0), 1)).toFixed(2);
    const made = svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    made.append(svg("rect", { width: at(row.v), height: 10 }));
    const end = row.u <= full ? `M${at(row.u)} 2.5V7.5` : "";
    made.append(svg("path", { d: `M${at(row.l)} 5H${at(row.u)}M${at(row.l)} 2.5V7.5${end}` }));
    return made;
  };
  /* Every text is in quotes, as an export has it: a spreadsheet that parts cells at ; or at a tab does not part them there,
     and what follows such a sign in a name cannot begin a formula. */
  const quoted = (cell) => (typeof cell === "string" ? `"${cell.replaceAll('"', '""')}"` : String(cell));

  const csv = (fields) => {
    const lines = [fields.map((field) => quoted(field.cell ?? field.name)).join(",")];
    for (let place = 0; place < fields[0].values.length; place++) {
      lines.push(fields.map((field) => {
        const value = field.values[place];
        return value === null ? "" : quoted(field.cells?.[place] ?? value);
      }).join(","));
    }
    return lines.join("\n") + "\n";
  };

  const list = (section) => {
    const { about, fields } = block(section.dataset.list);
    const names = fields.filter((field) => field.kind === "name");
    const by = Object.fromEntries(fields.map((field) => [field.name, field.values]));
    const others = by.is_other ?? [];
    const [values, lower, upper] = [by[about.value], by[about.lower], by[about.upper]];
    const shares = about.measure === "shares";
    const shown = (field, place) => field.shown[place] ?? field.values[place];
    const rows = values.map((value, place) => {
      const row = { r: place + 1, v: value, l: lower[place], u: upper[place], o: others[place] ?? false };
      names.forEach((field, which) => { row[`n${which}`] = shown(field, place) ?? (row.o ? "all others" : ""); });
      return row;
    });
    const plain = (text) => String(text).normalize("NFKC").toLowerCase();
    const sought = rows.map((row) => names.map((_, which) => plain(row[`n${which}`])).join("\u0001"));

    const text = (shown, slants) => {
      const made = document.createElement("bdi");
      made.textContent = shown;
      if (!slants) return made;
      const slanted = document.createElement("i");
      slanted.append(made);
      return slanted;
    };
    /* On a narrow screen, the names of several columns stand below each other. */
    const stack = (row) => {
      const made = document.createElement("div");
      made.className = "stacked";
      for (let which = 0; which < names.length; which++) made.append(text(row[`n${which}`], row.o));
      return made;
    };
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    const unseen = (title) => () => {
      const made = document.createElement("span");
      made.className = "hidden";
      made.textContent = title;
      return made;
    };
    const head = (title) => () => document.createTextNode(title);
    const narrow = innerWidth < 640, stacked = narrow && names.length > 1;
    const high = stacked ? 14 + 24 * names.length : 34;
    const columns = [
      ...(about.ranked && !stacked ? [{ title: "rank", field: "r", width: 90, hozAlign: "right", headerHozAlign: "right",
        formatter: (cell) => document.createTextNode(whole(cell.getValue())), responsive: 3, sorter: "number" }] : []),
      ...(stacked ? [{ title: "", titleFormatter: head(names.map((field) => field.name).join(", ")), field: "r",
        sorter: "number", formatter: (cell) => stack(cell.getData()), minWidth: 95, widthGrow: 3, responsive: 0 }]
        : names.map((field, which) => ({ title: "", titleFormatter: head(field.name), field: `n${which}`,
          formatter: (cell) => text(cell.getValue(), cell.getData().o), sorter: order, minWidth: 95, widthGrow: 3,
          responsive: 0 }))),
      { title: shares ? "share" : about.value, field: "v", hozAlign: "right", headerHozAlign: "right", minWidth: 90, widthGrow: 1,
        formatter: (cell) => document.createTextNode(figure(cell.getData(), shares)), sorter: "number",
        headerSortStartingDir: "desc", responsive: 0 },
      { title: narrow ? "interval" : `${about.confidence} interval`, field: "u", hozAlign: "right", headerHozAlign: "right", minWidth: narrow ? 130 : 156, widthGrow: 1.6,
        formatter: (cell) => document.createTextNode(interval(cell.getData(), shares)), sorter: "number",
        headerSortStartingDir: "desc", responsive: 1 },
      { title: "", titleFormatter: unseen("bar"), field: "bar", headerSort: false, minWidth: 160, widthGrow: 4, responsive: 2,
        formatter: (cell) => (cell.getData().o ? document.createTextNode("") : bar(cell.getData(), about.full)) },
    ];
    const holder = section.querySelector(".grid-of-items");
    const table = new Tabulator(holder, {
      data: rows,
      index: "r",
      columns,
      layout: "fitColumns",
      responsiveLayout: "hide",
      height: Math.min(high * Math.max(rows.length, 3) + 44, 480),
      rowHeight: high,
      headerSortTristate: false,
      selectableRows: false,
      keybindings: false,
      placeholder: "Nothing is called so.",
      rowFormatter: (row) => row.getElement().setAttribute("aria-rowindex", String(row.getPosition() + 1)),
    });
    const status = section.querySelector(".status");
    const tell = () => {
      const left = table.getDataCount("active");
      status.textContent = left === rows.length ? `${whole(left)} lines` : `${whole(left)} of ${whole(rows.length)} lines`;
      holder.setAttribute("aria-rowcount", String(left + 1));
    };
    table.on("tableBuilt", () => {
      holder.setAttribute("aria-label", section.querySelector("h2").textContent);
      /* What scrolls can have the focus, so it is the group of rows, and the box inside it is nothing of its own. */
      holder.removeAttribute("aria-owns");
      holder.querySelector(".tabulator-tableholder").setAttribute("role", "rowgroup");
      holder.querySelector(".tabulator-table").setAttribute("role", "presentation");
      for (const column of table.getColumns()) {
        const own = column.getElement();
        if (!column.getDefinition().headerSort && column.getField() === "bar") continue;
        own.tabIndex = 0;
        own.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          own.querySelector(".tabulator-col-content").click();
        });
      }
      tell();
      section.dataset.ready = "yes";
    });
    let waiting = 0;
    const input = section.querySelector("input");
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        const wanted = plain(input.value.trim());
        if (wanted) table.setFilter((row) => sought[row.r - 1].includes(wanted));
        else table.clearFilter(true);
        tell();
      }, 120);
    });
    section.querySelector("button").addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csv(fields)], { type: "text/csv;charset=utf-8" }));
      link.download = `${about.file}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  };

  /* ---- curves ---- */
  const axis = (more) => ({ stroke: colour("--quiet"), grid: { stroke: colour("--rule"), width: 1 },
    ticks: { stroke: colour("--rule"), width: 1 }, font: "12px system-ui, sans-serif", ...more });
  const share = (value) => (value == null ? "–" : `${Number((100 * value).toPrecision(3))}%`);
  const count = (value) => (value == null ? "–" : whole(value));
  const isPower = (value) => value > 0 && Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
  const powers = (_, splits) => splits.map((value) => (isPower(value) ? value : null));
  const said = (text) => (_, splits) => splits.map((value) => (value == null ? "" : text(value)));
  const logarithmic = (text, size) => axis({ filter: powers, values: said(text), size,
    grid: { stroke: colour("--rule"), width: 1, filter: powers },
    ticks: { stroke: colour("--rule"), width: 1, filter: powers } });
  const series = (label, more) => ({ label, points: { show: false }, ...more });

  const options = {
    ranks: (data, size) => ({
      ...size,
      scales: { x: { time: false, distr: 3, range: [1, data.ranks.at(-1)] }, y: { distr: 3 } },
      axes: [logarithmic(whole, 34), logarithmic(share, 62)],
      series: [{ label: "rank", value: (_, value) => (value == null ? "–" : whole(value)) },
        series("share", { stroke: colour("--line"), width: 2, value: (_, value) => share(value) }),
        series("from", { stroke: "transparent", value: (_, value) => share(value) }),
        series("to", { stroke: "transparent", value: (_, value) => share(value) })],
      bands: [{ series: [3, 2], fill: colour("--band") }],
      cursor: { y: false, drag: { x: false, y: false } },
      legend: { markers: { show: false } },
    }),
    series: (data, size) => {
      const text = data.measure === "counts" ? count : share;
      return {
        ...size,
        scales: { x: { time: false, range: [-0.4, data.labels.length - 0.6] },
          y: { range: (_, low, high) => [0, 1.08 * high || 1] } },
        axes: [axis({ splits: () => data.labels.map((_, place) => place), size: 34, space: 60,
          values: (self, splits) => {
            const fit = Math.max(1, Math.floor(self.width / 90)), step = Math.ceil(splits.length / fit);
            return splits.map((place) => (place % step === 0 ? data.labels[place].slice(0, 12) : ""));
          } }), axis({ values: (_, splits) => splits.map(text), size: 66 })],
        series: [{ label: "release", value: (_, value) => (value == null ? "–" : data.labels[value]) },
          series("value", { stroke: colour("--line"), width: 2, value: (_, value) => text(value),
            points: { show: true, size: 6, fill: colour("--line") } }),
          series("from", { stroke: "transparent", value: (_, value) => text(value) }),
          series("to", { stroke: "transparent", value: (_, value) => text(value) })],
        bands: [{ series: [3, 2], fill: colour("--band") }],
        cursor: { y: false, drag: { x: false, y: false } },
        legend: { markers: { show: false } },
      };
    },
  };

  const plots = [];
  const plot = (holder) => {
    const data = block(holder.dataset.plot);
    const along = data.kind === "ranks" ? data.ranks : data.labels.map((_, place) => place);
    const own = { holder, drawn: null };
    const size = () => {
      const legend = 26, box = holder.getBoundingClientRect();
      return { width: Math.max(Math.floor(box.width), 200), height: Math.max(Math.floor(box.height) - legend, 100) };
    };
    // Without a pointer, the legend tells the first rank, or the last release. uPlot draws a little later.
    const rest = () => setTimeout(() => own.drawn.setLegend({ idx: data.kind === "ranks" ? 0 : along.length - 1 }));
    own.draw = () => {
      own.drawn?.destroy();
      own.drawn = new uPlot(options[data.kind](data, size()), [along, ...data.values], holder);
      own.drawn.over.addEventListener("mouseleave", rest);
      rest();
    };
    own.fit = () => {
      own.drawn.setSize(size());
      rest();
    };
    own.draw();
    new ResizeObserver(() => own.fit()).observe(holder);
    plots.push(own);
  };

  for (const section of document.querySelectorAll("[data-list]")) list(section);
  for (const holder of document.querySelectorAll("[data-plot]")) plot(holder);
  const again = () => plots.forEach((own) => own.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  const closed = [];
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.paper = "yes"; /* colours for paper: rules for print do not hold yet */
    for (const one of document.querySelectorAll("details:not([open])")) { closed.push(one); one.open = true; }
    again();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.paper;
    for (const one of closed.splice(0)) one.open = false;
    again();
  });
})();
