/**
 * The claims of the servers' seed: throughput, latency and the collector.
 *
 * Two of them are about servers of the JVM alone.
 */
import type { Row } from '../../harness/table.ts'
import { type Claim, type Figures, is, judged, round, undecided } from './figures.ts'

export const HTTP: readonly Claim[] = [
  [
    'zio-http serves several times what http4s does (implied by its tables).',
    (facts) => {
      const quotient = facts.cell('http/hello/zio-http-jdk11/rps') / facts.cell('http/hello/http4s-jdk11/rps')
      return is(quotient >= 2, `${round(quotient)} × here`)
    },
    (facts) =>
      judged([hello(facts, 'corespun'), hello(facts, 'node:http')], (own, node) => {
        const quotient = round(own.median / node.median)
        const words = `of hello, per core, Corespun serves ${quotient} × what node:http does`
        return is(undefined, `about those two; ${words}`)
      }),
  ],
  [
    'http4s on ZIO is slower than on Cats Effect (implied by its tables).',
    (facts) => {
      const onZio = facts.cell('http/hello/http4s-zio-after/rps')
      const quotient = facts.cell('http/hello/http4s-jdk11/rps') / onZio
      return is(quotient > 1, `${round(quotient)} × here`)
    },
    undecided('about those two alone'),
  ],
  [
    'Servers of high throughput and low latency need a collector for the garbage of past requests.',
    undecided('a general remark; collectors were not compared here'),
    (facts) => {
      const bytes = facts.row({ section: 'hello', row: 'bytes per request' })
      return judged([bytes, ...collectors(facts)], (request, ...all) => {
        const listed = all.map((row) => `${row.condition.split(',')[0]} ${round(row.median)}`).join(', ')
        const heap = `a hello request allocates ${round(request.median)} B of heap`
        return is(undefined, `${heap}; p99 by collector, µs: ${listed}`)
      })
    },
  ],
]

function hello(facts: Figures, contender: string): Row | undefined {
  return facts.row({ section: 'hello', row: 'requests/s', contender })
}

/** p99 of hello under each setting of the collector, of the Node that was measured first. */
function collectors(facts: Figures): Row[] {
  const all = facts.all({ section: 'hello', row: 'p99' }).filter((row) => row.contender.startsWith('Node '))
  return all.filter((row) => row.contender === all[0].contender)
}
