/**
 * Who takes part in table `mixed`, on which rows.
 *
 * JSON where it can carry the value, cbor-x where it cannot, one copy where the value is bytes alone.
 */
import { JSON_NAME, loadCodecs, type Codec } from '../transport/codecs.ts'
import { BYTES_LABEL, RICH_LABELS, type MixedPayload } from './payloads.ts'

export const OWN = 'corespun'
export const CLONE = 'structuredClone'
export const CBOR = 'cbor-x'
const ONE_COPY = 'one copy'

const memory = new Uint8Array(1 << 17)

/** What no codec can be faster than, for bytes alone. */
const oneCopy: Codec = {
  name: ONE_COPY,
  encode: (value) => (value as Uint8Array).slice(),
  encodeTimed: (value) => memory.set(value as Uint8Array),
  decode: (sent) => (sent as Uint8Array).slice(),
}

/** The contender that a row is compared with. */
export function rivalOf(payload: Pick<MixedPayload, 'label' | 'isJson'>): string {
  if (payload.isJson) return JSON_NAME
  return payload.label === BYTES_LABEL ? ONE_COPY : CBOR
}

/** The names of all that carry a payload. */
export function contendersOf(payload: Pick<MixedPayload, 'label' | 'isJson'>): readonly string[] {
  return [rivalOf(payload), CLONE, OWN]
}

/** All codecs of the table, by name; `isCold`: nothing has been written with them. */
export async function mixedCodecs(isCold: boolean): Promise<Map<string, Codec>> {
  const codecs = [...(await loadCodecs(isCold)), oneCopy]
  return new Map(codecs.map((codec) => [codec.name, codec]))
}

/** The contenders of all rows. */
export const CONTENDERS: readonly string[] = [
  ...new Set(
    [
      { label: '', isJson: true },
      ...[...RICH_LABELS, BYTES_LABEL].map((label) => ({ label, isJson: false })),
    ].flatMap(contendersOf),
  ),
]
