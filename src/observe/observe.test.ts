/**
 * The control socket: who may open it, who may connect, and what a client can send.
 * What the methods answer is in stacks.test.ts and profile.test.ts.
 */
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, connect } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { zone } from '../zone/index.ts'
import { ask, findProcess } from './internal.ts'
import { observe } from './index.ts'
import { SOCKETS, answerOf, inZone, observed, sent } from './observe.test.support.ts'
import { controlSockets, nameOf, socketPath } from './sockets.ts'

const isUnix = process.platform !== 'win32'
/** A pid that no process has: above the most that Linux has. */
const NO_PID = 2 ** 22 + 1

test('the socket is its user’s alone, and is removed when it is closed', { skip: !isUnix }, async () => {
  await observed({ name: 'own' }, async ({ path }) => {
    assert.equal(path, join(SOCKETS, `${process.pid}.own.sock`))
    assert.equal(lstatSync(SOCKETS).mode & 0o777, 0o700)
    assert.equal(lstatSync(path).mode & 0o777, 0o600)
  })
  assert.deepEqual(readdirSync(SOCKETS), [])
})

test('info has the process, its methods, and no actions by default', () =>
  observed({ name: 'info' }, async ({ path }) => {
    const { uptimeMs, corespun, ...info } = (await answerOf(path, 'info')).result as Record<string, unknown>
    const methods = ['info', 'profile', 'stacks', 'snapshot', 'control']
    assert.deepEqual(info, { pid: process.pid, name: 'info', node: process.version, methods, actions: [] })
    assert.ok(Number(uptimeMs) > 0)
    assert.match(String(corespun), /^\d/)
  }))

test('a process is observed once, by its main thread', () =>
  observed({}, async () => {
    await assert.rejects(observe(), { code: 'OBSERVE_ONCE', message: /already/ })
    await inZone({ workers: 1 }, async (own) => {
      const { observe } = own.module<typeof import('./index.ts')>(new URL('./index.js', import.meta.url))
      await assert.rejects(observe(), { code: 'OBSERVE_ONCE', message: /main thread/ })
    })
  }))

for (const [options, name] of [
  [{ name: '' }, 'name'],
  [{ name: '../../etc/x' }, 'name'],
  [{ name: 'a'.repeat(33) }, 'name'],
  [{ allowControl: 1 }, 'allowControl'],
  [{ actions: { drain: true } }, 'actions'],
  [{ named: 'x' }, 'named'],
] as const)
  test(`invalid options are refused: ${JSON.stringify(options)}`, async () => {
    await assert.rejects(observe(options as never), { code: 'OBSERVE_ARGUMENT', message: new RegExp(name) })
  })

const line = (request: unknown): string => `${JSON.stringify(request)}\n`
const hostile: readonly (readonly [what: string, bytes: string | Buffer, code: string, facts?: object])[] = [
  ['no JSON', 'GET / HTTP/1.1\r\n', 'OBSERVE_REQUEST'],
  ['an empty line', '\n', 'OBSERVE_REQUEST'],
  ['bytes that are not UTF-8', Buffer.from([0xff, 0x00, 0xfe, 0x0a]), 'OBSERVE_REQUEST'],
  ['null', 'null\n', 'OBSERVE_REQUEST'],
  ['an array', '[1]\n', 'OBSERVE_REQUEST'],
  ['deep nesting', `${'['.repeat(30_000)}\n`, 'OBSERVE_REQUEST'],
  ['no version', line({ method: 'info' }), 'OBSERVE_VERSION', { expected: 1 }],
  ['another version', line({ version: 2, method: 'info' }), 'OBSERVE_VERSION'],
  ['a long version', line({ version: 'x'.repeat(60_000), method: 'info' }), 'OBSERVE_VERSION'],
  ['no method', line({ version: 1 }), 'OBSERVE_REQUEST'],
  ['a method that is an object', line({ version: 1, method: {} }), 'OBSERVE_REQUEST'],
  ['params that are a list', line({ version: 1, method: 'info', params: [] }), 'OBSERVE_REQUEST'],
  ['an unknown method', line({ version: 1, method: 'exit' }), 'OBSERVE_METHOD'],
  ['an inherited method', line({ version: 1, method: 'constructor' }), 'OBSERVE_METHOD'],
  ['a prototype', '{"version":1,"method":"__proto__","params":{"__proto__":{"x":1}}}\n', 'OBSERVE_METHOD'],
  ['a long line', 'x'.repeat(70_000), 'OBSERVE_REQUEST'],
  [
    'an action that is not allowed',
    line({ version: 1, method: 'control', params: { action: 'reload' } }),
    'OBSERVE_FORBIDDEN',
  ],
  ['wrong parameters', line({ version: 1, method: 'profile', params: { seconds: 0 } }), 'OBSERVE_ARGUMENT'],
  [
    'an unknown parameter',
    line({ version: 1, method: 'profile', params: { second: 1 } }),
    'OBSERVE_ARGUMENT',
  ],
]

test('what a client sends ends in an error with a code, and the process goes on', () =>
  observed({}, async ({ path }) => {
    for (const [what, bytes, code, facts] of hostile) {
      const [answer] = (await sent(path, bytes)) as [
        { error: { code: string; facts: object; message: string } },
      ]
      assert.equal(answer.error.code, code, what)
      assert.ok(answer.error.message.length < 1000, what)
      if (facts !== undefined) assert.deepEqual(answer.error.facts, facts)
    }
    assert.deepEqual(await sent(path, '', true), [], 'a client that sends nothing')
    assert.deepEqual(await sent(path, '{"version":1,"met', true), [], 'half a request')
    // One that leaves in the middle of its request and of its answer.
    for (const bytes of ['{"ver', line({ version: 1, method: 'stacks' })])
      await new Promise<void>((resolve) => {
        const socket = connect(path, () => socket.write(bytes, () => socket.destroy()))
        socket.on('close', () => resolve())
      })
    assert.ok('result' in (await answerOf(path, 'info')))
  }))

test('more connections than 16 are refused, and others are answered afterwards', () =>
  observed({}, async ({ path }) => {
    const idle = Array.from({ length: 16 }, () => connect(path))
    await Promise.all(idle.map((socket) => once(socket, 'connect')))
    // The thread accepts them in order.
    const refused = await answerOf(path, 'info')
    assert.equal(refused.error?.code, 'OBSERVE_BUSY')
    for (const socket of idle) socket.destroy()
    let answer = refused
    while (answer.error !== undefined) answer = await answerOf(path, 'info')
    assert.ok('result' in answer)
  }))

test('with allowControl a client reloads a zone and calls the actions of the program', () =>
  inZone({ workers: 1 }, async (own) => {
    const asked: unknown[] = []
    const actions = {
      drain: (params: object) => void asked.push(params),
      add: ({ a, b }: { a?: number; b?: number }) => (a ?? 0) + (b ?? 0),
      fail: () => {
        throw new Error('not now')
      },
    }
    await observed({ allowControl: true, actions }, async ({ path }) => {
      const control = async (action: string, params: unknown): Promise<unknown> => {
        const { result, error } = await answerOf(path, 'control', { action, params })
        return error === undefined ? result : [error.code, error.message]
      }
      const before = await own.run(() => process.hrtime.bigint())
      assert.equal(await control('reload', { zone: own.id }), null)
      assert.ok((await own.run(() => process.hrtime.bigint())) > before)
      assert.equal(await control('drain', { gently: true }), null)
      assert.deepEqual(asked, [{ gently: true }])
      assert.equal(await control('add', { a: 1, b: 2 }), 3)
      assert.deepEqual(await control('fail', {}), ['OBSERVE_FAILED', 'fail failed: not now'])
      assert.match(String(await control('reload', { zone: 'missing' })), /missing/)
      assert.match(String(await control('reload', {})), /OBSERVE_ARGUMENT/)
      assert.match(
        String(await control('exit', {})),
        /OBSERVE_FORBIDDEN.*allowed: reload, retry, drain, add, fail/,
      )
      assert.match(String(await control('drain', 1)), /OBSERVE_REQUEST/)
    })
    await observed({ actions }, async ({ path }) => {
      const { error } = await answerOf(path, 'control', { action: 'drain' })
      assert.equal(error?.code, 'OBSERVE_FORBIDDEN')
    })
    assert.equal(asked.length, 1)
    assert.ok(zone.get(own.id))
  }))

test(
  'a process is found by its pid and by its name; two of one name have their pids',
  { skip: !isUnix },
  async () => {
    const other = createServer().listen(join(SOCKETS, `${process.ppid}.twin.sock`))
    await once(other, 'listening')
    await observed({ name: 'twin' }, async ({ path }) => {
      assert.equal((await findProcess(String(process.pid)))[0].path, path)
      const pids = [process.pid, process.ppid].sort((a, b) => a - b)
      await assert.rejects(findProcess('twin'), {
        code: 'OBSERVE_AMBIGUOUS',
        facts: { process: 'twin', pids },
      })
      await assert.rejects(findProcess('nobody'), {
        code: 'OBSERVE_UNKNOWN',
        message: /that have one: \d+ \(twin\)/,
      })
    })
    other.close()
  },
)

/** What a process named `killed` leaves that was killed: a socket that nobody listens on. */
async function leftSocket(): Promise<string> {
  const stale = socketPath(NO_PID, 'killed', undefined)
  const left = createServer().listen(`${stale}.listening`)
  await once(left, 'listening')
  linkSync(`${stale}.listening`, stale)
  await new Promise((resolve) => left.close(resolve))
  return stale
}

test('sockets of processes that were killed are removed', { skip: !isUnix }, async () => {
  const stale = await leftSocket()
  await assert.rejects(findProcess('killed'), {
    code: 'OBSERVE_UNKNOWN',
    facts: { process: 'killed', known: [] },
  })
  assert.equal(existsSync(stale), false)
  assert.deepEqual(await controlSockets(), [])
})

test('they are removed as well by the next process that opens one', { skip: !isUnix }, async () => {
  const stale = await leftSocket()
  assert.equal(existsSync(stale), true)
  await observed({}, () => until(() => !existsSync(stale)))
})

test('a folder that others own, can enter or have put there is refused', { skip: !isUnix }, async () => {
  const refused = (reason: RegExp): Promise<void> =>
    assert.rejects(observe(), { code: 'OBSERVE_FOLDER', message: reason })
  rmSync(SOCKETS, { recursive: true, force: true })
  mkdirSync(SOCKETS, { mode: 0o700 })
  chmodSync(SOCKETS, 0o750)
  await refused(/others may enter it \(mode 750\)/)
  await assert.rejects(findProcess('x'), { code: 'OBSERVE_FOLDER' })
  rmSync(SOCKETS, { recursive: true })
  symlinkSync('.', SOCKETS)
  await refused(/not a directory/)
  rmSync(SOCKETS)
  writeFileSync(SOCKETS, '')
  await refused(/corespun/)
  rmSync(SOCKETS)
  await observed({}, async ({ path }) => assert.ok(existsSync(path)))
  const { XDG_RUNTIME_DIR: before } = process.env
  // As that of another user, whose folder may not even be looked into.
  process.env['XDG_RUNTIME_DIR'] = `${before}/file`
  writeFileSync(`${before}/file`, '')
  try {
    await refused(/XDG_RUNTIME_DIR, if it is set, must be a folder of this user/)
    await assert.rejects(findProcess('x'), { code: 'OBSERVE_FOLDER', message: /XDG_RUNTIME_DIR/ })
  } finally {
    process.env['XDG_RUNTIME_DIR'] = before
  }
})

test('a process that is not found is named as it was asked for', async () => {
  const facts = { code: 'OBSERVE_UNKNOWN' }
  await assert.rejects(findProcess('orders'), { ...facts, message: /^no process named orders has/ })
  await assert.rejects(findProcess(`${NO_PID}`), {
    ...facts,
    message: new RegExp(`^process ${NO_PID} has no control socket; corespun serve`),
  })
})

for (const [path, name] of [
  ['/app/orders.ts', 'orders'],
  ['C:\\app\\server.min.js', 'server-min'],
  ['/app/[slug].ts', 'slug-'],
  ['/app/--help.js', 'help'],
  ['/app/\u{7531}.js', 'node'],
  ['', 'node'],
] as const)
  test(`a process that runs ${path} is called ${name}`, () => assert.equal(nameOf(path, 'node'), name))

test(
  'a folder that is too long for sockets is refused, and names of workers are cut',
  { skip: !isUnix },
  () => {
    const { XDG_RUNTIME_DIR: before } = process.env
    const base = mkdtempSync('/tmp/long-')
    const roomOf = (bytes: number): void => {
      process.env['XDG_RUNTIME_DIR'] = join(base, 'x'.repeat(103 - base.length - bytes))
    }
    try {
      const name = 'a'.repeat(32)
      roomOf('/corespun/1234567.'.length + 32 + '.sock'.length)
      assert.throws(() => socketPath(1_234_567, name, undefined), { code: 'OBSERVE_FOLDER' })
      roomOf('//corespun/1234567.'.length + 32 + '.sock'.length)
      assert.equal(Buffer.byteLength(socketPath(1_234_567, name, undefined)), 103)
      const cut = socketPath(1_234_567, name, 7_654_321)
      assert.match(cut, /\/1234567\.a{24}\.7654321\.sock$/)
    } finally {
      process.env['XDG_RUNTIME_DIR'] = before
      rmSync(base, { recursive: true })
    }
  },
)

test('a process that does not answer is reported', { skip: !isUnix }, async () => {
  const path = socketPath(process.pid, 'mute', undefined)
  const socket = { pid: process.pid, name: 'mute', parent: undefined, path }
  const answers: ((bytes: string) => string | undefined)[] = [() => '', () => 'no JSON\n', () => undefined]
  const server = createServer((client) => {
    client
      .on('error', () => {})
      .once('data', () => {
        const answer = answers.shift()?.('')
        if (answer !== undefined) client.end(answer)
      })
  }).listen(path)
  await once(server, 'listening')
  await assert.rejects(ask(socket, 'info', {}, { timeoutMs: 5000 }), {
    code: 'OBSERVE_CUT',
    message: /closed/,
  })
  await assert.rejects(ask(socket, 'info', {}, { timeoutMs: 5000 }), { code: 'OBSERVE_CUT', message: /JSON/ })
  await assert.rejects(ask(socket, 'info', {}, { timeoutMs: 50 }), { code: 'OBSERVE_CUT', message: /50 ms/ })
  await new Promise((resolve) => server.close(resolve))
  await assert.rejects(ask(socket, 'info', {}, { timeoutMs: 50 }), { code: 'OBSERVE_CUT' })
})
