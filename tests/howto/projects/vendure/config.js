const { defaultOrderProcess, defaultPaymentProcess } = require("@vendure/core");
const payments = require("./payments.js");

// The application is not there before the server is, so it is given as a function.
module.exports = (app) => ({
  apiOptions: { middleware: [{ route: "payments/webhook", handler: payments.webhook(app) }] },
  orderOptions: { process: [defaultOrderProcess, payments.orderProcess] },
  paymentOptions: {
    paymentMethodHandlers: [payments.paymentMethodHandler],
    process: [defaultPaymentProcess, payments.paymentProcess],
  },
  shippingOptions: { fulfillmentHandlers: [payments.captureWhatIsShipped] },
});
