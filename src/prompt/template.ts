/**
 * `{{name}}` in prompt files. Values are put in by function, never through a replacement string (`$&`), and a value is
 * never expanded again. Text from callers is not a template at all.
 */

/** The names prompt files may use. */
export const TEMPLATE_NAMES = [
  "agent.name",
  "agent.description",
  "identity.name",
  "identity.id",
  "project.name",
] as const;

export type TemplateName = (typeof TEMPLATE_NAMES)[number];
export type TemplateValues = Readonly<Record<TemplateName, string>>;

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;

/** Replaces every placeholder. Unknown names stay as they are: `unknownNames` is what refuses them, at build time. */
export function expand(template: string, values: TemplateValues): string {
  return template.replace(PLACEHOLDER, (whole: string, inner: string) => {
    const name = inner.trim();
    return isTemplateName(name) ? values[name] : whole;
  });
}

/** Placeholders that no template may contain, with their 1-based line. */
export function unknownNames(template: string): { name: string; line: number }[] {
  return placeholders(template).filter(({ name }) => !isTemplateName(name));
}

/**
 * All placeholders of a template, in order, with the 1-based line they begin on. Searched in the whole text, as
 * `expand` does: a line at a time would not see one that is broken over two lines.
 */
export function placeholders(template: string): { name: string; line: number }[] {
  let line = 1;
  let counted = 0;
  return [...template.matchAll(PLACEHOLDER)].map((match) => {
    line += template.slice(counted, match.index).split("\n").length - 1;
    counted = match.index;
    return { name: (match[1] ?? "").trim(), line };
  });
}

/** Whether a template mentions a name (`{{identity.id}}` makes one contract a session, which the build points out). */
export function uses(template: string, name: TemplateName): boolean {
  return placeholders(template).some((placeholder) => placeholder.name === name);
}

function isTemplateName(name: string): name is TemplateName {
  return (TEMPLATE_NAMES as readonly string[]).includes(name);
}
