/**
 * The other end of the control sockets, and the shapes of answers, for the command.
 * Not part of the package's API.
 */
export { type Answers, ask, findProcess } from './client.ts'
export { type ControlSocket, nameOf } from './sockets.ts'
export type { ThreadStack } from './thread/stacks.ts'
export type { LabelTimes } from './labels.ts'
export type { CallFrame, CpuProfile, HeapNode, ThreadProfile } from './thread/profile.ts'
export type { RunningTask } from './thread/tasks.ts'
