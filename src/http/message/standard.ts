/**
 * Types of the Fetch standard that Node's own types do not name globally, taken from those they do.
 *
 * Types alone: nothing of this is left when it runs.
 */

/** What `new Headers(init)` takes. */
export type HeadersInit = NonNullable<ConstructorParameters<typeof Headers>[0]>
/** What a reader's `read()` resolves to. */
export type ReadResult =
  | { readonly done: false; readonly value: Uint8Array }
  | { readonly done: true; readonly value?: Uint8Array | undefined }
/**
 * A field of the standard's request; `Missing` where a compiler's `Request`, as that of its DOM types, has
 * none.
 */
export type RequestField<Name extends string, Missing = unknown> = Name extends keyof Request
  ? Request[Name]
  : Missing
/** Node's `inspect`, as passed to an object's custom inspection method. */
export type Inspect = (value: unknown, options: object) => string
