import "reflect-metadata";
import { Body, Controller, HttpCode, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { paths, port, statusOf } from "./status.mjs";

class Shop {
  webhook(body) {
    return statusOf(body);
  }
}
Controller()(Shop);
Body()(Shop.prototype, "webhook", 0);
for (const decorate of [Post(paths), HttpCode(200)]) {
  decorate(Shop.prototype, "webhook", Object.getOwnPropertyDescriptor(Shop.prototype, "webhook"));
}
class Shops {}
Module({ controllers: [Shop] })(Shops);
await (await NestFactory.create(Shops, { logger: false })).listen(port, "127.0.0.1");
