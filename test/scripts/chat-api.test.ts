/** The API client: what a service may answer, and what becomes of it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Api } from "../../scripts/chat/api.ts";
import { ApiError, describe as describeError } from "../../scripts/chat/api-error.ts";
import { StubService } from "./support/stub-service.ts";

let stub: StubService;
beforeEach(async () => {
  stub = await new StubService().start();
});
afterEach(() => stub.stop());

const caught = (work: Promise<unknown>): Promise<ApiError> =>
  work.then(
    () => expect.unreachable("should have failed"),
    (error: unknown) => {
      expect(error).toBeInstanceOf(ApiError);
      return error as ApiError;
    },
  );

describe("the API client", () => {
  it("sends the key as a bearer token, and none without one", async () => {
    await new Api(stub.url, "secret").createSession({ agent: "concierge" });
    await new Api(stub.url).createSession({ agent: "concierge" });
    expect(stub.seen.map(({ headers }) => headers.authorization)).toEqual(["Bearer secret", undefined]);
  });

  it("reads problem+json with its field errors", async () => {
    const error = await caught(new Api(stub.url).createSession({ agent: "nobody" }));
    expect(error).toMatchObject({ kind: "problem", status: 400, code: "invalid_request" });
    expect(describeError(error)).toEqual([
      "The request is not valid: There is no such agent. (invalid_request, HTTP 400)",
      'agent: no agent "nobody"',
    ]);
  });

  it("does not tell a field's fault twice", () => {
    const fields = [{ path: "agent", message: "unknown agent" }];
    const more = { status: 400, code: "invalid_request", detail: "unknown agent; known: a", fields };
    expect(describeError(new ApiError("problem", "Not valid", more))).toHaveLength(1);
  });

  it("strips control characters out of a problem", async () => {
    const title = "a\u001b[31m\u0007b";
    stub.refuse.set("/v1/sessions/x", { status: 503, code: "storage_unavailable", title, detail: "\u009bc\nd" });
    const error = await caught(new Api(stub.url).session("x"));
    expect(describeError(error)).toEqual(["a[31mb: c d (storage_unavailable, HTTP 503)"]);
  });

  it("escapes a session id in the path", async () => {
    await caught(new Api(stub.url).session("../../healthz?x"));
    expect(stub.seen[0]?.path).toBe("/v1/sessions/..%2F..%2Fhealthz%3Fx");
  });

  it("says when nobody listens", async () => {
    const { url } = stub;
    await stub.stop();
    const error = await caught(new Api(url).session("x"));
    expect(error).toMatchObject({ kind: "network", code: "ECONNREFUSED" });
    expect(describeError(error)[0]).toBe(`Cannot reach ${url}: the connection is refused (ECONNREFUSED)`);
  });

  it.each([
    ["HTML with 200", 200, "text/html", "<h1>It works!</h1>", "The answer is not JSON"],
    ["HTML with 502", 502, "text/html", "<h1>Bad gateway</h1>", "The answer is HTTP 502 without a reason"],
    ["JSON of something else", 200, "application/json", '{"hello":1}', "The answer is not a session"],
    ["a list", 200, "application/json", "[]", "The answer is not JSON"],
    ["nothing", 200, "application/json", "", "The answer is not JSON"],
  ])("refuses %s", async (_, status, type, body, message) => {
    const other = createServer((_request, response) => response.writeHead(status, { "Content-Type": type }).end(body));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const error = await caught(new Api(url).session("x"));
    other.close();
    expect(error).toMatchObject({ kind: "protocol", message });
  });
});
