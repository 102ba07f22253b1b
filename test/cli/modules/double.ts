/**
 * Imported by typed.ts: TypeScript that imports TypeScript.
 * The tests of lines of files read it too.
 */
export const double = (value: number): number => value * 2
