const { FulfillmentHandler, LanguageCode, OrderService, PaymentMethodHandler, RequestContextService, TransactionalConnection, Payment } = require("@vendure/core");

const API = "https://api.payments.example/v1";
const KEY = process.env.PAYMENTS_KEY;
const english = (value) => [{ languageCode: LanguageCode.en, value }];

async function call(method, path, body) {
  const headers = { Authorization: `Basic ${btoa(`${KEY}:`)}`, "Content-Type": "application/json" };
  const response = await fetch(API + path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.value);
  return answer;
}

// A payment waits for the customer until the webhook reports an authorization.
const paymentProcess = {
  transitions: {
    Created: { to: ["AwaitingCustomer"], mergeStrategy: "merge" },
    AwaitingCustomer: { to: ["Authorized", "Declined", "Cancelled"] },
  },
};

// An authorized order can be shipped in parts, and shipped lines are captured.
const orderProcess = {
  transitions: {
    PaymentAuthorized: { to: ["PartiallyShipped", "Shipped"], mergeStrategy: "merge" },
  },
};

const paymentMethodHandler = new PaymentMethodHandler({
  code: "payment-orders",
  description: english("Cards"),
  args: {},
  createPayment: async (ctx, order, amount, args, { returnUrl }) => {
    const created = await call("POST", "/orders/", {
      currency: order.currencyCode,
      amount,
      merchant_order_id: order.code,
      return_url: returnUrl,
      webhook_url: process.env.WEBHOOK_URL,
      transactions: [{ payment_method: "credit-card", capture_mode: "manual", expiration_period: "P7D" }],
    });
    const [{ id, payment_url }] = created.transactions;
    const metadata = { payment: id, public: { paymentUrl: `https://${payment_url}` } };
    return { amount, state: "AwaitingCustomer", transactionId: created.id, metadata };
  },
  settlePayment: async (ctx, order, payment) => {
    await call("POST", `/orders/${payment.transactionId}/transactions/${payment.metadata.payment}/captures/`);
    return { success: true };
  },
  createRefund: async (ctx, input, amount, order, payment) => {
    try {
      const refund = await call("POST", `/orders/${payment.transactionId}/refunds/`, { amount });
      return { state: "Settled", transactionId: refund.id };
    } catch (error) {
      return { state: "Failed", metadata: { error: error.message } };
    }
  },
});

let orders;
const captureWhatIsShipped = new FulfillmentHandler({
  code: "capture-shipped-lines",
  description: english("Capture shipped lines"),
  args: {},
  init: (injector) => { orders = injector.get(OrderService); },
  createFulfillment: async (ctx, [{ id }], lines) => {
    const order = await orders.findOne(ctx, id);
    const shipped = (line) => lines.find(({ orderLineId }) => orderLineId === line.id)?.quantity ?? 0;
    const amount = order.lines.reduce((sum, line) => sum + shipped(line) * line.proratedUnitPriceWithTax, 0);
    const payment = (await orders.getOrderPayments(ctx, id)).find(({ state }) => state === "Authorized");
    const path = `/orders/${payment.transactionId}/transactions/${payment.metadata.payment}/captures/amount/`;
    await call("POST", path, { amount, description: `A parcel of ${order.code}` });
    return { method: "Parcel" };
  },
});

const NEW_STATE = { completed: "Authorized", cancelled: "Cancelled", expired: "Cancelled", error: "Declined" };

// For apiOptions.middleware. The application does not exist before the server starts.
const webhook = (app) => async (request, response) => {
  const { order_id: id } = request.body;
  const paid = await call("GET", `/orders/${id}/`);
  const ctx = await app().get(RequestContextService).create({ apiType: "admin" });
  const payment = await app().get(TransactionalConnection).getRepository(ctx, Payment).findOneBy({ transactionId: id });
  const state = NEW_STATE[paid.status];
  if (payment?.state === "AwaitingCustomer" && state) {
    await app().get(OrderService).transitionPaymentToState(ctx, payment.id, state);
  }
  const isUnknown = !payment && !paid.flags?.includes("is-refund"); // the checkout is about to save the payment
  response.writeHead(isUnknown ? 503 : 204).end();
};

module.exports = { captureWhatIsShipped, orderProcess, paymentMethodHandler, paymentProcess, webhook };
