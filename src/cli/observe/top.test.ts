/**
 * `corespun top` on a terminal of the test: keys, sizes, what is done by control.
 * Processes that end, do not answer, or are of another version.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { type Server, createServer } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { SOCKETS, observed } from '../../observe/observe.test.support.ts'
import { sample } from '../../observe/view.test.support.ts'
import { command } from '../command.ts'
import type { CommandContext } from '../run/run.ts'

/** A command on a terminal. */
function started(words: readonly string[], size: object | null = { columns: 80, rows: 24 }) {
  const stdin = Object.assign(new PassThrough(), {
    isTTY: size !== null,
    modes: [] as boolean[],
    setRawMode: (raw: boolean) => stdin.modes.push(raw),
  })
  const stdout = Object.assign(new PassThrough(), { isTTY: size !== null, ...size })
  const stderr = new PassThrough()
  const all = { out: '', err: '', signals: [] as (() => void)[] }
  stdout.on('data', (bytes: Buffer) => (all.out += bytes.toString()))
  stderr.on('data', (bytes: Buffer) => (all.err += bytes.toString()))
  const context = {
    stdin,
    stdout,
    stderr,
    folder: '.',
    onSignal: (listener: () => void) => {
      all.signals.push(listener)
      return () => {}
    },
  } as unknown as CommandContext
  const ended = command(['top', ...words], context)
  const press = (keys: string): void => void stdin.write(keys)
  /** The last whole screen. */
  const screen = (): string => all.out.slice(all.out.lastIndexOf('\u001B[?2026h'))
  return { ...all, all, stdin, stdout, press, screen, ended }
}

/** A process that answers like that, whatever is asked. */
async function answering(name: string, answer: (line: string) => object | undefined): Promise<Server> {
  mkdirSync(SOCKETS, { recursive: true, mode: 0o700 })
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      const given = answer(bytes.toString())
      if (given === undefined) socket.destroy()
      else socket.end(`${JSON.stringify(given)}\n`)
    })
  })
  await once(server.listen(join(SOCKETS, `${process.pid}.${name}.sock`)), 'listening')
  return server
}

test('it is drawn, resized, walked through by keys, and leaves the terminal as it was', () =>
  observed({ name: 'watched' }, async () => {
    const { stdin, stdout, press, screen, ended, all } = started(['watched', '--every', '50ms'])
    await until(() => screen().includes('q quit'))
    assert.ok(all.out.startsWith('\u001B[?1049h\u001B[?25l'))
    assert.match(screen(), new RegExp(`watched \\(${process.pid}\\)`))
    assert.deepEqual(stdin.modes, [true])
    Object.assign(stdout, { columns: 20, rows: 5 }).emit('resize')
    await until(() => screen().split('\r\n').length === 5)
    Object.assign(stdout, { columns: 1, rows: 1 }).emit('resize')
    Object.assign(stdout, { columns: 80, rows: 24 }).emit('resize')
    press('1')
    await until(() => screen().includes('↑↓ row'))
    press('\u001B[B\u001B[A\u001B[6~\u001B[5~\t\u001B[Zxyz\u001B[99;99R\r0')
    await until(() => !screen().includes('↑↓ row'))
    press('q')
    assert.equal(await ended, 0)
    assert.ok(all.out.endsWith('\u001B[?25h\u001B[?1049l'))
    assert.deepEqual(stdin.modes, [true, false])
    assert.equal(all.err, '')
  }))

for (const [what, end] of [
  ['Ctrl-C', ({ press }: ReturnType<typeof started>) => press('\u0003')],
  ['a signal', ({ all }: ReturnType<typeof started>) => all.signals.forEach((signal) => signal())],
] as const)
  test(`${what} ends it`, () =>
    observed({ name: 'left' }, async () => {
      const run = started(['left', '--every', '1h'])
      await until(() => run.screen().includes('q quit'))
      end(run)
      assert.equal(await run.ended, 0)
      assert.ok(run.all.out.endsWith('\u001B[?1049l'))
    }))

test('two watch at once', () =>
  observed({ name: 'both' }, async () => {
    const runs = [started(['both', '--every', '20ms']), started(['both', '--every', '20ms'])]
    for (const { screen } of runs) await until(() => screen().includes('both ('))
    for (const { press } of runs) press('q')
    assert.deepEqual(await Promise.all(runs.map(({ ended }) => ended)), [0, 0])
  }))

test('a job is retried and a process drained once that is confirmed', async () => {
  const asked: { action: string; params: object }[] = []
  const actions = ['retry', 'drain']
  const server = await answering('control', (line) => {
    const { method, params } = JSON.parse(line) as { method: string; params: (typeof asked)[0] }
    if (method === 'control') asked.push(params)
    return { result: method === 'control' ? true : sample({ actions }) }
  })
  try {
    const { press, screen, ended } = started(['control', '--every', '20ms'])
    await until(() => screen().includes('d drain'))
    const dead = /(\d) DEAD JOB/.exec(screen())![1]
    press(dead)
    await until(() => screen().includes('enter retry'))
    press('\rn')
    press('\r')
    await until(() => screen().includes('run the job invoice-17 of mail anew? y/n'))
    press('y')
    await until(() => screen().includes('retry: true'))
    press('d')
    await until(() => screen().includes('stop this process? y/n'))
    press('y')
    await until(() => asked.length === 2)
    assert.deepEqual(asked, [
      { action: 'retry', params: { zone: 'mail', key: 'invoice-17' } },
      { action: 'drain', params: {} },
    ])
    press('q')
    assert.equal(await ended, 0)
  } finally {
    server.close()
  }
})

test('where nothing is allowed no key asks for anything', async () => {
  const methods = new Set<string>()
  const server = await answering('closed', (line) => {
    methods.add((JSON.parse(line) as { method: string }).method)
    return { result: sample() }
  })
  try {
    const { press, screen, ended } = started(['closed', '--every', '20ms'])
    await until(() => screen().includes('DEAD JOB'))
    for (const key of '123456789') press(`${key}\rydy`)
    await until(() => screen().includes('↑↓ row'))
    press('q')
    assert.equal(await ended, 0)
    assert.deepEqual([...methods], ['snapshot'])
  } finally {
    server.close()
  }
})

test('the end of the process is reported after the terminal is restored', async () => {
  let server: Server | undefined = await answering('mortal', () => {
    const result = sample()
    if (server === undefined) return undefined
    return { result }
  })
  const { screen, ended, all } = started(['mortal', '--every', '20ms'])
  await until(() => screen().includes('q quit'))
  const closing = server
  server = undefined
  closing.close()
  assert.equal(await ended, 1)
  assert.ok(all.out.endsWith('\u001B[?1049l'))
  assert.equal(all.err, `corespun: process ${process.pid} (mortal) has ended\n`)
})

test('a process that answers no more is still shown, and that it does not', async () => {
  let isSilent = false
  const server = await answering('silent', () => (isSilent ? undefined : { result: sample() }))
  try {
    const { press, screen, ended } = started(['silent', '--every', '20ms'])
    await until(() => screen().includes('q quit'))
    isSilent = true
    await until(() => screen().includes('no answer: '))
    assert.match(screen(), /orders \(4711\)/)
    isSilent = false
    await until(() => screen().includes('q quit'))
    press('q')
    assert.equal(await ended, 0)
  } finally {
    server.close()
  }
})

for (const [what, answer, message] of [
  [
    'an older version',
    {
      error: {
        code: 'OBSERVE_METHOD',
        facts: { method: 'snapshot', known: ['info', 'stacks'] },
        message: 'unknown',
      },
    },
    /unknown method snapshot \(expected info, stacks\)/,
  ],
  [
    'a newer version',
    { result: { version: 2 } },
    /unsupported protocol version 2 \(expected 1\); run the command/,
  ],
  ['something else', { result: null }, /missing protocol version \(expected 1\)/],
] as const)
  test(`a process of ${what} is refused by one line`, async () => {
    const server = await answering('other', () => answer)
    try {
      const { ended, all } = started(['other'])
      assert.equal(await ended, 2)
      assert.match(all.err, message)
      assert.equal(all.out, '')
    } finally {
      server.close()
    }
  })

test('without a terminal it is printed once, as with --once', () =>
  observed({ name: 'printed' }, async () => {
    for (const run of [
      started(['printed', '--every', '20ms'], null),
      started(['printed', '--once', '--every', '20ms']),
    ]) {
      assert.equal(await run.ended, 0)
      assert.match(run.all.out, new RegExp(`^printed \\(${process.pid}\\) on .*\n.*CPU \\d`))
      assert.ok(!run.all.out.includes('\u001B'))
    }
  }))

test('JSON has the totals, and nothing that a terminal obeys', async () => {
  const server = await answering('json', () => ({ result: sample({ name: '\u009B31m\u202E\u{E0001}' }) }))
  try {
    const { ended, all } = started(['json', '--json'])
    assert.equal(await ended, 0)
    assert.doesNotMatch(all.out, /[^\P{C}\n]/u)
    assert.deepEqual(JSON.parse(all.out), sample({ name: '\u009B31m\u202E\u{E0001}' }))
  } finally {
    server.close()
  }
})

test('the only process needs no name; of several one must be named', async () => {
  const { ended, all } = started(['--json'])
  assert.equal(await ended, 2)
  assert.match(all.err, /no process of this user has a control socket/)
  await observed({ name: 'only' }, async () => {
    const one = started(['--json'])
    assert.equal(await one.ended, 0)
    assert.equal((JSON.parse(one.all.out) as { name: string }).name, 'only')
    const server = await answering('another', () => ({ result: sample() }))
    try {
      const both = started([])
      assert.equal(await both.ended, 2)
      assert.match(both.all.err, new RegExp(`name one of these processes: ${process.pid} \\(`))
    } finally {
      server.close()
    }
  })
})
