/**
 * A crawler: at most eight requests at once, each with a timeout and retries; Ctrl-C ends all of it.
 *
 * Crawls a server of its own whose pages fail now and then. Prints one line.
 */
import assert from 'node:assert/strict'
import { all, attempt, exitOf, fork, type Operation, retry, Schedule } from 'corespun/fiber'
import { serve, StatusError } from 'corespun/http'
import { Semaphore } from 'corespun/sync'

const PAGES = 60
const REQUESTS_MAX = 8
const MISSING = 13

const attempts = new Map<number, number>()
let openCount = 0
let openMax = 0
const server = await serve({
  port: 0,
  routes: {
    '/:page': async ({ params }) => {
      openMax = Math.max(openMax, (openCount += 1))
      await new Promise((resolve) => setTimeout(resolve, 5))
      openCount -= 1
      const page = Number(params.page)
      const attempted = (attempts.get(page) ?? 0) + 1
      attempts.set(page, attempted)
      if (page === MISSING) throw new StatusError(404, 'no such page')
      if (page % 7 === 0 && attempted < 3) throw new StatusError(503, 'busy')
      const links = [page * 2, page * 2 + 1].filter((link) => link <= PAGES)
      return links.map((link) => `<a href="/${link}">${link}</a>`).join('')
    },
  },
  error: (error) => new Response(null, { status: error instanceof StatusError ? error.status : 500 }),
})

const requests = new Semaphore({ permits: REQUESTS_MAX })
const policy = Schedule.exponential(5).jittered().and(Schedule.recurs(3))
const pages = new Map<string, number | 'loading' | 'failed'>()

async function load(url: string, signal: AbortSignal): Promise<{ status: number; links: string[] }> {
  const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(60_000)]) })
  if (response.status >= 500) throw new Error(`status ${response.status}`)
  const links = [...(await response.text()).matchAll(/href="(.*?)"/g)]
  return { status: response.status, links: links.map(([, link]) => new URL(link ?? '', url).href) }
}

function* visit(url: string): Operation<void> {
  if (pages.has(url)) return
  pages.set(url, 'loading')
  const page = attempt((signal) => requests.guard(() => load(url, signal), { signal }))
  const exit = yield* exitOf(retry(page, policy))
  pages.set(url, exit.kind === 'success' ? exit.value.status : 'failed')
  if (exit.kind === 'success') yield* all(exit.value.links.map((link) => () => visit(link)))
}

const crawl = fork(() => visit(`${server.url}/1`))
const stop = (): void => void crawl.interrupt('Ctrl-C')
process.once('SIGINT', stop)
const { kind } = await crawl.await()
process.removeListener('SIGINT', stop)
await server.close()

const statuses = [...pages.values()]
assert.equal(kind, 'success')
assert.ok(openMax <= REQUESTS_MAX, `${openMax} requests at once`)
assert.equal(attempts.get(7), 3)
// Pages 26, 27, 52, 53, 54 and 55 are only linked from the missing page.
assert.equal(pages.size, PAGES - 6)
assert.deepEqual(
  statuses.filter((status) => status !== 200),
  [404],
)
console.log(`${pages.size} pages, at most ${REQUESTS_MAX} requests at once`)
