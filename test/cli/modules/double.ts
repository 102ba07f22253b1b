/**
 * Imported by typed.ts: TypeScript that imports TypeScript.
 */
export const double = (value: number): number => value * 2
