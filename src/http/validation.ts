/** What a schema found wrong, as a Problem: which code, and where in the caller's JSON. */
import type { z } from "@hono/zod-openapi";
import type { ErrorCode, FieldError } from "../errors.ts";
import { jsonPath } from "../prompt/text.ts";
import { Problem } from "./problem.ts";

/** For `OpenAPIHono`'s `defaultHook`: turns a failed validation into a Problem. */
export function refuseInvalid(result: { success: boolean; error?: z.ZodError }): void {
  if (result.success || result.error === undefined) return;
  const issues = result.error.issues.flatMap(unfold);
  const errors = issues.map((issue): FieldError => ({ path: jsonPath(issue.path), message: issue.message }));
  const first = errors[0];
  throw new Problem({
    code: codeOf(issues),
    detail: first === undefined ? "The request is not valid." : `${first.path}: ${first.message}`,
    errors,
  });
}

/** A union reports its branches; the branch that got furthest says what the caller most likely meant. */
function unfold(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code === "unrecognized_keys") {
    const message = issue.message.startsWith("Unrecognized key") ? "unknown field" : issue.message; // zod's own, or ours
    return issue.keys.map((key) => ({ ...issue, path: [...issue.path, key], message }));
  }
  // A missing field, in zod's words: an issue does not carry the input itself.
  if (issue.code === "invalid_type" && issue.message.endsWith("received undefined")) {
    return [{ ...issue, message: "is required" }];
  }
  if (issue.code !== "invalid_union") return [issue];
  const branches = issue.errors.filter((branch) => branch.some(({ path }) => path.length > 0));
  const chosen = branches[0];
  if (chosen === undefined) return [{ ...issue, message: "has the wrong type" }];
  return chosen.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })).flatMap(unfold);
}

function codeOf(issues: readonly z.core.$ZodIssue[]): ErrorCode {
  if (issues.some((issue) => issue.code === "custom" && issue.params?.tooLarge === true)) return "too_large";
  if (issues.some(({ code, path }) => code === "invalid_value" && path.join(".") === "identity.version")) {
    return "unsupported_version";
  }
  if (issues.some(({ path }) => path[0] === "identity")) return "invalid_identity";
  return "invalid_request";
}
