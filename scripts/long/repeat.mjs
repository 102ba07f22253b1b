/**
 * Run a command a number of times and stop at its first failure.
 *
 *   node scripts/long/repeat.mjs 10 npm test -- suite
 */
import { run } from '../set-up/index.mjs'

const [times, program, ...args] = process.argv.slice(2)
for (let round = 1; round <= Number(times); round += 1) {
  console.log(`round ${round} of ${times}`)
  const { code } = await run(program, args, { show: true })
  if (code !== 0) process.exit(code)
}
