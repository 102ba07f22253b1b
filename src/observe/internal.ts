/**
 * The other end of the control sockets, and the shapes of answers, for the command.
 * Not part of the package's API.
 */
export { type Answers, ask, findProcess } from './client.ts'
export { type ControlSocket, controlSockets, isAnswered, nameOf } from './sockets.ts'
export type { Snapshot } from './figures/snapshot.ts'
export { type RowAction, type View, type ViewTable, textOf, viewOf } from './figures/view.ts'
export type { ThreadStack } from './thread/stacks.ts'
export type { LabelTimes } from './labels.ts'
export type { CallFrame, CpuProfile, HeapNode, ThreadProfile } from './thread/profile.ts'
export type { RunningTask } from './figures/tasks.ts'
