const { defaultOrderProcess, defaultPaymentProcess } = require("@vendure/core");
const payments = require("./payments.js");

// A function returns the application, which does not exist before the server starts.
module.exports = (app) => ({
  apiOptions: { middleware: [{ route: "payments/webhook", handler: payments.webhook(app) }] },
  orderOptions: { process: [defaultOrderProcess, payments.orderProcess] },
  paymentOptions: {
    paymentMethodHandlers: [payments.paymentMethodHandler],
    process: [defaultPaymentProcess, payments.paymentProcess],
  },
  shippingOptions: { fulfillmentHandlers: [payments.captureWhatIsShipped] },
});
