/**
 * What Selfsame is compared with: a Hono Worker that does nothing but forward. `POST /forward` passes the very bytes of
 * its request on; `POST /held` those that `PUT /held` gave it before, so that they need not be sent to it each time.
 */
import { type Context, Hono } from "hono";

interface Env {
  Bindings: { OPENAI_BASE_URL: string };
}

let boot = "";
let held = new ArrayBuffer(0);

const app = new Hono<Env>();
app.get("/healthz", (c) => {
  boot ||= crypto.randomUUID(); // a Worker has no randomness before its first request
  return c.json({ status: "ok", boot });
});
app.post("/forward", async (c) => forward(c, await c.req.arrayBuffer()));
app.put("/held", async (c) => {
  held = await c.req.arrayBuffer();
  return c.body(null, 204);
});
app.post("/held", (c) => forward(c, held));

async function forward(c: Context<Env>, body: ArrayBuffer): Promise<Response> {
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const answer = await fetch(`${c.env.OPENAI_BASE_URL}/chat/completions`, { method: "POST", headers, body });
  return new Response(answer.body, { status: answer.status, headers: { "content-type": "text/event-stream" } });
}

export default app;
