"use strict";
const content = JSON.parse(document.getElementById("content").textContent);
const items = content.items;
const byId = new Map(items.map(item => [item.id, item]));
const stored = "gristmill-review-" + content.sample;
const here = name => document.getElementById(name);

let decisions = new Map(); // id → {decision, time}
let chosen = items;        // what the filter lets through
let place = 0;
let keepsDecisions = true;
let unsaved = false;

function load() {
  try {
    const saved = JSON.parse(localStorage.getItem(stored) || "{}");
    decisions = new Map(Object.entries(saved.decisions || {}).filter(([id]) => byId.has(id)));
    here("reviewer").value = saved.reviewer || "";
    if (saved.blind === false) here("blind").checked = false;
    if (byId.has(saved.at)) place = Math.max(0, items.indexOf(byId.get(saved.at)));
  } catch (error) { cannotKeep(); }
}

function save() {
  try {
    localStorage.setItem(stored, JSON.stringify({
      decisions: Object.fromEntries(decisions), reviewer: here("reviewer").value,
      blind: here("blind").checked, at: chosen[place] && chosen[place].id,
    }));
  } catch (error) { cannotKeep(); }
}

function cannotKeep() {
  if (!keepsDecisions) return;
  keepsDecisions = false;
  tell("This browser does not let the page keep decisions: export them before you close it.");
}

function tell(message) {
  here("notice").textContent = message;
  here("notice").hidden = !message;
}

// What would deceive the eye is shown by its number: controls, marks that turn the direction of writing, and
// halves of characters (with the flag u, a surrogate matches only where it is alone).
const SIGNS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]/gu;

function fill(element, text) {
  const pieces = [];
  let from = 0;
  for (const found of text.matchAll(SIGNS)) {
    pieces.push(text.slice(from, found.index));
    const sign = made("span", "sign", "U+" + found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
    pieces.push(sign);
    from = found.index + found[0].length;
  }
  pieces.push(text.slice(from));
  element.replaceChildren(...pieces);
}

function made(tag, style, text) {
  const element = document.createElement(tag);
  if (style) element.className = style;
  if (text !== undefined) element.textContent = text;
  return element;
}

function isKept(item) { return item.rules.includes(content.kept); }

function filtered() {
  const wanted = here("filter").value;
  if (wanted === "") return items;
  if (wanted === "?") return items.filter(item => !decisions.has(item.id));
  if (wanted === "unsure") return items.filter(item => (decisions.get(item.id) || {}).decision === "unsure");
  return items.filter(item => item.rules.includes(wanted.slice(5)));
}

function show() {
  const item = chosen[place];
  const judged = items.filter(each => decisions.has(each.id)).length;
  here("done").value = judged;
  here("count").textContent = `${judged} of ${items.length} decided` + (item ? `, at ${place + 1} of ${chosen.length}` : "");
  here("nothing").hidden = Boolean(item);
  here("shown").hidden = !item;
  const decision = item && decisions.get(item.id) ? decisions.get(item.id).decision : null;
  for (const button of document.querySelectorAll(".decision")) {
    button.setAttribute("aria-pressed", String(button.dataset.decision === decision));
    button.disabled = !item;
  }
  here("previous").disabled = place <= 0;
  here("next").disabled = place >= chosen.length - 1;
  if (!item) return;
  const facts = [item.source, item.origin, item.language || "und", item.kind, item.characters.toLocaleString("en") + " characters"];
  fill(here("facts"), facts.join(" · ") + " · ");
  here("facts").append(made("code", "", item.id));
  here("text").classList.toggle("code", item.kind === "code");
  if (item.text.trim()) fill(here("text"), item.text); else here("text").replaceChildren(made("span", "empty", "(no text)"));
  const hidden = here("blind").checked && !decision;
  here("why").hidden = hidden;
  if (!hidden) showWhy(item);
  showBeside(item);
  showEdits(item, hidden);
}

function showWhy(item) {
  const list = made("ul", "findings");
  for (const finding of item.findings) {
    const name = finding.stage + "/" + finding.rule;
    const line = made("li", item.rules.includes(name) ? "drawn" : "");
    line.append(made("code", "", name));
    const number = value => Number(value.toPrecision(6)).toString();
    const said = [];
    if (finding.value !== null) said.push("measured " + number(finding.value));
    if (finding.threshold !== null) said.push("threshold " + number(finding.threshold));
    if (finding.detail) said.push(finding.detail);
    line.append(" " + said.join(", "));
    list.append(line);
  }
  const outcome = isKept(item) ? made("p", "outcome kept", "It is kept.") : made("p", "outcome removed", "It was removed.");
  here("why").replaceChildren(outcome, list);
}

function showBeside(item) {
  const other = item.kept_instead;
  here("beside").hidden = !other;
  here("texts").classList.toggle("two", Boolean(other));
  if (!other) return;
  fill(here("beside-facts"), [other.source, other.origin].join(" · "));
  fill(here("beside-text"), other.text);
}

function showEdits(item, hidden) {
  here("edits").hidden = hidden || !item.edits.length;
  if (here("edits").hidden) return;
  const more = item.edits_found > item.edits.length ? `, the first ${item.edits.length} of ${item.edits_found}` : "";
  const rows = item.edits.map(edit => {
    const row = made("div", "edit");
    for (const side of ["before", "after"]) {
      const cell = made("div", "text " + side);
      cell.dir = "auto";
      if (edit[side]) fill(cell, edit[side]); else cell.append(made("span", "empty", side === "after" ? "(taken out)" : "(nothing)"));
      row.append(cell);
    }
    return row;
  });
  here("edits").replaceChildren(made("h2", "", "What was changed: before and after" + more), ...rows);
}

function go(step) {
  const next = place + step;
  if (next < 0 || next >= chosen.length) return;
  place = next;
  scrollTo(0, 0);
  save();
  show();
}

function decide(decision) {
  const item = chosen[place];
  if (!item) return;
  decisions.set(item.id, {decision, time: new Date().toISOString()});
  unsaved = true;
  if (here("filter").value === "?") {
    chosen = filtered();
    place = Math.min(place, Math.max(0, chosen.length - 1));
    scrollTo(0, 0);
  } else if (place < chosen.length - 1) {
    place += 1;
    scrollTo(0, 0);
  }
  save();
  show();
}

// A decision speaks of the document; a verdict, of what the rule did with it.
function verdict(rule, decision) {
  if (decision === "unsure") return "unsure";
  return (decision === "keep") === (rule === content.kept) ? "right" : "wrong";
}

function decisionOf(rule, given) {
  if (given === "unsure") return "unsure";
  return (given === "right") === (rule === content.kept) ? "keep" : "remove";
}

function exported() {
  const reviewer = here("reviewer").value.trim() || null;
  const lines = [];
  for (const item of items) {
    const made = decisions.get(item.id);
    if (!made) continue;
    for (const rule of item.rules) {
      lines.push(JSON.stringify({id: item.id, rule, verdict: verdict(rule, made.decision), reviewer, time: made.time}));
    }
  }
  return lines.join("\n") + (lines.length ? "\n" : "");
}

function download() {
  if (!decisions.size) { tell("Nothing is decided yet."); return; }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([exported()], {type: "application/jsonl"}));
  link.download = "verdicts.jsonl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  unsaved = false;
  tell("");
}

function take(text) {
  let taken = 0, foreign = 0, broken = 0;
  for (const line of text.split(/\r?\n/)) {
    if (!line.trim()) continue;
    let given;
    try { given = JSON.parse(line); } catch (error) { broken += 1; continue; }
    if (!given || !["right", "wrong", "unsure"].includes(given.verdict)) { broken += 1; continue; }
    const item = byId.get(given.id);
    if (!item || !item.rules.includes(given.rule)) { foreign += 1; continue; }
    const before = decisions.get(item.id);
    if (before && given.time && before.time > given.time) continue;
    decisions.set(item.id, {decision: decisionOf(given.rule, given.verdict), time: given.time || new Date().toISOString()});
    taken += 1;
  }
  tell(`${taken} verdicts taken` + (foreign ? `, ${foreign} are of other documents` : "") + (broken ? `, ${broken} lines are no verdicts` : "") + ".");
  refilter();
}

function refilter() {
  const item = chosen[place];
  chosen = filtered();
  place = Math.max(0, chosen.indexOf(item));
  save();
  show();
}

for (const rule of [...content.rules, content.kept]) {
  const option = made("option", "", rule === content.kept ? "kept documents" : rule);
  option.value = "rule:" + rule;
  here("filter").append(option);
}
for (const button of document.querySelectorAll(".decision")) button.addEventListener("click", () => decide(button.dataset.decision));
here("previous").addEventListener("click", () => go(-1));
here("next").addEventListener("click", () => go(1));
here("filter").addEventListener("change", () => { here("filter").blur(); refilter(); });
here("blind").addEventListener("change", () => { save(); show(); });
here("reviewer").addEventListener("change", save);
here("export").addEventListener("click", download);
here("import").addEventListener("click", () => here("file").click());
here("file").addEventListener("change", async () => {
  const [file] = here("file").files;
  if (file) take(await file.text());
  here("file").value = "";
});
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, input:not([type=checkbox])")) return;
  const act = {
    y: () => decide("keep"), n: () => decide("remove"), u: () => decide("unsure"),
    j: () => go(1), ArrowRight: () => go(1), k: () => go(-1), ArrowLeft: () => go(-1),
  }[event.key];
  if (act) { event.preventDefault(); act(); }
});
addEventListener("beforeunload", event => { if (unsaved && !keepsDecisions) event.preventDefault(); });
load();
chosen = filtered();
show();
