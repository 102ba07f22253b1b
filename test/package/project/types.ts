/**
 * The package's types as a user's compiler sees them.
 * Compiled with library checks on, never run.
 */
import { zone } from 'corespun'
import { encode, decode } from 'corespun/transport'

const cpu = zone.create('cpu')
/** Inferred from the function. */
export const product: Promise<number> = cpu.run((a: number, b: number) => a * b, 6, 7)
/** Bytes and back. */
export const copy: unknown = decode(encode({ a: 1 }))
