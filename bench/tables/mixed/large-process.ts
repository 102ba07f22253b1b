/**
 * A process that measures the large values of table `mixed`: `node large-process.js '<order as JSON>'`, the
 * samples as JSON on standard output: row → contender → µs, one per round. large.ts describes them.
 */
import assert from 'node:assert/strict'
import { decode, encode, move } from 'corespun/transport'
import { shuffled } from '../../harness/rounds.ts'
import { JSON_NAME, loadCodecs, type Codec } from '../transport/codecs.ts'
import { OWN } from './contenders.ts'
import {
  BYTES_COUNTS,
  BYTES_WAYS,
  LEAF_COUNTS,
  LEAF_KINDS,
  arrayRow,
  bytesRow,
  type LargeOrder,
  type LargeSamples,
} from './large.ts'

const PER = 1000
const WARM_UP_MS = 100

interface Case {
  readonly row: string
  readonly contender: string
  /** The µs of one call are divided by this. */
  readonly parts: number
  readonly run: () => unknown
}

function arrays(codecs: readonly Codec[]): Case[] {
  return Object.entries(LEAF_KINDS).flatMap(([kind, make]) =>
    LEAF_COUNTS.flatMap((count) => {
      const value = Array.from({ length: count }, (_, at) => make(at))
      return codecs.map((codec): Case => {
        assert.deepEqual(codec.decode(codec.encode(value)), value)
        const write = codec.encodeTimed ?? codec.encode
        return {
          row: arrayRow(count, kind),
          contender: codec.name,
          parts: count / PER,
          run: () => write(value),
        }
      })
    }),
  )
}

function bytes(): Case[] {
  return Object.entries(BYTES_COUNTS).flatMap(([label, length]) => {
    const value = new Uint8Array(length).fill(7)
    const frame = encode(value)
    const views = { bytes: 'view' } as const
    assert.equal((decode(frame, views) as Uint8Array).buffer, frame.buffer)
    let moved = value.slice()
    const process = { mode: 'process' } as const
    const runs = [
      () => decode(frame, views),
      () => (moved = decode(encode(move(moved), process), process) as typeof moved),
    ]
    return BYTES_WAYS.map((way, at): Case => ({
      row: bytesRow(label, way),
      contender: OWN,
      parts: 1,
      run: () => {
        const far = runs[at]() as Uint8Array
        assert.ok(far.length === length && far[length - 1] === 7)
      },
    }))
  })
}

/** µs of one call, over about `ms`. */
function timed(run: () => unknown, ms: number): number {
  const startedNs = process.hrtime.bigint()
  let calls = 0
  let elapsedNs = 0
  do {
    run()
    calls += 1
    elapsedNs = Number(process.hrtime.bigint() - startedNs)
  } while (elapsedNs < ms * 1e6)
  return elapsedNs / calls / 1000
}

async function main({ rounds, sliceMs }: LargeOrder): Promise<LargeSamples> {
  const codecs = (await loadCodecs()).filter(({ name }) => name === JSON_NAME || name === OWN)
  const cases = [...arrays(codecs), ...bytes()]
  for (const { run } of cases) timed(run, WARM_UP_MS)
  const found: LargeSamples = {}
  for (let round = 0; round < rounds; round += 1)
    for (const { row, contender, parts, run } of shuffled(cases, round))
      ((found[row] ??= {})[contender] ??= []).push(timed(run, sliceMs) / parts)
  return found
}

process.stdout.write(JSON.stringify(await main(JSON.parse(process.argv[2]) as LargeOrder)))
