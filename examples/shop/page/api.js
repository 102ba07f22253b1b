/**
 * Requests of a page, listeners, and how what goes wrong is shown. Content is set as text, never as HTML.
 * Each error is a sentence for the reader.
 */
export const $ = (id) => document.getElementById(id)

export const price = (cents) => `€ ${(cents / 100).toFixed(2)}`

export function element(name, text, properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text, ...properties })
}

/** @returns The JSON of the response. @throws {Error} With the `status` of a response. */
export async function ask(method, path, body, headers = {}) {
  const isFile = body instanceof Blob
  const type = isFile ? 'application/x-ndjson' : 'application/json'
  const response = await fetch(path, {
    method,
    headers: { ...(body !== undefined && { 'content-type': type }), ...headers },
    body: body === undefined || isFile ? body : JSON.stringify(body),
  }).catch(() => {
    throw new Error('The shop cannot be reached.')
  })
  const found = await response.json().catch(() => undefined)
  if (response.ok && found !== undefined) return found
  // A route's own reason, problem details (RFC 9457), or an error of the server.
  const reason = found?.reason ?? found?.detail ?? found?.errors?.[0]?.message ?? found?.error?.message
  const { status } = response
  throw Object.assign(new Error(reason ?? `The shop responds with status ${status}.`), { status })
}

/** In place of what the browser would do. */
export function on(target, type, work) {
  target.addEventListener(type, (event) => {
    event.preventDefault()
    void attempt(() => work(event))
  })
}

/** Hides the error before, and shows the one of this work. */
export async function attempt(work) {
  $('message').hidden = true
  try {
    await work()
  } catch (error) {
    $('message').textContent = error.message
    $('message').hidden = false
  }
}
