import assert from "node:assert/strict";
import { test } from "node:test";
import { sandboxed } from "payment-sandbox";

test("handlers", sandboxed({ mode: "live", absolute_urls: true }, async (sandbox, t) => {
  assert.equal(t.name, "handlers");
  const place = () => sandbox.call("POST", "/v1/orders/", {
    currency: "EUR", amount: 1295, webhook_url: "http://shop.example/hook", transactions: [{ payment_method: "credit-card" }],
  });
  const seen = [];
  await sandbox.deliverTo({ fetch: async (request) => (seen.push([request.url, await request.json()]), new Response("fine")) }, "/hook");
  const order = await place();
  await sandbox.pay(order.id);
  assert.deepEqual(seen.map(([url, { order_id: id }]) => [url, id]), Array(2).fill(["http://127.0.0.1/hook", order.id]));
  await sandbox.deliverTo(async () => { throw new Error("no stock"); });
  const next = await place();
  await sandbox.pay(next.id);
  const states = (await sandbox.webhooks(next.id)).map((each) => each.attempts.map((attempt) => attempt.response.status));
  assert.deepEqual(states, [[500], [500]]);
  assert.match(await sandbox.report(), /500 · Error: no stock/);
  assert.deepEqual((await sandbox.review()).map((finding) => finding.rule), ["HOOK-08", "HOOK-09"]);
  assert.doesNotMatch(await sandbox.report(), /node:internal|index\.js/);
  await assert.rejects(sandbox.deliverTo({ routes: [] }), /^TypeError: deliverTo takes a node:http handler, .*, not an object of Object/);
  await assert.rejects(sandbox.advance(30), /by must be an ISO 8601 duration such as PT30M or P7D; got 30/);
  await sandbox.faults([{ when: { method: "POST", path: "/v1/orders/" }, then: { status: 503 } }]);
  await assert.rejects(place(), { status: 503 });
  await sandbox.faults([]);
  const failed = await sandbox.explain(new TypeError("fetch failed", { cause: new Error("no such host") }));
  assert.match(failed.message, /^fetch failed: no such host[^]+--- payment sandbox ---/);
  const unknownId = "00000000-0000-4000-8000-000000000000";
  await assert.rejects(sandbox.pay(unknownId), { name: "SandboxError", status: 404, type: "NotFound" });
  await assert.rejects(sandbox.pay(undefined), { name: "TypeError", message: /^act takes the id of an order, not undefined: / });
  await assert.rejects(sandbox.pay(Promise.resolve(order)), /not an object of Promise: .*, or is an await missing/);
  const wrong = { Authorization: `Basic ${btoa("wrong-key:")}` };
  assert.equal((await fetch(`${sandbox.url}/v1/orders/`, { method: "POST", headers: wrong })).status, 401);
  assert.match(await sandbox.report(), /calls with another key, or without a key.*\n +POST \/v1\/orders\/ -> 401: no project has this API key\n/);
  const hosted = await sandbox.call("POST", "/v1/orders/", { currency: "EUR", amount: 1295 });
  for (const method of ["bank-transfer", "credit-card"]) {
    await sandbox.act(hosted.id, { actor: "customer", action: "choose", payment_method: method });
  }
  const { transactions: [transfer] } = await sandbox.pay(hosted.id);
  await sandbox.act(hosted.id, { actor: "bank", action: "credit", transaction_id: transfer.id });
  const details = await sandbox.call("GET", `/v1/orders/${hosted.id}/?fields[]=amount_details`);
  assert.equal(details.amount_details.received, 2590);
  await sandbox.deliverTo({ fetch: () => new Promise(() => {}) });
  assert.ok((await place()).id);
}));
