/**
 * A schema of text that is JSON of another schema: one check for the lines of files and for messages of
 * WebSockets. Text that is too long is not parsed.
 */
import { z } from 'zod'

export const json = <Schema extends z.ZodType>(charsMax: number, schema: Schema) =>
  z
    .string()
    .max(charsMax, `longer than ${charsMax} characters`)
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text)
      } catch {
        context.addIssue('not JSON')
        return z.NEVER
      }
    })
    .pipe(schema)
