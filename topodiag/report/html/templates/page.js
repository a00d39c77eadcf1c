"use strict";
(() => {
  // Everything here works on what the page already holds: a page saved after this ran opens and works again.
  const all = (query, from = document) => [...from.querySelectorAll(query)];
  const one = (query) => document.querySelector(query);
  const root = document.documentElement;
  const box = one("#q");
  const kinds = all('input[name="f"]');
  const rows = all("[data-row]");
  let order = "";

  // State lives in the fragment: #f=error,warning&q=gpu07&s=runs.3.down
  const read = () => {
    const hash = location.hash.slice(1);
    return new URLSearchParams(hash.includes("=") ? hash : "");
  };
  const write = () => {
    const state = new URLSearchParams();
    const on = kinds.filter((each) => each.checked).map((each) => each.value);
    if (on.length < kinds.length) state.set("f", on.join(","));
    if (box && box.value) state.set("q", box.value);
    if (order) state.set("s", order);
    const text = state.toString();
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  };

  const words = new WeakMap();
  const textOf = (row) => {
    if (!words.has(row)) words.set(row, row.textContent.toLowerCase());
    return words.get(row);
  };
  const filter = () => {
    const wanted = box ? box.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    const off = new Set(kinds.filter((each) => !each.checked).map((each) => each.value));
    let shown = 0;
    let total = 0;
    for (const row of rows) {
      const fits = !off.has(row.dataset.sev) && wanted.every((word) => textOf(row).includes(word));
      if (row.hidden === fits) row.hidden = !fits;
      if (row.dataset.sev) {
        total += 1;
        shown += fits;
      }
    }
    const out = one("#shown");
    if (out) out.textContent = shown < total ? shown + " of " + total + " findings" : "";
  };

  const sort = (table, column, down) => {
    const heads = all("thead th", table);
    const body = table.tBodies[0];
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
    };
    const compare = (a, b) => typeof a === "number" && typeof b === "number"
      ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    const sorted = [...body.rows].map((row) => [key(row), row]);
    sorted.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
    body.append(...sorted.map((pair) => pair[1]));
    heads.forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    order = table.dataset.table + "." + column + (down ? ".down" : ".up");
  };

  const copy = async (button) => {
    const text = button.previousElementSibling.textContent;
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.previousElementSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      done = document.execCommand("copy");
    }
    const label = button.textContent;
    if (!done || label === "Copied") return;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1200);
  };

  const save = async () => {
    const held = one("#data");
    let blob = new Blob([held.textContent], { type: "application/json" });
    if ("packed" in held.dataset) {
      const bytes = Uint8Array.from(atob(held.textContent), (char) => char.charCodeAt(0));
      const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      blob = new Blob([await new Response(plain).arrayBuffer()], { type: "application/json" });
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = held.dataset.name;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  const findings = () => all("details.finding");
  const label = () => {
    const button = one("#expand");
    if (button) button.textContent = findings().every((each) => each.open) ? "Close all" : "Open all";
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) {
      if (button.matches(".copy")) copy(button);
      if (button.matches(".sort")) {
        const head = button.closest("th");
        sort(head.closest("table"), head.cellIndex, head.getAttribute("aria-sort") === "ascending");
        write();
      }
      if (button.id === "reset") {
        box.value = "";
        kinds.forEach((each) => { each.checked = true; });
        filter();
        write();
      }
      if (button.id === "expand") {
        const open = button.textContent === "Open all";
        findings().forEach((each) => { each.open = open; });
        label();
      }
      if (button.id === "save") save();
    }
    if (event.target.closest(".menu a")) event.target.closest(".menu").open = false;
  });
  document.addEventListener("input", (event) => {
    if (event.target === box || event.target.name === "f") {
      filter();
      write();
    }
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches(".finding")) label();
  }, true);

  // A link to something folded away opens what holds it.
  const reveal = () => {
    const hash = location.hash.slice(1);
    if (!hash || hash.includes("=")) return;
    const target = document.getElementById(decodeURIComponent(hash));
    for (let each = target; each; each = each.parentElement) if (each.matches("details")) each.open = true;
    if (target) target.scrollIntoView();
  };
  const apply = () => {
    const state = read();
    const on = state.get("f");
    kinds.forEach((each) => { each.checked = on === null || on.split(",").includes(each.value); });
    if (box) box.value = state.get("q") || "";
    const [name, column, way] = (state.get("s") || "").split(".");
    const table = name && all("[data-table]").find((each) => each.dataset.table === name);
    if (table && table.rows[0].cells[Number(column)]) sort(table, Number(column), way === "down");
    filter();
  };
  addEventListener("hashchange", () => {
    if (location.hash.includes("=")) apply();
    reveal();
  });

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    folded.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => {
    folded.forEach((each) => { each.open = false; });
  });

  all("button[hidden], .tools[hidden]").forEach((each) => { each.hidden = false; });
  all("button:disabled").forEach((each) => { each.disabled = false; });
  root.dataset.ready = "";
  apply();
  label();
  reveal();
})();
