/**
 * Hosts of jobs in a simulated network, whose functions are played: they come, leave, are cut off and die.
 *
 * A suite has a class of its own, with what it plays and what it sees of it.
 */
import assert from 'node:assert/strict'
import type { Engine } from '../engine/engine.ts'
import { type Faults, Simulation } from '../engine/memory/simulation.ts'
import { FleetError } from '../errors.ts'
import type { JobOutcome, JobTask } from './attempt.ts'
import { JobTaker } from './taker.ts'

export const PLAIN: Faults = { loss: 0, repeat: 0, delayMs: 0 }
export const BAD: Faults = { loss: 0.1, repeat: 0.1, delayMs: 40 }
export const LEASE_MS = 600
export const ZONE = 'z'

export abstract class Hosts extends Simulation {
  readonly caller: Engine = this.connect('caller')
  readonly #engines = new Map<string, Engine>()
  readonly #takers = new Map<string, JobTaker>()
  /** Nothing happens to hosts any more. */
  isQuiet = false

  /** A function runs on a host. */
  abstract play(task: JobTask, host: string): Promise<JobOutcome>

  async host(name: string, jobsMax: number): Promise<void> {
    const engine = this.connect(name)
    this.#engines.set(name, engine)
    const run = (task: JobTask): Promise<JobOutcome> => this.play(task, name)
    const options = { engine, zone: ZONE, id: name, jobsMax, leaseMs: LEASE_MS, isFree: () => true, run }
    try {
      const taker = await JobTaker.open(options)
      if (this.#engines.has(name)) this.#takers.set(name, taker)
    } catch (error) {
      // It may have a job, and die of it, before it receives that it takes any.
      assert.ok(error instanceof FleetError && error.code === 'FLEET_CLOSED', String(error))
    }
  }

  /** The machine ends, and all that runs on it. False if it had ended. */
  die(name: string): boolean {
    void this.#engines.get(name)?.close()
    this.#takers.delete(name)
    return this.#engines.delete(name)
  }

  /** The host closes when its jobs have ended, and its connection after it. */
  async leave(name: string): Promise<void> {
    await this.#takers.get(name)!.close(60_000, new Error('closes'))
    this.die(name)
  }

  /** A host that is cut off now and then, or dies and is replaced. @param deaths How likely it dies. */
  async faulty(name: string, jobsMax: number, deaths: number): Promise<void> {
    await this.host(name, jobsMax)
    this.clock.after(this.random() * 4000, () => {
      if (this.isQuiet) return
      if (this.random() < deaths) {
        this.die(name)
        void this.faulty(`${name}'`, jobsMax, deaths)
        return
      }
      if (this.random() < 0.3) this.leaveAlone(name, this.random() * 3 * LEASE_MS)
      this.cut.add(name)
      this.clock.after(this.random() * 3 * LEASE_MS, () => this.cut.delete(name))
    })
  }

  pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }

  /** The time that a function takes, or until its signal is aborted. */
  async spend(ms: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      this.clock.after(ms, resolve)
      signal.addEventListener('abort', () => resolve())
    })
  }

  async close(): Promise<void> {
    this.isQuiet = true
    this.cut.clear()
    await Promise.all([...this.#takers.values()].map((taker) => taker.close(0, new Error('closes'))))
  }
}
