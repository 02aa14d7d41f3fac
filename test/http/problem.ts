/** What every error response looks like. */
import { expect } from "vitest";
import { ERRORS } from "../../src/errors.ts";
import type { Reply } from "../support/session.ts";

export interface ProblemJson {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: keyof typeof ERRORS;
  errors?: { path: string; message: string }[];
}

/** RFC 9457, with our code, and nothing of the inside. */
export function expectProblem(reply: Reply<unknown>, code: keyof typeof ERRORS): void {
  const json = reply.json as ProblemJson;
  expect(reply.headers.get("content-type"), reply.text).toBe("application/problem+json");
  const { status, title } = ERRORS[code];
  expect(json).toMatchObject({
    type: expect.stringMatching(/^https:\/\/.*\/errors\/[a-z_]+$/),
    title,
    status,
    code,
  });
  expect(reply.status).toBe(status);
  expect(json.detail).toEqual(expect.stringMatching(/^\S.{5,}/));
  expect(
    Object.keys(json).filter((key) => !["type", "title", "status", "detail", "code", "errors", "turn"].includes(key)),
  ).toEqual([]);
  expect(reply.text).not.toMatch(
    / at .*\.ts|node_modules|SQLITE_|ZodError|TypeError|SessionObject|transactionSync|\bundefined\b|injected/,
  );
}
