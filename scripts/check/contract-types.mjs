/**
 * What a route with a contract costs the compiler, in instantiations of types: at most 3,000.
 *
 * Projects have hundreds of routes, and a type that is slow is noticed when it is too late to change it. Two
 * programs are compiled: the imports alone, and routes with their schemas, each called once by a client. It
 * needs 2 s of CPU, since the compiler reads the declarations of the package and of zod for each.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot, MEMORY, must, Stop, tsc } from '../set-up/index.mjs'

const ROUTES = 50
const INSTANTIATIONS_MAX = 3000

/** The schemas of one route, as its contract. */
const contract = (n) => `{
  summary: 'number ${n}',
  params: z.object({ id: z.coerce.number(), part: z.string() }),
  query: z.object({ limit: z.coerce.number().optional(), full: z.string().optional() }),
  body: z.object({ name${n}: z.string(), tags: z.array(z.string()), at: z.object({ x: z.number() }) }),
  responses: {
    200: z.object({ id: z.number(), name${n}: z.string() }),
    404: z.object({ reason: z.string() }),
  },
}`
const numbers = Array.from({ length: ROUTES }, (_, n) => n)
const handler = (n) =>
  `({ params, body, respond }) =>
    params.id === 0 ? respond(404, { reason: params.part }) : { id: params.id, name${n}: body.name${n} }`
const routed = `import { z } from 'zod'
import { client } from 'corespun/client'
import { createApp, route } from 'corespun/http'
const routes = {
${numbers.map((n) => `'/r${n}/:id/:part': { POST: route(${contract(n)}, ${handler(n)}) },`).join('\n')}
}
export const app = createApp({ routes })
const call = client<typeof routes>(app)
${numbers
  .map(
    (n) => `const reply${n} = await call('POST', '/r${n}/:id/:part', {
  params: { id: 1, part: 'x' }, body: { name${n}: 'x', tags: [], at: { x: 1 } },
})
if (reply${n}.status === 200) console.log(reply${n}.body.name${n})`,
  )
  .join('\n')}
`

/**
 * Count, and resolve to the line that the check prints.
 * @throws {Stop} If a route costs more.
 */
export async function contractTypes(max = INSTANTIATIONS_MAX) {
  mkdirSync(MEMORY, { recursive: true })
  const folder = mkdtempSync(join(MEMORY, 'contract-types-'))
  try {
    const imports = "import 'corespun/client'\nimport 'corespun/http'\nimport 'zod'\n"
    const [alone, all] = await Promise.all(
      [imports, routed].map((text, n) => instantiations(folder, n, text)),
    )
    const each = Math.round((all - alone) / ROUTES)
    if (each > max) throw new Stop(`${each} instantiations of types a route with a contract, at most ${max}`)
    return `${each} instantiations a route`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** How many types are instantiated for a program, which must be right. */
async function instantiations(folder, name, text) {
  const file = join(folder, `${name}.mts`)
  writeFileSync(file, text)
  const flags = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', '--ignoreConfig']
  const language = ['--target', 'es2022', '--module', 'nodenext', '--types', 'node']
  const args = [tsc(), ...flags, ...language, '--extendedDiagnostics', '--pretty', 'false', file]
  const output = await must('Types of a route with a contract', process.execPath, args, { cwd: inRoot() })
  const [, count] = /^Instantiations:\s+(\d+)/m.exec(output) ?? []
  if (count === undefined) throw new Stop(`tsc printed no count of instantiations:\n${output}`)
  return Number(count)
}
