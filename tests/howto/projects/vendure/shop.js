const { bootstrap, ChannelService, DefaultLogger, LogLevel, mergeConfig, RequestContextService } = require("@vendure/core");
const { populate } = require("@vendure/core/cli");
const withPayments = require("./config.js");

let app;
const config = mergeConfig(
  {
    apiOptions: { port: 3000, hostname: "127.0.0.1" },
    authOptions: {
      superadminCredentials: { identifier: "superadmin", password: "superadmin" },
      cookieOptions: { secret: "a secret of the shop" },
    },
    dbConnectionOptions: { type: "sqljs", synchronize: true, autoSave: false },
    logger: new DefaultLogger({ level: LogLevel.Warn }),
    paymentOptions: { paymentMethodHandlers: [] },
  },
  withPayments(() => app),
);
const initialData = {
  defaultLanguage: "en",
  defaultZone: "Europe",
  countries: [{ code: "NL", name: "Netherlands", zone: "Europe" }],
  taxRates: [{ name: "None", percentage: 0 }],
  shippingMethods: [{ name: "Parcel", price: 0 }],
  paymentMethods: [{ name: "Cards", handler: { code: "payment-orders", arguments: [] } }],
  collections: [],
};

// Starts a shop with an empty database, in euros, with one product.
async function start() {
  app = await bootstrap(config);
  const channels = app.get(ChannelService);
  const { id } = await channels.getDefaultChannel();
  const ctx = await app.get(RequestContextService).create({ apiType: "admin" });
  await channels.update(ctx, { id, defaultCurrencyCode: "EUR", availableCurrencyCodes: ["EUR"] });
  return app;
}

populate(start, initialData, "products.csv").then(() => process.stdout.write("ready\n"));
