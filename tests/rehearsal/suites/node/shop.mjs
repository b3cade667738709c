// A shop without mistakes, apart from those that the environment names.
const MISTAKES = (process.env.MISTAKES ?? "").split(" ");
const LIMIT_MS = 3000;

export class Shop {
  sales = new Map(); // by the shop's own number

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
    const create = () => this.call("POST", "/v1/orders/", order);
    const made = await create().catch((error) => {
      if (MISTAKES.includes("creates-again")) return create();
      throw error; // the order may be there: the customer tries again, with a number of its own
    });
    sale.orders.push(made.id);
    return made;
  }

  webhook = async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    await this.look(JSON.parse(body).order_id);
    response.writeHead(204).end();
  };

  async look(id) {
    const [, sale] = [...this.sales].find(([, each]) => each.orders.includes(id)) ?? [];
    if (sale === undefined) throw new Error(`order ${id} is not known yet`);
    const { status } = await this.call("GET", `/v1/orders/${id}/`);
    sale.reads = (sale.reads ?? 0) + 1;
    const isPaid = status === "completed" || (MISTAKES.includes("counts-webhooks") && sale.reads === 2);
    if (isPaid) sale.paid = sale.shipped = sale.amount;
  }

  lookAtOpenOrders = async () => {
    for (const sale of this.sales.values()) if (!sale.paid) for (const id of sale.orders) await this.look(id);
  };

  books = () => [...this.sales].map(([purchase, sale]) => ({ purchase, ...sale, reads: undefined }));
}
