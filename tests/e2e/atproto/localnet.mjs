// A real PDS with its OAuth provider and a real PLC directory, on loopback only, for the sign-in tests.
//
// Run with the folder of `tools/install-pds` as working directory and a JSON configuration as argument:
//   hostname   the host name of the PDS ("localhost" means http)
//   tls        {key, cert}: also serve the PDS and the directory with https, selected by the Host header
//   routes     {name: port}: the local port for connections to port 443 of that name
//   accounts   [{handle, email, password}]
// Prints one line of JSON when ready. Ends when standard input does; a line {"advance": seconds} there moves its clock.
import crypto from 'node:crypto'
import fs from 'node:fs'
import https from 'node:https'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import path from 'node:path'
import readline from 'node:readline'
import tls from 'node:tls'

const config = JSON.parse(process.argv[1])

function keepToLoopback(routes) {
  const listen = net.Server.prototype.listen
  net.Server.prototype.listen = function (port, ...rest) {
    if (typeof port !== 'number') return listen.call(this, port, ...rest)
    return listen.call(this, port, '127.0.0.1', ...rest.filter((argument) => typeof argument === 'function'))
  }
  const here = new Set(['localhost', '127.0.0.1', '::1'])
  const reroute = (connect) => function (options, ...rest) {
    if (typeof options === 'object' && options.host && !options.socket && !here.has(options.host)) {
      const port = routes[options.host]
      if (!port) process.stderr.write(`refused a connection to ${options.host}\n`)
      options = { ...options, servername: options.servername ?? options.host, host: '127.0.0.1', port: port ?? 1, lookup: undefined }
    }
    return connect.call(this, options, ...rest)
  }
  tls.connect = reroute(tls.connect)
  net.connect = reroute(net.connect)
  net.createConnection = reroute(net.createConnection)
  syncBuiltinESMExports()
}

let ahead = 0
function makeClockMovable() {
  const RealDate = Date
  const now = RealDate.now
  globalThis.Date = class extends RealDate {
    constructor(...parts) { parts.length ? super(...parts) : super(now() + ahead) }
    static now() { return now() + ahead }
  }
}

function listenOn(server) {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, () => resolve(server.address().port))
  })
}

async function freePort() {
  const probe = net.createServer()
  const port = await listenOn(probe)
  await new Promise((resolve) => probe.close(resolve))
  return port
}

async function startDirectory(port) {
  const found = await import('@did-plc/server')
  const { PlcServer, Database } = found.default?.PlcServer ? found.default : found
  const server = PlcServer.create({ db: Database.mock(), port })
  await server.start()
  return server
}

async function startPds(port, directoryPort) {
  const { PDS } = await import('@atproto/pds')
  const pds = await PDS.fromEnv({
    devMode: !config.tls,
    hostname: config.hostname,
    port,
    dataDirectory: config.folder,
    blobstoreDiskLocation: path.join(config.folder, 'blobs'),
    blobstoreDiskTmpLocation: path.join(config.folder, 'blobs-tmp'),
    didPlcUrl: `http://localhost:${directoryPort}`,
    serviceHandleDomains: ['.test'],
    plcRotationKeyK256PrivateKeyHex: crypto.randomBytes(32).toString('hex'),
    jwtSecret: crypto.randomBytes(16).toString('hex'),
    adminPassword: crypto.randomBytes(16).toString('hex'),
    inviteRequired: false,
    disableSsrfProtection: true, // the client's documents are on loopback
  })
  await pds.start()
  return pds
}

async function createAccount(port, account) {
  const response = await fetch(`http://127.0.0.1:${port}/xrpc/com.atproto.server.createAccount`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(account),
  })
  const created = await response.json()
  if (!response.ok) throw new Error(`createAccount answered ${response.status}: ${JSON.stringify(created)}`)
  return { handle: created.handle, did: created.did }
}

process.env.LOG_ENABLED = 'false'
keepToLoopback(config.routes ?? {})
makeClockMovable()

const directoryPort = await freePort()
const pdsPort = await freePort()
const directory = await startDirectory(directoryPort)
const pds = await startPds(pdsPort, directoryPort)
let tlsPort = null
if (config.tls) {
  const credentials = { key: fs.readFileSync(config.tls.key), cert: fs.readFileSync(config.tls.cert) }
  const front = https.createServer(credentials, (request, response) => {
    const app = request.headers.host === 'plc.directory' ? directory.app : pds.app
    app(request, response)
  })
  tlsPort = await listenOn(front)
}
const accounts = []
for (const account of config.accounts) accounts.push(await createAccount(pdsPort, account))

readline.createInterface({ input: process.stdin })
  .on('line', (line) => {
    ahead += JSON.parse(line).advance * 1000
    console.log(JSON.stringify({ ahead }))
  })
  .on('close', async () => {
    setTimeout(() => process.exit(0), 2000).unref()
    await Promise.allSettled([pds.destroy(), directory.destroy()])
    process.exit(0)
  })
console.log(JSON.stringify({ pdsPort, directoryPort, tlsPort, accounts }))
