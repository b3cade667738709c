// Prints what a decoder reads in each image: node read.mjs DECODER IMAGE...
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import zxing from "@zxing/library";
import jsQR from "jsqr";
import { PNG } from "pngjs";

const read = {
  jsQR: ({ data, width, height }) => jsQR(new Uint8ClampedArray(data), width, height)?.data,
  "@zxing/library": ({ data, width, height }) => {
    const luminances = Uint8ClampedArray.from({ length: width * height }, (_, index) => data[4 * index]);
    const source = new zxing.RGBLuminanceSource(luminances, width, height);
    try {
      return new zxing.QRCodeReader().decode(new zxing.BinaryBitmap(new zxing.HybridBinarizer(source))).getText();
    } catch {
      return "";
    }
  },
}[process.argv[2]];
const texts = process.argv.slice(3).map((file) => [basename(file, ".png"), read(PNG.sync.read(readFileSync(file)))]);
console.log(JSON.stringify(Object.fromEntries(texts)));
