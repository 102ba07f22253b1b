/**
 * What the functions of a program return, in one line.
 *
 * A function that is refused is its code; `unhelpful` marks a message that does not name the plugin.
 */

/** @param {readonly (() => Promise<unknown>)[]} sent */
export async function answersOf(sent) {
  const found = await Promise.allSettled(sent.map((each) => each()))
  const shown = found.map((each) => (each.status === 'fulfilled' ? each.value : refusal(each.reason)))
  return shown.join(' ')
}

function refusal({ code, message }) {
  return message.includes('corespun/plugin') ? code : `unhelpful: ${code}: ${message}`
}
