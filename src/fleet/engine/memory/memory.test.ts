/**
 * The engine in memory does what every engine must do, on the network that loses nothing.
 *
 * What it does on a bad network is in faults.test.ts.
 */
import { conformance, newName } from '../conformance.test.support.ts'
import { memoryEngine } from './memory.ts'

conformance('memory', async () => {
  const name = newName()
  return { connect: async () => memoryEngine(name), close: async () => {} }
})
