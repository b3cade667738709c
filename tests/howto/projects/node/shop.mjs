// The code under test: it creates orders, and learns from webhooks which are paid.
import { createServer } from "node:http";

export class Shop {
  shipped = new Set();

  async listen() {
    this.server = createServer(async (request, response) => {
      let body = "";
      for await (const part of request) body += part;
      const { order_id: id } = JSON.parse(body);
      const order = await this.api("GET", `/v1/orders/${id}/`);
      if (order.status === "completed") this.shipped.add(id);
      response.writeHead(204).end();
    });
    await new Promise((listening) => this.server.listen(0, "127.0.0.1", listening));
    return `http://127.0.0.1:${this.server.address().port}/webhook`;
  }

  checkout(amount) {
    const transactions = [{ payment_method: "credit-card" }];
    return this.api("POST", "/v1/orders/", { currency: "EUR", amount, transactions });
  }

  close() {
    this.server.close();
  }
}
