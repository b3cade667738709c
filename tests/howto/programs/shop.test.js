const { sandboxed } = require("payment-sandbox");
const ORDER = { currency: "EUR", amount: 1295, transactions: [{ payment_method: "credit-card" }] };

test("a paid order is shipped", sandboxed(async (sandbox) => {
  const statuses = [];
  await sandbox.deliverTo(async (request, response) => {
    jest.useFakeTimers();
    let body = "";
    for await (const part of request) body += part;
    statuses.push((await sandbox.order(JSON.parse(body).order_id)).status);
    response.writeHead(204).end();
  });
  const { id } = await sandbox.call("POST", "/v1/orders/", ORDER);
  await sandbox.pay(id);
  expect(statuses).toEqual(["completed", "completed"]);
}));
