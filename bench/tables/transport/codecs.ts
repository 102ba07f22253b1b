/**
 * The contenders of table `transport`: each turns a value into something and back.
 *
 * Each is set up the way its own documentation calls fastest for values without a schema. `structuredClone`
 * has no two halves; it takes part in the round trip only.
 */
import v8 from 'node:v8'

/** One way to send values. */
export interface Codec {
  readonly name: string
  /** The bytes or the text; it must stay valid while others are made. */
  encode(value: unknown): unknown
  decode(sent: unknown): unknown
  /** Encode as fast as it can be done in use, where that needs no bytes of its own. */
  readonly encodeTimed?: (value: unknown) => unknown
  /** True: only both halves together. */
  readonly isWhole?: boolean
}

/** Name of the contender all others are compared with. */
export const JSON_NAME = 'JSON'

/** All contenders, Corespun last; `isCold` as in {@link corespunCodecs}. */
export async function loadCodecs(isCold = false): Promise<Codec[]> {
  const { Packr } = await import('msgpackr')
  const { Encoder } = await import('cbor-x')
  const packr = new Packr({ structures: [] })
  const cbor = new Encoder({ structures: [] })
  return [
    {
      name: JSON_NAME,
      encode: (value) => JSON.stringify(value),
      decode: (sent) => JSON.parse(sent as string) as unknown,
    },
    {
      name: 'JSON, empty callbacks',
      encode: (value) => JSON.stringify(value, (_, part: unknown) => part),
      decode: (sent) => JSON.parse(sent as string, (_, part: unknown) => part) as unknown,
    },
    {
      name: 'v8.serialize',
      encode: (value) => v8.serialize(value),
      decode: (sent) => v8.deserialize(sent as Buffer) as unknown,
    },
    {
      name: 'structuredClone',
      encode: (value) => value,
      decode: (sent) => structuredClone(sent),
      isWhole: true,
    },
    {
      name: 'msgpackr',
      encode: (value) => packr.pack(value),
      decode: (sent) => packr.unpack(sent),
    },
    {
      name: 'cbor-x',
      encode: (value) => cbor.encode(value),
      decode: (sent) => cbor.decode(sent),
    },
    ...(await corespunCodecs(isCold)),
  ]
}

/**
 * Corespun's two: self-contained bytes, and frames whose shapes both ends have.
 *
 * A thread writes its first values without shapes. Unless `isCold`, it is past them: frames that are kept to
 * be decoded are those of a process that has been running.
 */
export async function corespunCodecs(isCold = false): Promise<Codec[]> {
  const { FrameWriter, readFrame } = await import('../../harness/internal.ts')
  const { decode, encode } = await import('corespun/transport')
  const scratch = new Uint8Array(1 << 20)
  const writer = new FrameWriter(scratch)
  if (!isCold) writeFirstValues(writer)
  return [
    {
      name: 'corespun, self-contained',
      encode: (value) => encode(value),
      decode: (sent) => decode(sent as Uint8Array),
    },
    {
      name: 'corespun',
      encode: (value) => scratch.slice(0, writer.write(value, 0)),
      decode: (sent) => readFrame(sent as Uint8Array, 0, (sent as Uint8Array).length),
      encodeTimed: (value) => writer.write(value, 0),
    },
  ]
}

/** Write what a thread writes before shapes pay, several times over. */
export function writeFirstValues(writer: { write(value: unknown, at: number): number }): void {
  const objects = Array.from({ length: 1000 }, (_, id) => ({ id }))
  for (let pass = 0; pass < 600; pass += 1) writer.write(objects, 0)
}
