/**
 * The manifests of examples/fleet: schemas, what they name, and a fleet that is started by them.
 *
 * Each check runs on the manifests and on copies with a mistake planted, which it must find. Compose and
 * Kubernetes themselves are not here; the servers' configuration and the commands of the containers are run.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { SKIP, startServer } from '../../dist/fleet/engine/nats/server.test.support.js'
import { inRoot, must } from '../../scripts/set-up/index.mjs'
import { readHostArguments } from '../../dist/cli/host/host-arguments.js'
import { composeWorkloads, kubernetesWorkloads, problemsIn } from './manifests.mjs'
import { schemaCheck } from './schemas.mjs'

const CORESPUN = inRoot('lib', 'cli', 'main.js')
const EXAMPLE = inRoot('examples', 'fleet')
const read = (name) => readFileSync(join(EXAMPLE, name), 'utf8')

const check = await schemaCheck()
const skip = typeof check === 'string' ? check : false
const folder = mkdtempSync(join(tmpdir(), 'manifests-'))
after(() => rmSync(folder, { recursive: true }))

/** A file of the example with a mistake planted, if there is one. @param {string[]} [mistake] From, to. */
function textOf(name, [from, to] = []) {
  const text = read(name)
  if (from === undefined) return text
  assert.ok(text.includes(from), 'the mistake is not planted')
  return text.replace(from, to)
}

/** Check a manifest by its schema. */
async function checked(kind, mistake, name = kind) {
  const path = join(folder, `${name}.yaml`)
  writeFileSync(path, textOf(`${name}.yaml`, mistake))
  await check(kind, path)
}
const composeOf = (mistake) => parse(textOf('compose.yaml', mistake), { merge: true })
const kubernetesOf = (mistake) =>
  parseAllDocuments(textOf('kubernetes.yaml', mistake)).map((document) => document.toJS())

test('manifests satisfy the schemas of compose and Kubernetes', { skip }, async () => {
  await checked('compose')
  await checked('compose', undefined, 'postgres')
  await checked('kubernetes')
  assert.equal(Object.keys(composeOf().services).length, 5)
  assert.equal(kubernetesOf().length, 7)
})

test('a manifest with a mistake does not', { skip }, async () => {
  for (const [kind, from, to, expected] of [
    ['compose', 'stop_grace_period: 30s', 'stop_grace: 30s', /stop_grace/],
    ['compose', 'build: .', 'build: 5', /gateway|host/],
    ['kubernetes', 'replicas: 3', 'replicas: three', /statefulset\/nats [^]*replicas/],
    ['kubernetes', '  selector: { matchLabels: { app: host } }\n', '', /deployment\/host [^]*selector/],
    ['kubernetes', 'containerPort: 8222', 'containerport: 8222', /containerPort/],
    ['kubernetes', 'terminationGracePeriodSeconds', 'terminationGraceSeconds', /terminationGraceSeconds/],
    ['kubernetes', 'apiVersion: apps/v1', 'apiVersion: apps/v9', /v9/],
    ['kubernetes', 'kind: Service', 'kind: Servant', /Servant/],
  ]) {
    await assert.rejects(
      checked(kind, [from, to]),
      (error) => expected.test(error.message) || assert.fail(`${to}: ${error.message}`),
    )
  }
})

/** @param {Record<string, string[]>} [mistakes] By the name of the file. */
function problemsOf(mistakes = {}) {
  const names = ['Dockerfile', 'nats.conf', 'keys.ts', 'gateway.ts']
  const files = Object.fromEntries(names.map((name) => [name, textOf(name, mistakes[name])]))
  const deployed = [
    composeWorkloads(composeOf(mistakes.compose)),
    kubernetesWorkloads(kubernetesOf(mistakes.kubernetes)),
  ]
  return deployed.flatMap((each) => problemsIn(each, files))
}

test('what manifests name exists, and what they state twice agrees', () => {
  assert.deepEqual(problemsOf(), [])
})

test('the one with Postgres has the server of the guide, and hosts that reach it', () => {
  const guide = readFileSync(inRoot('docs', 'guide', 'engines.md'), 'utf8')
  const [, block] = /```yaml\n([^]*?)```/.exec(guide)
  const { services, volumes } = parse(read('postgres.yaml'))
  const shown = parse(block)
  assert.deepEqual({ ...services.db, ...shown.services.db }, services.db)
  assert.deepEqual(volumes, shown.volumes)
  const { host, db } = services
  const { connection, module, drainMs } = readHostArguments(host.command.slice(2))
  const { POSTGRES_USER: user, POSTGRES_DB: name, POSTGRES_PASSWORD: password } = db.environment
  assert.equal(connection.servers, `postgres://${user}@db/${name}`)
  assert.equal(host.environment.PGPASSWORD, password)
  assert.deepEqual(Object.keys(host.depends_on), ['db'])
  assert.ok(drainMs < Number.parseFloat(host.stop_grace_period) * 1000)
  const dockerfile = read('Dockerfile')
  for (const needed of [module, 'pg@']) assert.ok(dockerfile.includes(needed), needed)
})

test('a manifest that names what does not exist, or contradicts itself, is found', () => {
  for (const [file, from, to, expected] of [
    ['kubernetes', '--jobs,', '--job,', /--job/],
    ['kubernetes', '--drain, 30s', '--drain, 50s', /50000 ms.*45/],
    ['kubernetes', 'host, work.ts]', 'host, works.ts]', /works\.ts/],
    ['kubernetes', '[node, gateway.ts]', '[node, producer.ts]', /producer\.ts/],
    ['kubernetes', '/keys/host.nkey,', '/keys/hosts.nkey,', /\/keys\/hosts\.nkey/],
    ['kubernetes', 'value: /keys/gateway.nkey', 'value: /key/gateway.nkey', /\/key\/gateway\.nkey/],
    ['kubernetes', 'items: [{ key: host.nkey,', 'items: [{ key: caller.nkey,', /caller\.nkey/],
    ['kubernetes', '- { name: data, mountPath: /data }', '- { name: date, mountPath: /data }', /date/],
    ['kubernetes', 'nats://nats-0.nats,nats-1.nats,', 'nats://nats-0.nats,nats-7.nats,', /nats-7\.nats/],
    ['kubernetes', 'containerPort: 4222', 'containerPort: 4223', /4222/],
    [
      'kubernetes',
      'port: http }\n            periodSeconds',
      'port: https }\n            periodSeconds',
      /https/,
    ],
    ['kubernetes', 'path: /ready', 'path: /reads', /\/reads/],
    [
      'kubernetes',
      'metadata: { labels: { app: nats } }',
      'metadata: { labels: { app: gnats } }',
      /app: nats|selector/,
    ],
    ['kubernetes', 'maxUnavailable: 1', 'maxUnavailable: 2', /majority/],
    ['kubernetes', 'limits: { memory: 1Gi }', 'limits: { cpu: 1 }', /limits/],
    ['kubernetes', 'runAsNonRoot: true', 'runAsNonRoot: false', /may be root/],
    ['compose', 'volumes: [nats-1:/data]', 'volumes: [nats-9:/data]', /nats-9/],
    ['compose', 'secrets: [host.nkey]', 'secrets: [other]', /other/],
    ['compose', '--drain, 30s', '--drain, 60s', /60000 ms.*45/],
    ['compose', '--inbox, host', '--inbox, hosts', /hosts/],
    ['compose', '/run/secrets/host.nkey', '/run/secrets/host.key', /host\.key/],
    ['compose', 'aliases: [nats-2.nats]', 'aliases: [nats-3.nats]', /nats-3\.nats|nats-2\.nats/],
    ['compose', '8080:8080', '8080:8081', /8081/],
    ['Dockerfile', 'COPY work.ts gateway.ts', 'COPY work.ts', /gateway\.ts/],
    ['Dockerfile', 'corespun@0.2', 'corespun@7.1', /corespun@7\.1/],
    ['nats.conf', 'store_dir: /data', 'store_dir: /store', /\/store/],
    ['nats.conf', 'http: 0.0.0.0:8222', 'http: 0.0.0.0:8223', /8222/],
    ['keys.ts', 'gateway: { submits', 'caller: { submits', /gateway\.nkey/],
  ]) {
    const found = problemsOf({ [file]: [from, to] })
    assert.ok(
      found.some((problem) => expected.test(problem)),
      `${to}: ${found.join('\n')}`,
    )
  }
})

test('users, configuration and commands of the manifests make a fleet', { skip: SKIP }, async (t) => {
  const secrets = join(folder, 'secrets')
  await must('keys.ts', process.execPath, [...moduleRun('keys.ts'), 'keys.ts', secrets])
  const users = await must('fleet config', process.execPath, [
    CORESPUN,
    'fleet',
    'config',
    join(secrets, 'users.json'),
  ])
  const server = await startServer(-1, undefined, (store) => {
    writeFileSync(join(store, 'users.conf'), users)
    // One server, on a port of its own: the rest as it is deployed.
    const apart = /^cluster \{[^]*?^\}$|^(listen|http|pid_file): .*$/gm
    return read('nats.conf').replace(apart, '').replace('/data', store).replace('$SERVER_NAME', 'nats-0')
  })
  t.after(() => server[Symbol.asyncDispose]())
  const key = join(secrets, 'operator.nkey')
  const operator = ['--nats', server.url, '--nkey', key, '--inbox', 'operator']
  await must('fleet create', process.execPath, [
    CORESPUN,
    'fleet',
    'create',
    join(secrets, 'users.json'),
    ...operator,
  ])
  const workloads = kubernetesWorkloads(kubernetesOf())
  const of = (name) => workloads.workloads.find((workload) => workload.name === name)
  const here = (words) =>
    words.map((word) =>
      word
        .replace('/keys', secrets)
        .replace(/^nats:.*/, server.url)
        .replace(/^3$/, '1'),
    )
  const [, , , ...words] = of('host').command
  const host = start(t, [CORESPUN, 'host', join(EXAMPLE, 'work.ts'), ...here(words)], {})
  const env = Object.fromEntries(
    Object.entries(of('gateway').env).map(([key, value]) => [key, here([value])[0]]),
  )
  const gateway = start(t, moduleRun('gateway.ts'), { ...env, HOST: '127.0.0.1', PORT: '0' })
  assert.match(await host.line, /^hosting invoices /)
  const url = await gateway.line
  assert.equal((await fetch(`${url}/ready`)).status, 200)
  assert.equal((await fetch(`${url}/invoices/7`, { method: 'PUT' })).status, 201)
  assert.equal(typeof (await (await fetch(`${url}/invoices/7`)).json()).cents, 'number')
  host.child.kill('SIGTERM')
  assert.equal(await host.ended, 0)
  gateway.child.kill('SIGKILL')
  await gateway.ended
})

function moduleRun(name) {
  const program = `import 'corespun/typescript'; await import(${JSON.stringify(join(EXAMPLE, name))})`
  return ['--input-type=module', '-e', program, '--']
}

function start(t, words, env) {
  const child = spawn(process.execPath, words, {
    cwd: inRoot(),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close').then(([code]) => code)
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const line = Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(([text]) => text),
    ended.then((code) => assert.fail(`${words.at(-1)} ended with ${code}`)),
  ])
  return { child, ended, line }
}
