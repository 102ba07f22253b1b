/**
 * What every other module may rely on: errors, their reasons in one line, and assertions.
 *
 * Imports nothing, knows no other part of Skein, and holds no state.
 */
export { AssertionFailure, assert } from './assert.ts'
export { SkeinError, shown, type Sentences } from './errors.ts'
export { hasMember } from './members.ts'
export { loadReason, oneLine, reasonOf } from './reasons.ts'
export { whenSettled } from './settled.ts'
