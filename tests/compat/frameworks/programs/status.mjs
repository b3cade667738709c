const { URL: url, KEY: key } = process.env;
export const port = Number(process.env.PORT);
export const paths = ["/slash/", "/bare"];

export async function statusOf(body) {
  const headers = { authorization: `Basic ${Buffer.from(`${key}:`).toString("base64")}` };
  const answer = await fetch(`${url}/v1/orders/${body.order_id}/`, { headers });
  return (await answer.json()).status;
}
