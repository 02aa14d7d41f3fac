/**
 * `{{name}}` in prompt files. Values are put in by function, never through a replacement string (`$&`), and a value is
 * never expanded again. Text from callers is not a template at all.
 */

/** The names prompt files may use. */
export const TEMPLATE_NAMES = ["agent.name", "agent.description", "identity.name", "identity.id", "project.name"] as const;

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
  const found: { name: string; line: number }[] = [];
  for (const [index, line] of template.split("\n").entries()) {
    for (const match of line.matchAll(PLACEHOLDER)) {
      const name = (match[1] ?? "").trim();
      if (!isTemplateName(name)) found.push({ name, line: index + 1 });
    }
  }
  return found;
}

/** Whether a template mentions a name (`{{identity.id}}` makes one contract a session, which the build points out). */
export function uses(template: string, name: TemplateName): boolean {
  return [...template.matchAll(PLACEHOLDER)].some((match) => (match[1] ?? "").trim() === name);
}

function isTemplateName(name: string): name is TemplateName {
  return (TEMPLATE_NAMES as readonly string[]).includes(name);
}
