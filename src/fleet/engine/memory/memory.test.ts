/**
 * The engine in memory does what every engine must do, on the network that loses nothing.
 *
 * What it does on a bad network is in faults.test.ts.
 */
import { newName } from '../conformance.test.support.ts'
import { keepsConformance } from '../keeps.test.support.ts'
import { messagesConformance } from '../messages.test.support.ts'
import { memoryEngine } from './memory.ts'

for (const conformance of [messagesConformance, keepsConformance])
  conformance('memory', async () => {
    const name = newName()
    return { connect: async () => memoryEngine(name), close: async () => {} }
  })
