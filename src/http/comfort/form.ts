/**
 * What a form brought, in counted and measured parts: `application/x-www-form-urlencoded` or multipart.
 *
 * The parsing is the platform's own. The whole body is in memory while it is parsed: the server's
 * `bodyBytesMax`, or `bodyLimit` for the route, bounds it; the limits here bound its parts.
 */
import { integerIn } from '../limits.ts'
import { isClientFault, SkeinRequest } from '../request.ts'
import { StatusError } from './status-error.ts'

/** What {@link formOf} allows; more is answered with 413. */
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

/**
 * Read the form that a request brings.
 * @throws {StatusError} 413 beyond the limits, 415 for a body that is no form, 400 for one that is broken.
 * @throws {HttpError} `HTTP_SETTING`, and those of reading a body.
 * @throws {TypeError} When the body was read already.
 */
export async function formOf(request: Request, limits: FormLimits = {}): Promise<Form> {
  const ranges = { least: 0, most: NO_LIMIT }
  const partsMax = integerIn('partsMax', limits.partsMax, {
    ...ranges,
    default: 100,
  })
  const charsMax = integerIn('fieldCharsMax', limits.fieldCharsMax, {
    ...ranges,
    default: 65_536,
  })
  const bytesMax = integerIn('fileBytesMax', limits.fileBytesMax, {
    ...ranges,
    default: NO_LIMIT,
  })
  const data = await dataOf(request)
  const fields: Record<string, string> = Object.create(null) as Record<string, string>
  const files: Record<string, File> = Object.create(null) as Record<string, File>
  let parts = 0
  for (const [name, value] of data) {
    if (++parts > partsMax) throw tooMuch(`the form has more than ${partsMax} parts`)
    if (typeof value === 'string') {
      if (value.length > charsMax) throw tooMuch(`the field ${name} is longer than ${charsMax} characters`)
      fields[name] = value
    } else if (value.size > bytesMax) {
      throw tooMuch(`the file ${name} is longer than ${bytesMax} bytes`)
    } else if (value.size > 0 || value.name !== '') files[name] = value
  }
  return { fields, files, data }
}

async function dataOf(request: Request): Promise<FormData> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\s*(;|$)/i.test(type))
    throw new StatusError(415, 'the body must be a form', {
      code: 'FORM_EXPECTED',
    })
  if (request.bodyUsed) throw new TypeError('formOf: the body has been read already')
  try {
    return await request.formData()
  } catch (error) {
    // Ours say what the client is to blame for; any other TypeError of theirs is the handler's mistake.
    const isBroken =
      error instanceof TypeError && (isClientFault(error) || !(request instanceof SkeinRequest))
    if (!isBroken) throw error
    throw new StatusError(400, 'the form cannot be read', {
      code: 'FORM_BROKEN',
      cause: error,
    })
  }
}

function tooMuch(reason: string): StatusError {
  return new StatusError(413, reason, { code: 'FORM_TOO_LARGE' })
}
