/**
 * Refusals as the native core reports them: a line with the number of those left out, and a line for each.
 *
 * crates/http/src/reactor/connections/refusals.rs writes them. The core has checked that no part contains a
 * tab.
 */
import { type Refusals, type Refused, reasonOf } from '../../message/refusals.ts'

export function reportAll(text: string, refusals: Refusals): void {
  const [leftOut, ...lines] = text.split('\n')
  for (const line of lines) {
    if (line === '') continue
    const [what, reason, status, protocol, remoteAddress, detail] = line.split('\t')
    refusals.report({
      what: what as Refused['what'],
      reason: reason === '' ? reasonOf(Number(status)) : reason,
      status: Number(status),
      protocol,
      remoteAddress,
      detail,
    })
  }
  refusals.leaveOut(Number(leftOut))
}
