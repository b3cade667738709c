// The code under test: creates orders, and records their payment when webhooks arrive.
export class Shop {
  shipped = new Set();

  constructor(url, apiKey) {
    this.url = url;
    this.headers = { Authorization: `Basic ${btoa(`${apiKey}:`)}`, "Content-Type": "application/json" };
  }

  async checkout(amount) {
    const body = { currency: "EUR", amount, transactions: [{ payment_method: "credit-card" }] };
    const response = await fetch(`${this.url}/v1/orders/`, { method: "POST", headers: this.headers, body: JSON.stringify(body) });
    return response.json();
  }

  // A node:http handler; Express, Fastify and Koa applications have one, too.
  webhook = async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const { order_id: id } = JSON.parse(body);
    const order = await (await fetch(`${this.url}/v1/orders/${id}/`, { headers: this.headers })).json();
    if (order.status === "completed") this.shipped.add(id);
    response.writeHead(204).end();
  };
}
