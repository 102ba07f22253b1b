/**
 * What a route with a contract costs the compiler, in instantiations of types: at most 3,000.
 *
 * Projects have hundreds of routes, and a type that is slow is noticed when it is too late to change it. Two
 * programs are compiled: the schemas alone, and the same with their routes, each called once by a client. It
 * needs 3 s of CPU, since the compiler reads the declarations of the package and of zod for each.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { inRoot, MEMORY, tsc } from '../../scripts/set-up/index.mjs'

const ROUTES = 50
const INSTANTIATIONS_MAX = 3000

mkdirSync(MEMORY, { recursive: true })
const folder = mkdtempSync(join(MEMORY, 'contract-types-'))
after(() => rmSync(folder, { recursive: true, force: true }))

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
const schemas = `import { z } from 'zod'
export const all = [${numbers.map(contract).join(',\n')}] as const
`
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

/** How many types are instantiated for a program, which must be right. */
function instantiations(name, text) {
  const file = join(folder, `${name}.mts`)
  writeFileSync(file, text)
  const flags = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', '--ignoreConfig']
  const language = ['--target', 'es2022', '--module', 'nodenext', '--types', 'node']
  const args = [tsc(), ...flags, ...language, '--extendedDiagnostics', '--pretty', 'false', file]
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: inRoot(), encoding: 'utf8' })
  assert.equal(status, 0, stdout)
  const [, count] = /^Instantiations:\s+(\d+)/m.exec(stdout) ?? []
  assert.notEqual(count, undefined, stdout)
  return Number(count)
}

test(`a route with a contract and its call cost at most ${INSTANTIATIONS_MAX} instantiations`, (t) => {
  const package_ = instantiations(
    'package',
    "import 'corespun/client'\nimport 'corespun/http'\nimport 'zod'\n",
  )
  const alone = (instantiations('schemas', schemas) - package_) / ROUTES
  const each = (instantiations('routes', routed) - package_) / ROUTES
  t.diagnostic(`${Math.round(each)} a route, of which the schemas alone are ${Math.round(alone)}`)
  assert.ok(each <= INSTANTIATIONS_MAX, `${each} instantiations a route, ${alone} of the schemas`)
})
