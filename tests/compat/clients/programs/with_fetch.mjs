import { readFileSync } from 'node:fs'
const [url, method, connection] = process.argv.slice(2)
const headers = { Authorization: 'Basic ' + Buffer.from(`${process.env.API_KEY}:`).toString('base64') }
if (connection === 'kept') await (await fetch(url, { headers })).text()
const body = method === 'POST' ? readFileSync(0) : undefined
if (body) headers['Content-Type'] = 'application/json'
process.stdout.write(String((await fetch(url, { method, headers, body })).status))
