/**
 * Forms with limits: `application/x-www-form-urlencoded` and multipart.
 *
 * It is part of Corespun because `request.formData()` has no limits: here parts are counted before Node
 * parses them. The whole body is in memory; `bodyBytesMax` or `bodyLimit()` bounds it. Defaults: 100 parts,
 * 65,536 characters per field.
 */
import { MIMEType } from 'node:util'
import { integer, optionsOf } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import { NativeResponse } from '../fetch/response.ts'
import { StatusError } from '../app/status-error.ts'

/** Limits of {@link readForm}; a form beyond them gets 413. */
export interface FormLimits {
  /** Most fields and files together. Default 100. */
  readonly partsMax?: number
  /** Most characters of a field's value. Default 65,536. */
  readonly fieldCharsMax?: number
  /** Most bytes of one file. Default: the limit of the body. */
  readonly fileBytesMax?: number
}

/** A parsed form. */
export interface Form {
  /** Field values by name; the last one of several with the same name. */
  readonly fields: Readonly<Record<string, string>>
  /** Files by name; the last one of several with the same name. Empty file inputs are omitted. */
  readonly files: Readonly<Record<string, File>>
  /** All fields and files in order. */
  readonly data: FormData
}

const NO_LIMIT = 2 ** 40
const LIMITS = {
  partsMax: integer(0, NO_LIMIT, 100),
  fieldCharsMax: integer(0, NO_LIMIT, 65_536),
  fileBytesMax: integer(0, NO_LIMIT, NO_LIMIT),
}
const MULTIPART = 'multipart/form-data'
const URLENCODED = 'application/x-www-form-urlencoded'
const AMPERSAND = 0x26
const PLUS = 0x2b
const SPACE = 0x20
const DASH = 0x2d
/** Most bytes above the content of one part of a multipart form: its name, its file's, a type. */
const HEAD_BYTES_MAX = 8192
const HEAD_END = '\r\n\r\n'

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
  const { partsMax, fieldCharsMax, fileBytesMax } = optionsOf(limits, LIMITS, wrong, 'readForm()')
  const data = await dataOf(request, partsMax)
  const fields: Record<string, string> = Object.create(null) as Record<string, string>
  const files: Record<string, File> = Object.create(null) as Record<string, File>
  let parts = 0
  for (const [name, value] of data) {
    if (++parts > partsMax) throw tooMany(partsMax)
    if (typeof value === 'string') {
      if (value.length > fieldCharsMax)
        throw tooMuch(`the field ${name} is longer than ${fieldCharsMax} characters`)
      fields[name] = value
    } else if (value.size > fileBytesMax) {
      throw tooMuch(`the file ${name} is longer than ${fileBytesMax} bytes`)
    } else if (value.size > 0 || value.name !== '') files[name] = value
  }
  return { fields, files, data }
}

async function dataOf(request: Request, partsMax: number): Promise<FormData> {
  const type = typeOf(request)
  if (request.bodyUsed) throw new TypeError('readForm: the body has been read already')
  const body = Buffer.from(await request.arrayBuffer())
  if (type.essence === URLENCODED) return urlencoded(body, partsMax)
  checkParts(body, type.params.get('boundary') ?? '', partsMax)
  try {
    return await new NativeResponse(body, { headers: { 'content-type': String(type) } }).formData()
  } catch (error) {
    throw new StatusError(400, 'malformed form', {
      code: 'FORM_MALFORMED',
      cause: error,
    })
  }
}

function typeOf(request: Request): MIMEType {
  let type: MIMEType | undefined
  try {
    type = new MIMEType(request.headers.get('content-type') ?? '')
  } catch {
    // not a content type
  }
  if (type !== undefined && [MULTIPART, URLENCODED].includes(type.essence)) return type
  throw new StatusError(415, 'the body must be a form', {
    code: 'FORM_EXPECTED',
  })
}

/**
 * Counts every delimiter that a parser could accept: `--` with the boundary, at the start of a line except
 * for the first.
 */
function checkParts(body: Buffer, boundary: string, partsMax: number): void {
  const line = Buffer.from(`\n--${boundary}`)
  let parts = 0
  let at = body.indexOf(line.subarray(1)) - 1
  while (at > -2) {
    const behind = at + line.length
    if (body[behind] === DASH && body[behind + 1] === DASH) return // that of the end
    if (++parts > partsMax) throw tooMany(partsMax)
    const end = body.subarray(behind, behind + HEAD_BYTES_MAX + HEAD_END.length).indexOf(HEAD_END)
    if (end < 0 && body.length - behind > HEAD_BYTES_MAX)
      throw tooMuch(`the head of a part is longer than ${HEAD_BYTES_MAX} bytes`)
    const next = body.indexOf(line, behind)
    at = next < 0 ? -2 : next
  }
}

/**
 * Parses by the URL standard. Pluses are replaced by spaces in the body first: URLSearchParams is fifty times
 * slower at it. Empty fields between two `&` are not counted.
 */
function urlencoded(body: Buffer, partsMax: number): FormData {
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
  for (const [name, value] of new URLSearchParams(`&${body.toString()}`)) data.append(name, value)
  return data
}

function tooMany(partsMax: number): StatusError {
  return tooMuch(`the form has more than ${partsMax} parts`)
}

function tooMuch(reason: string): StatusError {
  return new StatusError(413, reason, { code: 'FORM_TOO_LARGE' })
}
