/**
 * A process of table `durable`: workflows of three steps on Postgres, 64 at once, by Corespun or DBOS.
 *
 * `workflows.js <contender> <address> <seconds> <pid of the server>`: the figures are printed as JSON. Each
 * workflow has an input of its own, from which its value follows, which is checked.
 */
import { durable, runs, step } from 'corespun/durable'
import { connect } from 'corespun/fleet'
import { cpuSeconds, familyCpuSeconds } from '../../harness/cpu.ts'
import { checkAnswer } from '../../harness/errors.ts'

const AT_ONCE = 64
const STEPS = 3
const WARM_S = 1.5

/** Starts a workflow, and resolves with its value. */
type Workflow = (input: number) => Promise<unknown>

const one = async (value: number): Promise<number> => value

const CONTENDERS: Readonly<Record<string, (address: string) => Promise<Workflow>>> = {
  corespun: async (address) => {
    const sum = durable('sum', function* (input: number) {
      let value = input
      for (let n = 1; n <= STEPS; n += 1) value += yield* step('one', one, [n])
      return value
    })
    const work = await runs(await connect(address), { definitions: [sum] })
    return async (input) => (await work.start('sum', input)).result()
  },
  DBOS: async (address) => {
    const { DBOS } = await import('@dbos-inc/dbos-sdk')
    const sum = DBOS.registerWorkflow(
      async (input: number) => {
        let value = input
        for (let n = 1; n <= STEPS; n += 1) value += await DBOS.runStep(() => one(n), { name: 'one' })
        return value
      },
      { name: 'sum' },
    )
    // It refuses an address without a host, and makes the database.
    const systemDatabaseUrl = address.replace('@/postgres?', '@localhost/dbos?')
    DBOS.setConfig({ name: 'bench', systemDatabaseUrl, logLevel: 'error', useListenNotify: false })
    await DBOS.launch()
    return async (input) => (await DBOS.startWorkflow(sum)(input)).getResult()
  },
}

const [contender, address, seconds, serverPid] = process.argv.slice(2)
const workflow = await CONTENDERS[contender](address)
const cpuS = (): number => cpuSeconds(process.pid) + familyCpuSeconds(Number(serverPid))
let begun = 0

/** How many are done in that time, 64 at once. */
async function done(seconds: number): Promise<number> {
  const endMs = performance.now() + seconds * 1000
  let count = 0
  const next = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const input = (begun += 1)
      const expected = input + (STEPS * (STEPS + 1)) / 2
      checkAnswer({ contender, work: 'workflows', got: await workflow(input), expected })
      count += 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  return count
}

await done(WARM_S)
const [beganMs, beganCpuS] = [performance.now(), cpuS()]
const count = await done(Number(seconds))
const [tookS, tookCpuS] = [(performance.now() - beganMs) / 1000, cpuS() - beganCpuS]
process.stdout.write(JSON.stringify({ perSecond: count / tookS, perCpuSecond: count / tookCpuS }))
process.exit(0)
