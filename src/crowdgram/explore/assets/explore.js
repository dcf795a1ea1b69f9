"use strict";
/* The page's behaviour. Everything that is shown is set as text, never as markup. */
(() => {
  const find = (selector, inside = document) => inside.querySelector(selector);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const make = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
  if (location.search) history.replaceState(null, "", location.pathname); /* the token is spent */
  /* The key came with the token. Storage is this port's own, as a cookie is not; it lasts for a page that is loaded again. */
  let key = find("meta[name=crowdgram-key]")?.content ?? "";
  find("meta[name=crowdgram-key]")?.remove();
  try { if (key) localStorage.setItem("key", key); else key = localStorage.getItem("key") ?? ""; } catch { /* then until it is loaded again */ }

  const ask = async (path, form) => {
    let answer;
    try {
      answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json", "X-Crowdgram-Key": key }, body: JSON.stringify(form) });
    } catch {
      throw { error: "The page's server does not answer. It may have been ended; start crowdgram explore again." };
    }
    const text = await answer.text();
    let said;
    try { said = JSON.parse(text); } catch { said = { error: text }; }
    if (!answer.ok) throw said;
    return said;
  };
  const say = (place, kind, sentences) => {
    place.className = kind;
    place.replaceChildren(...sentences.map((one) => make("span", one)));
  };

  /* 1. The plan. Sliders are powers of ten. */
  const crowd = find("#crowd"), sliders = ["users", "rows_per_user", "items", "epsilon"];
  const rounded = (value, digits) => Number(value.toPrecision(digits));
  const value = (name, place = Number(crowd.elements[name].value)) => {
    const raw = 10 ** place;
    if (name === "epsilon") return rounded(raw, 2);
    return name === "rows_per_user" && raw < 10 ? rounded(raw, 2) : Math.max(name === "items" ? 2 : 1, Math.round(rounded(raw, 2)));
  };
  const chosen = () => ({
    ...Object.fromEntries(sliders.map((name) => [name, value(name)])),
    ...Object.fromEntries(["delta", "weight", "tails", "tastes"].map((name) => [name, crowd.elements[name].value])),
  });
  const GRID = { epsilon: [-1.3, -0.8, -0.4, 0, 0.5, 1], users: [2, 3, 4, 5, 6, 7], rows_per_user: [0, 0.7, 1.3, 2, 3] };
  const NAMES = { epsilon: "epsilon", users: "users", rows_per_user: "rows per user" };
  const known = new Map();
  const estimate = async (form) => {
    const key = JSON.stringify(form);
    if (!known.has(key)) known.set(key, await ask("/estimate", form));
    return known.get(key);
  };
  const along = () => find("input[name=along]:checked").value;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let drawn = null;
  const draw = () => {
    const axis = along(), own = chosen(), holder = find("#curve");
    const xs = [...new Set([...GRID[axis].map((place) => value(axis, place)), own[axis]])].sort((a, b) => a - b);
    const points = xs.map((x) => known.get(JSON.stringify({ ...own, [axis]: x })));
    const half = (name) => points.map((one) => (one ? Math.max(50 * one[name], 1e-6) : null));
    const mine = xs.map((x, place) => (x === own[axis] && points[place] ? 50 * points[place].l1_error : null));
    const seen = [...half("l1_error"), ...half("population_error")].filter((one) => one != null);
    drawn?.destroy();
    drawn = null;
    holder.dataset.points = String(points.filter(Boolean).length);
    if (!seen.length) return;
    const box = holder.getBoundingClientRect(), stroke = colour("--quiet");
    const tick = (one) => (one == null ? "" : Number(one.toPrecision(2)).toLocaleString("en"));
    const style = { stroke, grid: { stroke: colour("--rule"), width: 1 }, ticks: { stroke: colour("--rule") }, font: "12px system-ui", labelFont: "12px system-ui" };
    const ends = [10 ** Math.floor(Math.log10(Math.min(...seen))), 10 ** Math.ceil(Math.log10(Math.max(...seen)))];
    drawn = new uPlot({
      width: Math.max(Math.floor(box.width), 200), height: Math.floor(box.height), legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, distr: 3, range: [xs[0], xs[xs.length - 1]] }, y: { distr: 3, range: ends } },
      axes: [{ ...style, label: NAMES[axis], labelSize: 20, values: (_, splits) => splits.map(tick) },
        { ...style, size: 62, values: (_, splits) => splits.map((one) => (one == null ? "" : `${tick(one)}%`)) }],
      series: [{}, { stroke: colour("--line"), width: 2, spanGaps: true, points: { show: false } },
        { stroke: colour("--second"), width: 2, dash: [6, 5], spanGaps: true, points: { show: false } },
        { stroke: "transparent", points: { show: true, size: 11, fill: colour("--line"), stroke: colour("--line") } }],
    }, [xs, half("l1_error"), half("population_error"), mine], holder);
  };
  let turn = 0;
  const plan = async () => {
    const now = ++turn, own = chosen(), axis = along(), answer = find("#plan-answer");
    for (const name of sliders) find(`#out-${name}`).value = own[name].toLocaleString("en");
    for (const name of sliders) crowd.elements[name].setAttribute("aria-valuetext", own[name].toLocaleString("en"));
    answer.classList.add("waiting");
    draw();
    await new Promise((done) => setTimeout(done, 180));
    if (now !== turn) return;
    try {
      const found = await estimate(own);
      if (now !== turn) return;
      answer.textContent = found.sentences[0];
      answer.classList.remove("waiting", "error");
      find("#plan-more").textContent = found.sentences.slice(1).join(" ");
      find("#plan-settings").textContent = found.settings;
      draw();
      const others = GRID[axis].map((place) => value(axis, place)).sort((a, b) => Math.abs(Math.log(a / own[axis])) - Math.abs(Math.log(b / own[axis])));
      for (const x of others) {
        await estimate({ ...own, [axis]: x });
        if (now !== turn) return;
        draw();
      }
      find("#curve").dataset.whole = JSON.stringify(own);
    } catch (said) {
      if (now !== turn) return;
      say(answer, "answer error", [said.error]);
    }
  };
  const touched = new Set(); /* what was changed in the form of part 2 no longer follows the plan */
  const follow = () => {
    for (const name of ["epsilon", "delta", "weight"]) {
      if (!touched.has(name)) find(`#job [name=${name}]`).value = chosen()[name];
    }
    find("#job").dispatchEvent(new Event("input"));
  };
  crowd.addEventListener("input", () => { follow(); plan(); });
  crowd.addEventListener("submit", (event) => event.preventDefault());
  for (const one of all("input[name=along]")) one.addEventListener("change", plan);
  new ResizeObserver(() => draw()).observe(find("#curve"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  plan();

  /* 2. The job. */
  const job = find("#job"), said = find("#job-said");
  const form = () => {
    const crowded = chosen();
    return { users: crowded.users, rows_per_user: crowded.rows_per_user, items: crowded.items, tails: crowded.tails,
      tastes: crowded.tastes, ...Object.fromEntries(new FormData(job)) };
  };
  let again = null; /* for a release that was made before: set by its refusal, until the form changes */
  const FIELDS = { domain: ["domain_list", "domain_file"], groups: ["groups_list", "groups_file"] };
  const mark = (field) => {
    for (const one of all("[aria-invalid]", job)) one.removeAttribute("aria-invalid");
    for (const name of FIELDS[field] ?? [field]) {
      const one = job.elements[name];
      if (one instanceof HTMLElement && !one.closest("[hidden]")) { one.setAttribute("aria-invalid", "true"); one.focus(); }
    }
  };
  const busy = async (button, place, text, work) => {
    mark(null);
    button.disabled = true;
    say(place, "quiet", [text]);
    try { await work(); } catch (problem) {
      say(place, "error", [problem.error ?? String(problem)]);
      mark(problem.field);
    } finally { button.disabled = false; }
  };
  const shown = () => {
    for (const name of ["domain", "groups"]) {
      const kind = find(`input[name=${name}_kind]:checked`).value;
      for (const one of all("[data-for]", find(`#${name}-set`))) one.hidden = one.dataset.for !== kind;
    }
    const filled = (name) => Boolean(job.elements[name].value.trim());
    const offer = (set, on) => { set.hidden = !on; for (const one of all("input, textarea", set)) one.disabled = !on; };
    offer(find("#domain-set"), !filled("item_bins")); /* intervals are the list */
    offer(find("#by-bins-set"), filled("by"));
    offer(find("#groups-set"), filled("by") && !filled("by_bins"));
    offer(find("#period-set"), filled("ledger"));
    find("#hint-period").hidden = !filled("ledger");
    find("#go").textContent = `Release, for epsilon ${job.elements.epsilon.value || "…"}`;
  };
  job.addEventListener("input", (event) => { if (event.target.name) touched.add(event.target.name); again = null; shown(); find("#copies").hidden = true; });
  shown();
  find("#open").addEventListener("click", (event) => busy(event.target, find("#columns-said"), "Opening …", async () => {
    find("#schema").hidden = true;
    const { columns } = await ask("/columns", form());
    find("#columns").replaceChildren(...(columns ?? []).map(([name]) => make("option", "", { value: name })));
    find("#schema tbody").replaceChildren(...(columns ?? []).map((cells) => {
      const line = make("tr");
      line.append(...cells.map((cell) => make("td", cell)));
      return line;
    }));
    find("#schema").hidden = !columns;
    say(find("#columns-said"), "good", [columns ? "These are its columns. No row was read." : "A text file has no schema, and its first line may be a row. Type the names of its columns; checking says if they are there."]);
  }));
  find("#check").addEventListener("click", (event) => busy(event.target, said, "Checking …", async () => {
    const found = await ask("/check", form());
    say(said, "good", [...found.sentences, ...(found.settings ? [found.settings] : [])]);
  }));
  const copies = async () => {
    const found = await ask("/copies", form());
    find("#command").textContent = found.command;
    find("#python").textContent = found.python;
    find("#lists").replaceChildren(...Object.entries(found.lists).flatMap(([name, text]) => {
      const link = make("a", `Download ${name}`, { href: URL.createObjectURL(new Blob([text], { type: "text/plain" })), download: name });
      return [link, make("span", ", the list that you pasted, which the command reads. ")];
    }));
    find("#copies").hidden = false;
  };
  find("#copy-open").addEventListener("click", (event) => busy(event.target, said, "", async () => { await copies(); say(said, "", []); find("#copies").scrollIntoView({ block: "nearest" }); }));
  for (const button of all("[data-copy]")) {
    button.addEventListener("click", async () => {
      const text = find(`#${button.dataset.copy}`);
      try { await navigator.clipboard.writeText(text.textContent); button.textContent = "Copied"; } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected: press Ctrl-C";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2500);
    });
  }

  /* 3. The result. */
  const there = new Set();
  const show = ({ place, at, report, warnings }, spent) => {
    if (there.has(place)) return;
    there.add(place);
    const one = make("div", "", { className: "one" }), tools = make("div", "", { className: "tools" });
    if (report) {
      tools.append(make("a", "Open the report by itself", { href: at, target: "_blank", rel: "noopener" }),
        make("a", "Download the report (HTML)", { href: `${at}/report.html`, download: `report-${place}.html` }));
    }
    tools.append(make("a", "Download the release (JSON)", { href: `${at}/release.json`, download: `release-${place}.json` }));
    one.append(make("h3", `Release ${place}`), ...warnings.map((text) => make("p", text, { className: "warning" })), tools);
    if (report) {
      const frame = make("iframe", "", { title: `Report of release ${place}` });
      frame.setAttribute("sandbox", "allow-scripts allow-downloads");
      frame.src = at;
      one.append(frame);
    }
    if (spent) one.append(make("p", spent, { className: "quiet" }));
    one.append(make("p", "Download what you want to keep: it is kept here only until the command ends.", { className: "quiet" }));
    find("#results").prepend(one);
    find("#result-none").hidden = true;
  };
  const watching = (place) => setInterval(async () => {
    try {
      const { stage } = await ask("/made", {});
      if (stage) say(place, "quiet", [`Releasing: ${stage} …`]);
    } catch { /* the release itself will say */ }
  }, 700);
  job.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(find("#go"), said, "Releasing …", async () => {
      turn++; /* a curve that is still being drawn would only take turns */
      const asked = again === null ? form() : { ...form(), again }, watch = watching(said);
      again = null;
      try {
        const made = await ask("/release", asked);
        say(said, "good", ["The release is made."]);
        show(made, made.spent);
        find("#result").scrollIntoView();
        await copies();
      } catch (problem) {
        again = problem.again ?? null;
        throw problem;
      } finally { clearInterval(watch); }
    });
  });
  /* A page that is loaded again has what was made before, and waits for what is being made. */
  (async () => {
    let watch = null;
    try {
      for (;;) {
        const { made, spent, running } = await ask("/made", {});
        for (const one of made) show(one, one.place === made.length ? spent : "");
        if (!running) break;
        find("#go").disabled = true;
        if (watch === null) watch = watching(said);
        await new Promise((done) => setTimeout(done, 1000));
      }
      if (watch !== null) say(said, "quiet", ["The release that was under way has ended. If it is not below, it failed."]);
    } catch (problem) { say(said, "error", [problem.error ?? String(problem)]); } finally {
      if (watch !== null) { clearInterval(watch); find("#go").disabled = false; }
    }
  })();
})();
