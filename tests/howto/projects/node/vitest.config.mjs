export default { test: { globalSetup: "payment-sandbox/global-setup" } };
