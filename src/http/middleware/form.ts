/**
 * Forms with limits: `application/x-www-form-urlencoded` and multipart.
 *
 * It is part of Corespun because `request.formData()` has no limits: here parts are counted before anything
 * is made of them. The whole form is in memory; `bodyBytesMax` or `bodyLimit()` bounds it. Defaults: 100
 * parts, 65,536 characters per field.
 */
import { optionsOf } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'
import { native } from '../fetch/native.ts'
import {
  FORM_LIMITS,
  type FormLimits,
  formParts,
  formType,
  MULTIPART,
  tooMany,
  tooMuch,
} from './form-parts.ts'

/** A parsed form. */
export interface Form {
  /** Field values by name; the last one of several with the same name. */
  readonly fields: Readonly<Record<string, string>>
  /** Files by name; the last one of several with the same name. Empty file inputs are omitted. */
  readonly files: Readonly<Record<string, File>>
  /** All fields and files in order. */
  readonly data: FormData
}

const URLENCODED = 'application/x-www-form-urlencoded'
const AMPERSAND = 0x26
const PLUS = 0x2b
const SPACE = 0x20

/**
 * Reads the form in the body of a request.
 * @throws {StatusError} With status 413 beyond the limits, 415 for another content type, 400 if malformed.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid limits, and the errors of reading a body.
 * @throws {TypeError} If the body has been read already.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, readForm } from 'corespun/http'
 *
 * const app = createApp({ routes: { '/': { POST: async (request) => (await readForm(request)).fields } } })
 * const response = await app.inject('/', { method: 'POST', body: new URLSearchParams({ name: 'Ada' }) })
 * assert.deepEqual(await response.json(), { name: 'Ada' })
 * ```
 */
export async function readForm(request: Request, limits?: FormLimits): Promise<Form> {
  const bounds = optionsOf(limits, FORM_LIMITS, wrong, 'readForm()')
  const data = await dataOf(request, bounds)
  const fields: Record<string, string> = Object.create(null) as Record<string, string>
  const files: Record<string, File> = Object.create(null) as Record<string, File>
  for (const [name, value] of data) {
    if (typeof value === 'string') fields[name] = value
    else if (value.size > 0 || value.name !== '') files[name] = value
  }
  return { fields, files, data }
}

async function dataOf(request: Request, bounds: Required<FormLimits>): Promise<FormData> {
  const type = formType(request, [MULTIPART, URLENCODED])
  if (request.bodyUsed) throw new TypeError('readForm: the body has been read already')
  if (type.essence === URLENCODED) return urlencoded(Buffer.from(await request.arrayBuffer()), bounds)
  const data = new FormData()
  for await (const part of formParts(request, bounds)) {
    if (part.kind === 'field') data.append(part.name, part.value)
    else {
      const bytes = await new (native().Response)(part.stream).arrayBuffer()
      data.append(part.name, new File([bytes], part.fileName, { type: part.type }))
    }
  }
  return data
}

/**
 * Parses by the URL standard. Pluses are replaced by spaces in the body first: URLSearchParams is fifty times
 * slower at it. Empty fields between two `&` are not counted.
 */
function urlencoded(body: Buffer, { partsMax, fieldCharsMax }: Required<FormLimits>): FormData {
  let parts = 0
  let isInside = false
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at]
    if (byte === PLUS) body[at] = SPACE
    const isPart = byte !== AMPERSAND
    if (isPart && !isInside && ++parts > partsMax) throw tooMany(partsMax)
    isInside = isPart
  }
  const data = new FormData()
  // After an `&`, URLSearchParams does not strip a leading question mark.
  for (const [name, value] of new URLSearchParams(`&${body.toString()}`)) {
    if (value.length > fieldCharsMax)
      throw tooMuch(`the field ${name} is longer than ${fieldCharsMax} characters`)
    data.append(name, value)
  }
  return data
}
