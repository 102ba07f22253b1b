/**
 * What a form brought, in counted and measured parts: `application/x-www-form-urlencoded` or multipart.
 *
 * The parsing is the platform's own, so what is forgiven in a form is what this Node forgives. The whole body
 * is in memory while it is parsed: the server's `bodyBytesMax`, or `bodyLimit` for the route, bounds it; the
 * limits here bound its parts, which are counted before they are parsed.
 */
import { MIMEType } from 'node:util'
import { integer, optionsOf } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import { NativeResponse } from '../fetch/response.ts'
import { StatusError } from '../app/status-error.ts'

/** What {@link readForm} allows; more is answered with 413. */
export interface FormLimits {
  /** Most fields and files together. Default 100. */
  readonly partsMax?: number
  /** Most characters of a field's value. Default 65,536. */
  readonly fieldCharsMax?: number
  /** Most bytes of one file. Default: what the body may have. */
  readonly fileBytesMax?: number
}

/** A form, taken apart. */
export interface Form {
  /** Values of fields by name; of several with one name the last. */
  readonly fields: Readonly<Record<string, string>>
  /** Files by name; of several with one name the last. A file input that was left empty is none. */
  readonly files: Readonly<Record<string, File>>
  /** All there is, in its order. */
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
 * Read the form that a request brings.
 * @throws {StatusError} 413 beyond the limits, 415 for a body that is no form, 400 for one that is broken.
 * @throws {HttpError} `HTTP_ARGUMENT`, and those of reading a body.
 * @throws {TypeError} When the body was read already.
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
  // Before anything is made of it, at once: no other request would be served meanwhile.
  if (type.essence === URLENCODED) return urlencoded(body, partsMax)
  checkParts(body, type.params.get('boundary') ?? '', partsMax)
  try {
    return await new NativeResponse(body, { headers: { 'content-type': String(type) } }).formData()
  } catch (error) {
    throw new StatusError(400, 'the form cannot be read', {
      code: 'FORM_BROKEN',
      cause: error,
    })
  }
}

/** The content type, which the parser gets as it was read here. @throws {StatusError} 415 for no form's. */
function typeOf(request: Request): MIMEType {
  let type: MIMEType | undefined
  try {
    type = new MIMEType(request.headers.get('content-type') ?? '')
  } catch {
    // it is none
  }
  if (type !== undefined && [MULTIPART, URLENCODED].includes(type.essence)) return type
  throw new StatusError(415, 'the body must be a form', {
    code: 'FORM_EXPECTED',
  })
}

/**
 * Looks at what lies behind each delimiter that a parser could take for one: `--` with the boundary, at the
 * begin of a line, but for the first.
 * @throws {StatusError} 413 for more parts, or a part with a longer head.
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
 * As the standard has it. Where the body has a plus it has a space then: as a plus each would cost fifty
 * times as much.
 * @throws {StatusError} 413 for more fields; what is empty, between two `&`, is none.
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
  // Behind an `&` a question mark is none of a URL's.
  for (const [name, value] of new URLSearchParams(`&${body.toString()}`)) data.append(name, value)
  return data
}

function tooMany(partsMax: number): StatusError {
  return tooMuch(`the form has more than ${partsMax} parts`)
}

function tooMuch(reason: string): StatusError {
  return new StatusError(413, reason, { code: 'FORM_TOO_LARGE' })
}
