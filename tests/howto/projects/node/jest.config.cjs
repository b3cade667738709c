module.exports = { globalSetup: "payment-sandbox/global-setup" };
