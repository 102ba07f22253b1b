/**
 * One run under one seed: its tasks, what is ready, what waits, and a clock that moves by itself.
 *
 * A step lets one wait end, and then all promises of the thread settle; so a program is interleaved at its
 * waits, and nowhere else. Steps are immediates of Node, many in one phase of the event loop, so that no I/O
 * has its turn between them. A task that dies stays where it waits: none of its code runs any more, not even
 * `finally`. The clock is a choice like all others: it moves when nothing is ready, and now and then before.
 *
 *   ready --chosen--> running --wait--> blocked --resolve--> ready        dead: in none of them
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Seeded, generator } from '../base/index.ts'
import { type FiberDump, dump } from '../fiber/index.ts'
import { thisBridge } from '../bridge/index.ts'
import { native } from '../native/index.ts'
import { CheckError } from './errors.ts'
import { frameOf } from './frames.ts'

/** Steps that one phase of the event loop has: few at first, since most runs are short. */
const STEPS_OF_PHASE_MAX = 256
/** Steps of one task, and of all without time, while others could go on: the plain order is fair. */
const STEPS_IN_A_ROW_MAX = 50
const STEPS_WITHOUT_TIME_MAX = 500
/** A timer of exactly this, the most that Node has, only keeps a process alive; it never fires here. */
const FOREVER_MS = 2 ** 31 - 1
/** The time of day at which a run begins. */
export const EPOCH_MS = Date.UTC(2026, 0, 1)
/** How many moves of time step the clock of the day, where that steps. */
const CLOCK_STEPS = 0.05
/** The choice that lets time pass. */
export const CLOCK = -1
const { setImmediate: soon } = globalThis

/** Which task's code is running. */
export const current = new AsyncLocalStorage<Actor>()

/** A task as its run has it. */
export class Actor implements Seeded {
  readonly name: string
  readonly number: number
  readonly play: Play
  readonly parent: Actor | undefined
  readonly children = new Set<Actor>()
  /** What is done when it dies, as releasing a lock, and what it waits for until then. */
  readonly #atDeath = new Map<() => void, Blocked | undefined>()
  readonly random: () => number
  /** How likely it dies at a wait. */
  deaths = 0
  isDead = false
  waitCount = 0

  constructor(play: Play, name: string, parent: Actor | undefined) {
    this.play = play
    this.name = name
    this.number = play.actors.length
    this.parent = parent
    this.random = generator(Math.imul(play.seed + 1, 0x9e3779b1) + this.number)
    play.actors.push(this)
    parent?.children.add(this)
  }

  /** Of those that the first task has spawned each is one. */
  get process(): string {
    const { parent } = this
    return parent === undefined ? '' : parent.process || `${this.number} `
  }

  step(what: string): Promise<void> {
    return new Promise((resolve) => this.play.ready(this, what, resolve))
  }

  deliver(what: string, run: () => void): void {
    this.play.ready(this, what, () => current.run(this, run))
  }

  whenDead(run: () => void, what?: string): () => void {
    const once = (): void => run()
    this.#atDeath.set(once, what === undefined ? undefined : { actor: this, what, where: this.play.where() })
    return () => this.#atDeath.delete(once)
  }

  created(store: object, file: string | undefined): void {
    this.play.created(this, store, file)
  }

  /** None of its code goes on; false if it was dead. */
  die(): boolean {
    if (this.isDead) return false
    this.isDead = true
    for (const release of this.#atDeath.keys()) release()
    return true
  }

  /** What of others' it waits for. */
  get waits(): readonly Blocked[] {
    return [...this.#atDeath.values()].filter((blocked) => blocked !== undefined)
  }
}

/** A wait that can end now. */
export interface Entry {
  readonly actor: Actor
  /** Which it is, in every run of the program that comes here. */
  readonly key: string
  readonly what: string
  readonly where: string
  readonly resume: () => void
}

interface Timer {
  readonly atMs: number
  readonly run: () => void
  isOver: boolean
}

/** A wait that somebody else ends. */
export interface Wait<Value> {
  readonly promise: Promise<Value>
  resolve(value: Value): void
  reject(error: unknown): void
}

interface Blocked {
  readonly actor: Actor
  readonly what: string
  readonly where: string
}

/** At which step another choice was made than the plain one: which wait has ended instead. */
export type Deviation = readonly [step: number, key: string]

/** What a strategy chooses from: {@link CLOCK} lets time pass, and may be chosen if there is a timer. */
export interface Choice {
  readonly ready: readonly Entry[]
  /** What goes on in the plain order: the task that ran last, or the one that is ready for longest. */
  readonly plain: number
  readonly hasTimers: boolean
  readonly step: number
}

export type Strategy = (choice: Choice) => number

/** How a run has ended. */
export type Ending =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'deadlock' | 'livelock' | 'leak'; readonly waits: string }

export interface PlaySettings {
  readonly seed: number
  readonly strategy: Strategy
  readonly stepsMax: number
  /** How far the clock of the day steps at most. */
  readonly clockStepMs: number
  /** Whether what is open at its end fails the run. */
  readonly leaks: boolean
  /** Whether lines of the program are looked up, which takes time. */
  readonly isShown: boolean
}

export class Play {
  readonly seed: number
  readonly actors: Actor[] = []
  readonly root: Actor
  readonly deviations: Deviation[] = []
  readonly shown: string[] = []
  /** What a run leaves behind that is to be ended. */
  readonly atEnd: (() => void)[] = []
  /** That of its servers. */
  fetch!: typeof fetch
  /** A store that a task has created. */
  created!: (owner: Actor, store: object, file: string | undefined) => void
  /** A WebSocket to one of its servers. */
  socket!: (url: string | URL, protocols?: string | readonly string[]) => object
  /** Of failed tasks that nobody has joined. */
  readonly lost = new Map<Actor, unknown>()
  /** Rejections and failures of fibers that nobody handles: outside of a run they end the process. */
  readonly unhandled: unknown[] = []
  steps = 0
  trace = 0
  #nowMs = 0
  /** How far the clock of the day has stepped. */
  #steppedMs = 0
  isOver = false
  readonly #settings: PlaySettings
  readonly #chance: () => number
  #ready: Entry[] = []
  readonly #blocked = new Set<Blocked>()
  /** What is to be closed before the run ends. */
  readonly #open = new Set<Blocked>()
  /** The last fiber before it. */
  readonly #fiberBefore: number
  readonly #timers: Timer[] = []
  #last: Actor
  #inARow = 0
  #sinceTime = 0

  constructor(settings: PlaySettings) {
    this.#settings = settings
    this.seed = settings.seed
    this.#chance = generator(settings.seed ^ 0x5bd1e995)
    this.root = new Actor(this, 'main', undefined)
    this.#last = this.root
    this.#fiberBefore = settings.leaks ? Math.max(0, ...fibers().map(({ id }) => id)) : 0
  }

  /** The task whose code calls. @throws {CheckError} `CHECK_OUTSIDE`. */
  actor(call: string): Actor {
    const actor = current.getStore()
    if (actor?.play !== this) throw new CheckError('CHECK_OUTSIDE', { call })
    return actor
  }

  nowMs(): number {
    return this.#nowMs
  }

  /** The time of day: of a clock that is set. */
  wallMs(): number {
    return EPOCH_MS + this.#nowMs + this.#steppedMs
  }

  /** Whether nobody can go on until time passes. */
  get isIdle(): boolean {
    return this.#ready.length === 0
  }

  /** What is open until what is returned is called. */
  opened(actor: Actor, what: string): () => void {
    const left = { actor, what, where: this.where() }
    this.#open.add(left)
    return () => void this.#open.delete(left)
  }

  /** A share of all cases. */
  happens(share: number): boolean {
    return share > 0 && this.#chance() < share
  }

  /** Let `resume` be called when it is chosen. */
  ready(actor: Actor, what: string, resume: () => void, where = this.where()): void {
    if (actor.isDead || this.isOver) return
    this.#ready.push({ actor, what, where, key: `${actor.number}.${++actor.waitCount}`, resume })
  }

  /** A wait that others end. */
  wait<Value>(actor: Actor, what: string): Wait<Value> {
    const blocked = { actor, what, where: this.where() }
    this.#blocked.add(blocked)
    let settle: [resolve: (value: Value) => void, reject: (error: unknown) => void]
    const promise = new Promise<Value>((resolve, reject) => (settle = [resolve, reject]))
    const end = (resume: () => void): void => {
      if (this.#blocked.delete(blocked)) this.ready(actor, what, resume, blocked.where)
    }
    return {
      promise,
      resolve: (value) => end(() => settle[0](value)),
      reject: (error) => end(() => settle[1](error)),
    }
  }

  /** Call `run` when so much time has passed. */
  after(ms: number, run: () => void): () => void {
    return ms === FOREVER_MS ? () => {} : this.at(this.#nowMs + Math.max(0, ms), run)
  }

  /** Call `run` at a time, which a difference to now may miss by its last bit. */
  at(atMs: number, run: () => void): () => void {
    const timer: Timer = { atMs: Math.max(this.#nowMs, atMs), run, isOver: false }
    let at = this.#timers.length
    while (at > 0 && this.#timers[at - 1].atMs > timer.atMs) at--
    if (timer.atMs < Infinity) this.#timers.splice(at, 0, timer)
    return () => {
      timer.isOver = true
    }
  }

  /** What rejects when so much time has passed, and what ends that. */
  late(actor: Actor, ms: number, error: () => Error): [late: Promise<never>, end: () => void] {
    let end = (): void => {}
    const late = new Promise<never>((_, reject) => {
      end = this.after(ms, () => this.ready(actor, `${ms} ms are over`, () => reject(error())))
    })
    return [late, end]
  }

  /** A task dies with those that it has spawned. */
  kill(actor: Actor): void {
    if (!actor.die()) return
    this.#show(actor, 'dies', '')
    this.#ready = this.#ready.filter((entry) => entry.actor !== actor)
    for (const blocked of this.#blocked) if (blocked.actor === actor) this.#blocked.delete(blocked)
    for (const child of actor.children) this.kill(child)
  }

  #setTime(ms: number): void {
    this.#nowMs = ms
    native.storeSeededAt(ms)
  }

  /** Run `body` in the first task to its end. */
  async run(body: () => unknown): Promise<Ending> {
    let ending: Ending | undefined
    const end = (how: Ending): void => {
      ending ??= how
    }
    const failed = (error: unknown): void => end({ kind: 'failed', error })
    this.#setTime(0)
    this.ready(this.root, 'begins', () => {
      const begun = current.run(this.root, async () => body())
      begun.then(() => end(this.#left()), failed)
    })
    await new Promise<void>((over) => {
      const step = (): void => {
        if (ending !== undefined) return
        try {
          ending = this.#step()
        } catch (error) {
          failed(error)
        }
      }
      let steps = 4
      const phase = (): void => {
        if (ending !== undefined) return over()
        steps = Math.min(steps * 2, STEPS_OF_PHASE_MAX)
        for (let count = 0; count < steps; count++) soon(step)
        soon(phase)
      }
      soon(phase)
    })
    this.#end()
    // What nobody has joined explains also why the others wait.
    const lost = [...this.lost.values(), ...this.unhandled]
    if (lost.length > 0 && ending?.kind !== 'failed') return { kind: 'failed', error: lost[0] }
    return ending!
  }

  /** Lets one wait end, or time pass; how the run has ended, if it has. */
  #step(): Ending | undefined {
    const timers = this.#timers
    // What locks and channels have granted is ready, too.
    thisBridge().takeMail()
    while (timers.length > 0 && timers[0].isOver) timers.shift()
    if (this.#ready.length === 0 && timers.length === 0) return { kind: 'deadlock', waits: this.#waits() }
    if (++this.steps > this.#settings.stepsMax) return { kind: 'livelock', waits: this.#waits() }
    const index = this.#choose()
    if (index === CLOCK) {
      const timer = timers.shift()!
      this.#setTime(timer.atMs)
      this.#sinceTime = 0
      this.#trace('clock')
      if (this.#settings.clockStepMs > 0 && this.happens(CLOCK_STEPS)) {
        const stepMs = Math.round((2 * this.#chance() - 1) * this.#settings.clockStepMs)
        this.#steppedMs += stepMs
        this.#show(this.root, `the clock of the day steps by ${stepMs} ms`, '')
      }
      timer.run()
      return undefined
    }
    const [entry] = this.#ready.splice(index, 1)
    const { actor } = entry
    this.#trace(`${entry.key} ${entry.what}`)
    if (this.happens(actor.deaths)) {
      this.kill(actor)
      return undefined
    }
    this.#show(actor, entry.what, entry.where)
    this.#inARow = actor === this.#last ? this.#inARow + 1 : 0
    this.#sinceTime += 1
    this.#last = actor
    entry.resume()
    return undefined
  }

  /** Which of the ready goes on. */
  #choose(): number {
    const ready = this.#ready
    const hasTimers = this.#timers.length > 0
    if (ready.length === 0) return CLOCK
    if (hasTimers && this.#sinceTime >= STEPS_WITHOUT_TIME_MAX) return CLOCK
    const isTired = this.#inARow >= STEPS_IN_A_ROW_MAX && ready.some(({ actor }) => actor !== this.#last)
    const plain = Math.max(
      0,
      ready.findIndex(({ actor }) => (actor === this.#last) !== isTired),
    )
    if (isTired || (ready.length === 1 && !hasTimers)) return plain
    const index = this.#settings.strategy({ ready, plain, hasTimers, step: this.steps })
    if (index !== plain) this.deviations.push([this.steps, index === CLOCK ? 'clock' : ready[index].key])
    return index
  }

  #trace(what: string): void {
    let hash = this.trace
    for (let at = 0; at < what.length; at++) hash = Math.imul(hash ^ what.charCodeAt(at), 0x01000193)
    this.trace = Math.imul(hash ^ Math.round(this.#nowMs * 1000), 0x01000193) >>> 0
  }

  #show(actor: Actor, what: string, where: string): void {
    if (!this.#settings.isShown) return
    this.shown.push(
      `${this.#nowMs.toFixed(0).padStart(6)} ms  ${labelOf(actor)}: ${what}${where && `  (${where})`}`,
    )
  }

  /** Where the program has called, in a run that is shown. */
  where(): string {
    return this.#settings.isShown ? frameOf() : ''
  }

  /** How the run ends when its callback has. */
  #left(): Ending {
    if (!this.#settings.leaks) return { kind: 'done' }
    const open = [...this.#open].map((each) => lineOf(each, ': '))
    const forked = fibers().filter(({ id }) => id > this.#fiberBefore)
    const named = forked.map(({ id, name }) => `  ${`fiber #${id} ${name}`.trimEnd()} has not ended`)
    const all = [...open, ...this.#named(), ...named]
    return all.length === 0 ? { kind: 'done' } : { kind: 'leak', waits: all.join('\n') }
  }

  #named(): string[] {
    const all = [...this.#blocked, ...this.actors.flatMap(({ isDead, waits }) => (isDead ? [] : waits))]
    return all.map((each) => lineOf(each, ' waits for '))
  }

  #waits(): string {
    const named = this.#named()
    return named.length > 0 ? named.join('\n') : '  main waits for a promise that nobody settles'
  }

  /** None of its code goes on any more. */
  #end(): void {
    this.isOver = true
    for (const actor of this.actors) actor.die()
    for (const end of this.atEnd) end()
    this.#ready = []
    this.#blocked.clear()
    this.#timers.length = 0
  }
}

/** Those of this thread that have not ended. */
function fibers(): FiberDump[] {
  const all = dump()
  // Grows while it is read.
  for (const { children } of all) all.push(...children)
  return all.filter(({ kind }) => kind === 'fiber')
}

function lineOf({ actor, what, where }: Blocked, verb: string): string {
  return `  ${labelOf(actor)}${verb}${what}${where && `  (${where})`}`
}

function labelOf({ name, number }: Actor): string {
  return number === 0 ? name : `${name} #${number}`
}
