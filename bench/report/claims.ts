/**
 * The claims of the seeds' prose, paraphrased and judged by figures measured here.
 *
 * A claim that no figure decides is marked as such; it is never silently true.
 */
import type { Row } from '../harness/table.ts'
import type { Anchors } from './anchors.ts'
import { ARROW } from './claims/arrow.ts'
import { CARRIERS } from './claims/carriers.ts'
import { FIBER } from './claims/fiber.ts'
import { type Claim, Figures, type JudgedClaim } from './claims/figures.ts'
import { HTTP } from './claims/http.ts'
import { NAPA } from './claims/napa.ts'

const CLAIMS: readonly (readonly [seed: string, claims: readonly Claim[]])[] = [
  ['ZIO Arrow', ARROW],
  ['Fibers', FIBER],
  ['HTTP', HTTP],
  ['napajs', [...NAPA, ...CARRIERS]],
]

export function judgedClaims(anchors: Anchors, rows: readonly Row[]): JudgedClaim[] {
  const figures = new Figures(anchors, rows)
  return CLAIMS.flatMap(([seed, claims]) =>
    claims.map(([claim, rival, corespun]) => ({
      seed,
      claim,
      rival: rival(figures),
      corespun: corespun(figures),
    })),
  )
}
