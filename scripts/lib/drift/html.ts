/** HTML in which whatever is put in is text, unless it is HTML of ours. */

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Part = Html | string | number | null | readonly Part[];

/** A template: values are escaped, pieces of HTML and lists of them are put in as they are, `null` is nothing. */
export function html(strings: TemplateStringsArray, ...values: Part[]): Html {
  return new Html(strings.map((text, index) => text + (index < values.length ? markup(values[index]!) : "")).join(""));
}

function markup(part: Part): string {
  if (part === null) return "";
  if (part instanceof Html) return part.text;
  return typeof part === "object" ? part.map(markup).join("") : escapeHtml(String(part));
}

/** Text that reads the same in an element and in a quoted attribute. A carriage return would become a line feed. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"'\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}
