/** What a schema found wrong, as a Problem: which code, and where in the caller's JSON. */
import type { z } from "@hono/zod-openapi";
import type { ErrorCode, FieldError } from "../errors.ts";
import { jsonPath } from "../prompt/text.ts";
import { Problem } from "./problem.ts";

/** For `OpenAPIHono`'s `defaultHook`: turns a failed validation into a Problem. */
export function refuseInvalid(result: { success: boolean; error?: z.ZodError }): void {
  if (result.success || result.error === undefined) return;
  const issues = withoutEchoes(result.error.issues.flatMap(unfold));
  const errors = issues.map((issue): FieldError => ({ path: jsonPath(issue.path), message: issue.message }));
  const first = errors[0];
  throw new Problem({
    code: codeOf(issues),
    detail: first === undefined ? "The request is not valid." : `${first.path}: ${first.message}`,
    errors,
  });
}

/** A value of the wrong type has no length and no range either, whatever zod goes on to say of them. */
function withoutEchoes(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  const mistyped = new Set(issues.filter(({ code }) => code === "invalid_type").map(({ path }) => jsonPath(path)));
  return issues.filter(({ code, path }) => code === "invalid_type" || !mistyped.has(jsonPath(path)));
}

/** A union reports its branches; the branch that got furthest says what the caller most likely meant. */
function unfold(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code === "unrecognized_keys") {
    const message = issue.message.startsWith("Unrecognized key") ? "unknown field" : issue.message; // zod's own, or ours
    return issue.keys.map((key) => ({ ...issue, path: [...issue.path, key], message }));
  }
  if (issue.code !== "invalid_union") return [{ ...issue, message: inWords(issue) }];
  const branches = issue.errors.filter((branch) => branch.some(({ path }) => path.length > 0));
  const chosen = branches[0];
  if (chosen === undefined) return [{ ...issue, message: inWords(issue) }];
  return chosen.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })).flatMap(unfold);
}

/** What the value must be. Where the schema has words of its own, those; zod's begin with "Invalid". */
function inWords(issue: z.core.$ZodIssue): string {
  if (!issue.message.startsWith("Invalid ")) return issue.message;
  // A missing field, in zod's words: an issue does not carry the input itself.
  if (issue.code === "invalid_type" && issue.message.endsWith("received undefined")) return "is required";
  if (issue.code === "invalid_type") return `must be ${TYPES[issue.expected] ?? issue.expected}`;
  if (issue.code === "invalid_value") return oneOf(issue.values);
  if ("options" in issue && Array.isArray(issue.options)) return oneOf(issue.options); // of a discriminated union
  return issue.message;
}

/** JSON's types in plain words. All numbers of this API are whole. */
const TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a whole number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
};

function oneOf(values: readonly unknown[]): string {
  return values.length === 1 ? `must be ${JSON.stringify(values[0])}` : `must be one of ${values.join(", ")}`;
}

function codeOf(issues: readonly z.core.$ZodIssue[]): ErrorCode {
  if (issues.some((issue) => issue.code === "custom" && issue.params?.tooLarge === true)) return "too_large";
  if (issues.some(({ code, path }) => code === "invalid_value" && path.join(".") === "identity.version")) {
    return "unsupported_version";
  }
  if (issues.some(({ path }) => path[0] === "identity")) return "invalid_identity";
  return "invalid_request";
}
