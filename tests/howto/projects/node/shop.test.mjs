import assert from "node:assert/strict";
import { test } from "node:test";
import { sandboxed } from "payment-sandbox";
import { Shop } from "./shop.mjs";

// Gives each test its own project, whose webhooks go to the shop's handler.
const withShop = (run) => sandboxed(async (sandbox) => {
  const shop = new Shop(sandbox.url, sandbox.apiKey);
  await sandbox.deliverTo(shop.webhook);
  await run(shop, sandbox);
});

test("a paid order is shipped", withShop(async (shop, sandbox) => {
  const order = await shop.checkout(1295);
  await sandbox.pay(order.id);
  assert.ok(shop.shipped.has(order.id));
}));

test("an unpaid order expires and is not shipped", withShop(async (shop, sandbox) => {
  const order = await shop.checkout(1295);
  await sandbox.advance("PT30M");
  assert.equal((await sandbox.order(order.id)).status, "expired");
  assert.equal(shop.shipped.size, 0);
}));

test("a failed webhook is retried", withShop(async (shop, sandbox) => {
  await sandbox.faults({ webhooks: [{ when: { attempt: 1 }, then: { answer: 503 } }] });
  const order = await shop.checkout(1295);
  await sandbox.pay(order.id);
  await sandbox.advance("PT2M");
  assert.ok(shop.shipped.has(order.id));
}));
