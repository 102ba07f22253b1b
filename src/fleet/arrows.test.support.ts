/**
 * What arrows promise whose parts run on other machines, as tests that run on any engine.
 *
 * Hosts and callers are in this process, each with a connection of its own.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import {
  type Arrow,
  effect,
  exported,
  fromFiber,
  ifThenElse,
  lift,
  liftAsync,
  succeed,
  whileDo,
} from '../arrow/index.ts'
import { fork, on } from '../fiber/index.ts'
import { encode } from '../transport/index.ts'
import { type AnyZone, ZoneError, withTrace, zone } from '../zone/index.ts'
import { FAR } from '../zone/internal.ts'
import type { Fleet } from './connect.ts'
import { newName } from './engine/conformance.test.support.ts'
import { FleetError } from './errors.ts'
import { type FleetHost, type HostOptions, host } from './host/host.ts'
import * as parts from './parts.test.support.ts'
import { ScoreError } from './scores.test.support.ts'
import type { FarZone } from './zone/far-zone.ts'

type Parts = typeof parts
const MODULE = new URL('./parts.test.support.js', import.meta.url)

interface Setting {
  readonly name: string
  readonly far: FarZone<Parts>
  readonly cpu: AnyZone
  readonly caller: Fleet
  readonly hosting: Fleet
  readonly running: FleetHost
  /** A path that does not exist. */
  readonly file: string
}

type Check = (
  title: string,
  work: (setting: Setting) => Promise<void>,
  options?: Partial<HostOptions>,
) => void

/** The tests, with connections that `connect` makes. */
export function arrowTests(kind: string, connect: () => Promise<Fleet>): void {
  const cpu = zone.create(`arrows ${kind}`, { workers: 2, graceMs: 100 })
  const folder = mkdtempSync(join(tmpdir(), 'fleet-arrows-'))
  after(async () => {
    await cpu.close()
    rmSync(folder, { recursive: true })
  })
  const check: Check = (title, work, options = {}) => {
    test(`${kind}: ${title}`, async () => {
      const name = newName()
      await using caller = await connect()
      await using hosting = await connect()
      const running = await host(hosting, { name, module: MODULE, version: 'v1', zone: cpu, ...options })
      const far = caller.zone<Parts>(name, { module: MODULE, version: 'v1' })
      await work({ name, far, cpu, caller, hosting, running, file: join(folder, newName()) })
    })
  }
  results(check)
  failures(check)
  refusals(check)
  ends(check)
}

/** A pipeline of all kinds of stages, whose heavy part runs at `target`. */
function pipeline(target: AnyZone | FarZone<Parts>): Arrow<string, string, unknown> {
  const far = lift(parts.plus)
    .andThen(whileDo(lift(parts.isSmall), lift(parts.doubled)))
    .zipWith(succeed(7), parts.sum)
    .andThen(ifThenElse(lift(parts.isSmall), lift(parts.plus), liftAsync(parts.slowly).timeout(60_000)))
    .andThen(fromFiber(parts.inFiber))
    .flatMap(parts.doubling)
    .named('heavy')
    .on(target)
  return effect((text: string) => text.length, String)
    .andThen(far)
    .map((x) => `${x}`)
}

function results(check: Check): void {
  check('a pipeline has the same results here, in a zone and on other machines', async ({ far, cpu }) => {
    for (const text of ['', 'abc', 'x'.repeat(99), 'x'.repeat(150)]) {
      const expected = await pipeline(zone.node).run(text)
      assert.equal(await pipeline(cpu).run(text), expected)
      assert.equal(await pipeline(far).run(text), expected)
    }
    assert.equal(await lift(parts.isRemote).on(far).run(undefined), true)
    const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
    const traced = lift(parts.traceHere).on(far)
    assert.deepEqual(await withTrace(trace, () => traced.run(undefined)), trace)
  })

  check('explain shows the far hop, and its cost after runs', async ({ far, name }) => {
    const arrow = lift(parts.plus)
      .andThen(liftAsync(parts.slowly))
      .on(far)
      .andThen(lift(parts.doubled).on(far))
    assert.ok(arrow.explain().includes(`on far zone ${name}\n`), arrow.explain())
    for (let run = 0; run < 5; run += 1) assert.equal(await arrow.run(run), (run + 1) * 2)
    const text = arrow.explain()
    const cost = `on far zone ${name} +5 hops, each [\\d.]+ [nµm]?s in the worker \\+ .+ on the way`
    assert.match(text, new RegExp(cost))
    assert.match(text, /plus +\d calls? measured, mean/)
    assert.match(arrow.explain({ format: 'mermaid' }), new RegExp(`on far zone ${name}: 5 hops`))
  })

  check('a stream sends a call for each input, and keeps their order', async ({ far }) => {
    const inputs = Array.from({ length: 100 }, (_, index) => index)
    const warnings: Error[] = []
    const warned = (warning: Error): void => void warnings.push(warning)
    process.on('warning', warned)
    const found: number[] = []
    for await (const one of lift(parts.doubled).on(far).stream(inputs, { concurrency: 20 })) found.push(one)
    assert.deepEqual(
      found,
      inputs.map((each) => each * 2),
    )
    // The runs share a signal, on which they have one listener together.
    await turn()
    process.removeListener('warning', warned)
    assert.deepEqual(warnings, [])
  })
}

function failures(check: Check): void {
  check('failures come back as failures, defects with class, code and cause', async ({ far }) => {
    const parsed = effect(parts.parse, parts.nameOf).on(far)
    assert.deepEqual(await parsed.runExit('{'), { kind: 'failure', error: 'SyntaxError', others: [] })
    assert.equal(await parsed.catchAll(() => succeed('none')).run('{'), 'none')
    const defect = await lift(parts.broken)
      .on(far)
      .catchAll(() => succeed(1))
      .runExit('LOW')
    assert.ok(defect.kind === 'defect' && defect.defect instanceof ScoreError)
    assert.equal(defect.defect.code, 'LOW')
    assert.ok(defect.defect.cause instanceof RangeError)
    await assert.rejects(lift(parts.broken).on(far).run('LOW'), ScoreError)
  })

  check('a failure that cannot travel arrives with what of it can', async ({ far }) => {
    const exit = await effect(parts.parse, parts.oddly).on(far).runExit('{')
    assert.ok(exit.kind === 'failure' && exit.error instanceof Error, JSON.stringify(exit))
    await assert.rejects(lift(parts.rows).on(far).run(undefined), { name: 'TransportError' })
    await assert.rejects(
      lift(parts.plus)
        .on(far)
        .run((() => 1) as never),
      { name: 'TransportError' },
    )
  })
}

function refusals(check: Check): void {
  check('code that hosts do not have is refused', async ({ far, caller, name, cpu }) => {
    assert.throws(() => lift(parts.own).on(far), { code: 'ARROW_NOT_HOSTED', message: /function own is not/ })
    const typed = exported(MODULE.href, (x: number) => x, 'missing')
    await assert.rejects(lift(typed).on(far).run(1), (error) => {
      assert.ok(error instanceof FleetError && error.code === 'EXPORT_MISSING')
      assert.match(error.message, /no function "missing"; its module exports .*doubled/)
      return true
    })
    const anyModule = caller.zone<Parts>(name)
    assert.throws(() => lift(parts.plus).on(anyModule), { code: 'ARROW_ARGUMENT', message: /\{ module \}/ })
    // With another module it is another zone, though the name and the version are the same.
    const module = new URL('./scores.test.support.js', import.meta.url)
    const echo = lift(exported(module.href, (x: number) => x, 'echo'))
    const row = lift(parts.plus)
      .on(far)
      .andThen(echo.on(caller.zone(name, { module, version: 'v1' })))
    await assert.rejects(row.run(1), { code: 'EXPORT_MISSING' })
    const inside = (): unknown => lift(parts.plus).on(far).andThen(lift(parts.plus)).on(cpu)
    assert.throws(inside, { code: 'TRANSPORT_REFUSED', message: /thread of its connection/ })
    for (const target of [far as never, caller as never]) {
      assert.throws(() => fork(() => 1, { on: target }), { code: 'FIBER_ARGUMENT', message: /this process/ })
      assert.throws(() => on(target, parts.plus, 1), { code: 'FIBER_ARGUMENT', message: /this process/ })
    }
    const exit = await fork(lift(parts.plus).on(far), { input: 1 }).await()
    assert.deepEqual(exit, { kind: 'success', value: 2 })
  })

  check('the version of the module is that of the files here', async ({ caller, hosting, cpu }) => {
    const name = newName()
    await host(hosting, { name, module: MODULE, zone: cpu })
    assert.equal(
      await lift(parts.doubled)
        .on(caller.zone<Parts>(name, { module: MODULE }))
        .run(4),
      8,
    )
    const other = caller.zone<Parts>(name, { module: MODULE, version: 'other' })
    await assert.rejects(lift(parts.doubled).on(other).run(4), { code: 'ZONE_NOWHERE' })
  })

  check('a host runs nothing of bytes that are not a part', async ({ far }) => {
    for (const part of [new Uint8Array(), encode([]), encode([[27, -1, -1, { is: 'nothing' }]])]) {
      const error: unknown = await far[FAR].run(part, 1, undefined).catch((thrown: unknown) => thrown)
      assert.match(String((error as { code?: unknown }).code), /^(ARROW_PLAN|TRANSPORT_)/)
    }
    await assert.rejects(far.run('' as never, [1]), { code: 'FLEET_ARGUMENT' })
    await assert.rejects(far.module()['' as 'plus'](1), { code: 'FLEET_ARGUMENT' })
    assert.equal(await lift(parts.plus).on(far).run(1), 2)
  })
}

function ends(check: Check): void {
  check('an interruption ends the part on its host', async ({ far, running }) => {
    const arrow = liftAsync(parts.wait).on(far)
    const controller = new AbortController()
    const exit = arrow.runExit(undefined, controller.signal)
    while (running.inFlight === 0) await turn()
    controller.abort('enough')
    assert.deepEqual(await exit, { kind: 'interruption', reason: 'enough', others: [] })
    while (running.inFlight > 0) await turn()
    const late = await arrow.timeout(30).runExit(undefined)
    assert.ok(late.kind === 'failure' && (late.error as { code?: unknown }).code === 'ARROW_TIMEOUT')
    while (running.inFlight > 0) await turn()
    assert.equal(await lift(parts.plus).on(far).run(1), 2)
  })

  check('a part has the time that the code which runs it has left', async ({ far, running }) => {
    const within = zone.node.with({ timeoutMs: 60_000 })
    const leftMs = await within.run(async () => lift(parts.leftMs).on(far).run(undefined))
    assert.ok(leftMs !== undefined && leftMs > 0 && leftMs <= 60_000, `${leftMs}`)
    assert.equal(await lift(parts.leftMs).on(far).run(undefined), undefined)
    let inner: Promise<unknown> | undefined
    const outer = zone.node.with({ timeoutMs: 30 }).run(async () => {
      inner = liftAsync(parts.wait)
        .on(far)
        .run(undefined)
        .catch((error: unknown) => error)
      return await inner
    })
    await assert.rejects(outer, { code: 'TASK_TIMEOUT' })
    const error = await inner
    assert.ok(error instanceof ZoneError && error.code === 'TASK_TIMEOUT', String(error))
    assert.equal((error.facts as { inherited?: unknown }).inherited, true)
    while (running.inFlight > 0) await turn()
  })

  check(
    'a full zone, one without hosts and a lost host are defects of the run',
    async ({ far, file, hosting, running, caller }) => {
      const arrow = liftAsync(parts.held).on(far)
      const busy = arrow.run(file)
      while (running.inFlight === 0) await turn()
      const full = await arrow.catchAll(() => succeed(0)).runExit(file)
      assert.ok(
        full.kind === 'defect' && full.defect instanceof ZoneError && full.defect.code === 'ZONE_FULL',
      )
      writeFileSync(file, '')
      assert.equal(await busy, 0)
      const nowhere = caller.zone<Parts>(newName(), { module: MODULE, version: 'v1' })
      await assert.rejects(lift(parts.plus).on(nowhere).run(1), { code: 'ZONE_NOWHERE' })
      const lost = liftAsync(parts.wait).on(far).runExit(undefined)
      while (running.inFlight === 0) await turn()
      await hosting.engine.close()
      const exit = await lost
      assert.ok(
        exit.kind === 'defect' && (exit.defect as { code?: unknown }).code === 'HOST_LOST',
        String(exit),
      )
      await running.close({ timeoutMs: 0 })
    },
    { inFlightMax: 1 },
  )
}
