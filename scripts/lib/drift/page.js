// Compares two chosen prompts side by side. Their texts are in the page's <pre> elements; they go from text to text only
// (textContent), so nothing in a prompt can become markup. `Diff` is the library above.
(() => {
  /** Unchanged lines shown around a change, and the most lines that may differ. */
  const AROUND = 3;
  const MOST = 10_000;
  /** Lines longer than this are not compared word by word. */
  const LONG = 4_000;

  const form = document.getElementById("compare");
  if (form === null) return;
  const [left, right, said, place] = ["left", "right", "said", "diff"].map((id) => document.getElementById(id));
  const texts = new Map();
  for (const pre of document.querySelectorAll("pre[data-prompt]")) texts.set(pre.dataset.prompt, pre.textContent);

  form.hidden = false;
  const options = right.options.length;
  left.selectedIndex = options - 2;
  right.selectedIndex = options - 1;
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();

  function show() {
    const [before, after] = [texts.get(left.value), texts.get(right.value)];
    const changes = Diff.diffLines(before, after, { maxEditLength: MOST });
    if (changes === undefined) {
      said.textContent = "too much differs to be shown side by side";
      place.replaceChildren();
      return;
    }
    const count = (kind) => changes.reduce((sum, change) => sum + (change[kind] ? change.count : 0), 0);
    said.textContent = before === after ? "identical" : `${count("added")} lines added, ${count("removed")} removed`;
    place.replaceChildren(rows(changes));
  }

  function rows(changes) {
    const table = document.createElement("table");
    const columns = table.appendChild(document.createElement("colgroup"));
    for (const name of ["number", "", "number", ""]) columns.appendChild(document.createElement("col")).className = name;
    const body = table.appendChild(document.createElement("tbody"));
    let [one, other] = [1, 1];
    for (let at = 0; at < changes.length; at++) {
      const change = changes[at];
      if (!change.added && !change.removed) {
        const lines = split(change);
        same(body, lines, one, other, at === 0, at === changes.length - 1);
        one += lines.length;
        other += lines.length;
        continue;
      }
      const next = changes[at + 1];
      const pair = next !== undefined && (next.added || next.removed) && next.added !== change.added;
      const removed = split(change.removed ? change : pair ? next : null);
      const added = split(change.added ? change : pair ? next : null);
      if (pair) at += 1;
      for (let line = 0; line < Math.max(removed.length, added.length); line++) {
        const [a, b] = [removed[line], added[line]];
        const words = a !== undefined && b !== undefined && a.length < LONG && b.length < LONG ? Diff.diffWordsWithSpace(a, b) : null;
        const row = body.appendChild(document.createElement("tr"));
        cell(row, a === undefined ? "" : one++, "number");
        side(row, a, words, "removed");
        cell(row, b === undefined ? "" : other++, "number");
        side(row, b, words, "added");
      }
    }
    return table;
  }

  /** Unchanged lines: those near a change, and a button for the others. */
  function same(body, lines, one, other, first, last) {
    const [head, tail] = [first ? 0 : AROUND, last ? 0 : AROUND];
    const line = (index) => {
      const row = document.createElement("tr");
      cell(row, one + index, "number");
      cell(row, lines[index], "");
      cell(row, other + index, "number");
      cell(row, lines[index], "");
      return row;
    };
    const all = lines.map((_, index) => index);
    if (lines.length <= head + tail + 1) return body.append(...all.map(line));
    body.append(...all.slice(0, head).map(line));
    const row = body.appendChild(document.createElement("tr"));
    const skipped = cell(row, "", "skipped");
    skipped.colSpan = 4;
    const button = skipped.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = `${lines.length - head - tail} unchanged lines`;
    button.addEventListener("click", () => row.replaceWith(...all.slice(head, lines.length - tail).map(line)));
    body.append(...all.slice(lines.length - tail).map(line));
  }

  function side(row, text, words, kind) {
    const made = cell(row, "", text === undefined ? "" : kind);
    if (text === undefined) return;
    if (words === null) {
      made.textContent = text;
      return;
    }
    for (const word of words) {
      if (!word[kind] && (word.added || word.removed)) continue;
      if (!word[kind]) made.append(word.value);
      else made.appendChild(document.createElement("mark")).textContent = word.value;
    }
  }

  function cell(row, text, name) {
    const made = row.appendChild(document.createElement("td"));
    made.textContent = text;
    if (name !== "") made.className = name;
    return made;
  }

  function split(change) {
    if (change === null) return [];
    const lines = change.value.split("\n");
    if (lines.at(-1) === "") lines.pop();
    return lines;
  }
})();
