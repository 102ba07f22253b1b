/**
 * A command that looks into one engine, in a test: what it is given, what it prints, how it ends.
 *
 * It runs in this process, on an engine in memory.
 */
import assert from 'node:assert/strict'
import { HELP } from '../arguments.ts'
import type { CommandContext, StopSignal } from '../run/run.ts'
import type { Connection } from './connection.ts'

type Read<Words> = (words: readonly string[]) => Words | typeof HELP
type Act<Words> = (words: Words, context: CommandContext) => Promise<number>
/** Runs it with these words after its engine. */
export type Command = (...words: string[]) => Promise<[code: number, out: string, err: string]>

export const memoryOf = (name: string): Connection => ({ servers: `memory:${name}`, options: {} })

/** The command on `memory:name`. */
export function commandOn<Words extends { readonly connection: Connection }>(
  name: string,
  read: Read<Words>,
  act: Act<Words>,
): Command {
  return async (...words) => {
    const texts = { out: '', err: '' }
    const context = {
      stdout: { write: (text: string) => (texts.out += text) },
      stderr: { write: (text: string) => (texts.err += text) },
      onSignal: () => () => {},
    } as unknown as CommandContext
    const asked = read(['sqlite:x', ...words])
    assert.notEqual(asked, HELP)
    const code = await act({ ...(asked as Words), connection: memoryOf(name) }, context)
    return [code, texts.out, texts.err]
  }
}

/** Each signal ends it, before it has printed anything, with the code of that signal. */
export async function signalsEnd<Words>(words: Words, act: Act<Words>): Promise<void> {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const context = {
      stdout: { write: () => assert.fail('it was printed') },
      onSignal: (listener: (name: StopSignal) => void) => {
        listener(signal)
        return () => {}
      },
    } as unknown as CommandContext
    assert.equal(await act(words, context), code)
  }
}

/** Each line is refused with its problem. */
export function areRefused(read: Read<unknown>, lines: readonly (readonly [string, RegExp])[]): void {
  for (const [line, problem] of lines)
    assert.throws(() => read(line.split(' ').filter(Boolean)), problem, line)
}
