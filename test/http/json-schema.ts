/** Checks a value against the part of JSON Schema 2020-12 that our OpenAPI description uses; anything else throws. */

export type Schema = Record<string, unknown>;

/** Keywords that say nothing about a value, or that are looked at together with another one. */
const SILENT = new Set(["description", "default", "title", "format", "example", "examples", "$schema"]);

const TYPES: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
};

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What is wrong with `value`, as `path: fault`; empty when nothing is. A field the schema does not name is a fault. */
export function faults(document: Schema, schema: Schema, value: unknown, path = "$"): string[] {
  return Object.entries(schema).flatMap(([keyword, rule]): string[] => {
    if (SILENT.has(keyword)) return [];
    switch (keyword) {
      case "$ref":
        return faults(document, resolve(document, String(rule)), value, path);
      case "type": {
        const names = [rule].flat().map(String);
        return names.some((name) => TYPES[name]!(value)) ? [] : [`${path}: not ${names.join(" or ")}`];
      }
      case "enum":
        return (rule as unknown[]).includes(value) ? [] : [`${path}: ${JSON.stringify(value)} is not listed`];
      case "const":
        return rule === value ? [] : [`${path}: is not ${JSON.stringify(rule)}`];
      case "anyOf":
      case "oneOf": {
        const branches = (rule as Schema[]).map((branch) => faults(document, branch, value, path));
        return branches.some((found) => found.length === 0) ? [] : [`${path}: fits no branch`, ...branches.flat()];
      }
      case "allOf":
        return (rule as Schema[]).flatMap((branch) => faults(document, branch, value, path));
      case "required":
        return (rule as string[]).flatMap((name) =>
          !isObject(value) || Object.hasOwn(value, name) ? [] : [`${path}.${name}: missing`],
        );
      case "properties":
        return isObject(value) ? propertyFaults(document, schema, value, path) : [];
      case "items":
        return Array.isArray(value)
          ? value.flatMap((item, index) => faults(document, rule as Schema, item, `${path}[${index}]`))
          : [];
      case "additionalProperties":
        return []; // with `properties`
      case "minimum":
        return typeof value !== "number" || value >= Number(rule) ? [] : [`${path}: under ${rule}`];
      case "maximum":
        return typeof value !== "number" || value <= Number(rule) ? [] : [`${path}: over ${rule}`];
      case "minLength":
        return typeof value !== "string" || value.length >= Number(rule) ? [] : [`${path}: too short`];
      case "maxLength":
        return typeof value !== "string" || value.length <= Number(rule) ? [] : [`${path}: too long`];
      case "maxItems":
        return !Array.isArray(value) || value.length <= Number(rule) ? [] : [`${path}: too many`];
      case "pattern":
        return typeof value !== "string" || new RegExp(String(rule), "u").test(value) ? [] : [`${path}: not ${rule}`];
      default:
        throw new Error(`${path}: the test does not know the keyword ${keyword}`);
    }
  });
}

function propertyFaults(document: Schema, schema: Schema, value: Record<string, unknown>, path: string): string[] {
  const properties = schema.properties as Record<string, Schema>;
  const more = schema.additionalProperties;
  return Object.entries(value).flatMap(([name, item]) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property !== undefined) return faults(document, property, item, `${path}.${name}`);
    if (more === undefined || more === false) return [`${path}.${name}: not described`];
    return more === true ? [] : faults(document, more as Schema, item, `${path}.${name}`);
  });
}

/** What a `#/…` reference points at; throws when it points at nothing. */
export function resolve(document: Schema, ref: string): Schema {
  if (!ref.startsWith("#/")) throw new Error(`${ref} is outside the document`);
  let at: unknown = document;
  for (const part of ref.slice(2).split("/")) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(at) || !Object.hasOwn(at, name)) throw new Error(`${ref} points at nothing`);
    at = at[name];
  }
  return at as Schema;
}

/** Every `$ref` of a document, however deep. */
export function references(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) =>
    key === "$ref" && typeof item === "string" ? [item] : references(item),
  );
}
