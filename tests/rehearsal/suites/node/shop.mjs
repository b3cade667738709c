// A shop whose mistakes are selected by the environment.
const MISTAKES = (process.env.MISTAKES ?? "").split(" ");
const LIMIT_MS = 3000;

export class Shop {
  sales = new Map(); // by the shop's own number
  webhooks = []; // the order of each webhook

  constructor(url, apiKey) {
    this.url = url;
    this.headers = { Authorization: `Basic ${btoa(`${apiKey}:`)}`, "Content-Type": "application/json" };
  }

  async call(method, path, body) {
    const signal = AbortSignal.timeout(LIMIT_MS);
    const response = await fetch(this.url + path, { method, headers: this.headers, signal, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
    return response.json();
  }

  async checkout(number, amount) {
    const sale = { orders: [], amount, paid: 0, shipped: 0, refunded: 0 };
    this.sales.set(number, sale);
    const order = { currency: "EUR", amount, merchant_order_id: number, transactions: [{ payment_method: "credit-card" }] };
    const created = await this.call("POST", "/v1/orders/", order);
    sale.orders.push(created.id);
    return created;
  }

  async refund(number, amount) {
    const sale = this.sales.get(number);
    const path = `/v1/orders/${sale.orders[0]}/`;
    const refund = () => this.call("POST", `${path}refunds/`, { amount });
    await refund().catch(async (error) => {
      const { flags } = await this.call("GET", path); // it may have been carried out
      if (MISTAKES.includes("refunds-again")) await refund();
      else if (!flags.includes("has-refunds")) throw error;
    });
    sale.refunded += amount;
  }

  webhook = async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const { order_id: id } = JSON.parse(body);
    this.webhooks.push(id);
    await this.look(id);
    response.writeHead(204).end();
  };

  async look(id) {
    const { status } = await this.call("GET", `/v1/orders/${id}/`);
    const [, sale] = [...this.sales].find(([, each]) => each.orders.includes(id)) ?? [];
    if (sale === undefined) return; // a refund, or an order whose response is in flight
    const count = this.webhooks.filter((each) => each === id).length;
    if (status === "completed" || (MISTAKES.includes("counts-webhooks") && count > 1)) sale.paid = sale.shipped = sale.amount;
  }

  lookAtOpenOrders = async () => {
    for (const sale of this.sales.values()) if (!sale.paid) for (const id of sale.orders) await this.look(id);
  };

  books = () => [...this.sales].map(([purchase, sale]) => ({ purchase, ...sale }));
}
