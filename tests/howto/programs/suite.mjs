const { SANDBOX_URL: url, SANDBOX_CONTROL_TOKEN: token } = process.env;
const response = await fetch(`${url}/control/projects/`, { method: "POST", headers: { Authorization: `Bearer ${token}` } });
if (response.status !== 201) throw new Error(await response.text());
const project = await response.json();
const order = await fetch(`${url}/v1/orders/`, {
  method: "POST",
  headers: { Authorization: `Basic ${btoa(`${project.api_key}:`)}`, "Content-Type": "application/json" },
  body: JSON.stringify({ currency: "EUR", amount: 1295, transactions: [{ payment_method: "credit-card" }] }),
});
if (order.status !== 201) throw new Error(await order.text());
