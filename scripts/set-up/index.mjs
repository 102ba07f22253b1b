/**
 * Everything between a fresh clone and a program that runs: tools checked, packages installed, core and
 * TypeScript compiled.
 *
 * Each step says whether it is current, by content; only those that are not do work, under a lock, so two may
 * be started at once. A second run costs the hashes alone.
 */
import { join } from 'node:path'
import { installStep } from './install.mjs'
import { locked } from './lock.mjs'
import { nativeStep } from './native.mjs'
import { MEMORY } from './place.mjs'
import { cargoVersion } from './tools.mjs'
import { typescriptStep } from './typescript.mjs'

export { tsc } from './typescript.mjs'
export { inRoot, MEMORY, NATIVE, ROOT } from './place.mjs'
export { must, npm, run } from './run.mjs'
export { filesBelow, hashOf, isCurrent, remember } from './stamps.mjs'
export { locked } from './lock.mjs'
export { Stop } from './stop.mjs'
export { needComponent } from './tools.mjs'

/**
 * Bring the checkout up to date.
 * @param {{say?: (line: string) => void}} [options] Where progress is told; standard error by default.
 * @throws {Stop} With one sentence when a tool is missing, or with the output of what failed.
 */
export async function setUp({ say = console.error } = {}) {
  const startedMs = performance.now()
  const cargo = await cargoVersion()
  if (steps(cargo).every((step) => step.isCurrent())) return
  await locked(join(MEMORY, 'lock'), () => workThrough(cargo, say), { say })
  say(`set-up: done in ${seconds(startedMs)}`)
}

function steps(cargo) {
  return [installStep, nativeStep(cargo), typescriptStep()]
}

async function workThrough(cargo, say) {
  for (const step of steps(cargo)) {
    if (step.isCurrent()) continue
    const startedMs = performance.now()
    say(`set-up: ${step.name} ...`)
    await step.work()
    say(`set-up: ${step.name}, ${seconds(startedMs)}`)
  }
}

function seconds(sinceMs) {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`
}
