/**
 * Servers of a run: requests and responses as over sockets, connections that are lost, readers that are slow.
 *
 * Apps themselves are in src/http; here is what is between them and their clients.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CheckError, type World, check } from './index.ts'

const text = async (response: Response): Promise<string> => response.text()
const reset = (error: unknown): boolean => {
  const { message, cause } = error as {
    readonly message: string
    readonly cause?: { readonly code?: string }
  }
  assert.equal(message, 'fetch failed')
  return cause?.code === 'ECONNRESET'
}

test('a request reaches the app of its port, after a delay, and its response returns', () =>
  check({ seeds: 50 }, async ({ serve, fetch, now }) => {
    const begun = now()
    const shop = await serve({
      routes: {
        '/orders/:id': { GET: ({ params }) => ({ id: params.id }), POST: async (request) => request.text() },
        '/none': () => new Response(null, { status: 204 }),
        '/fails': () => {
          throw new RangeError('its own')
        },
      },
      error: () => undefined,
    })
    const other = await serve({
      port: 0,
      fetch: ({ method }) => new Response(method, { headers: { a: 'b' } }),
    })
    assert.deepEqual([shop.url, shop.port, other.port], ['http://localhost:3000', 3000, 49_152])
    assert.deepEqual(await (await fetch(`${shop.url}/orders/7`)).json(), { id: '7' })
    const posted = await fetch(new Request(`${shop.url}/orders/7`, { method: 'POST', body: 'a body' }))
    assert.deepEqual([posted.url, await text(posted)], [`${shop.url}/orders/7`, 'a body'])
    const put = await globalThis.fetch(other.url, { method: 'PUT' })
    assert.deepEqual([put.headers.get('a'), await text(put)], ['b', 'PUT'])
    assert.equal((await fetch(`${shop.url}/none`)).status, 204)
    assert.equal((await fetch(`${shop.url}/fails`)).status, 500)
    assert.ok(now() > begun)
    await assert.rejects(serve({ routes: {} }), { code: 'HTTP_PORT_TAKEN' })
    await assert.rejects(serve({ port: -1 }), { code: 'CHECK_ARGUMENT' })
    await shop.close()
    const refused = (error: { readonly cause?: unknown }): boolean =>
      (error.cause as { readonly code: string }).code === 'ECONNREFUSED'
    await assert.rejects(fetch(shop.url), refused)
    await assert.rejects(fetch('https://example.org'), refused)
    await (await serve({ routes: {} })).close()
  }))

/** A server in a task of its own, whose responses have so many chunks, each of 40,000 bytes. */
const streaming = async ({ spawn, serve, step }: World, chunkCount: number) => {
  const made = { count: 0, isAborted: false, isCancelled: false }
  const task = spawn(async () => {
    await serve({
      fetch: (request) => {
        request.signal.addEventListener('abort', () => (made.isAborted = true))
        const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
          if (made.count++ < chunkCount) controller.enqueue(new Uint8Array(40_000))
          else controller.close()
        }
        return new Response(new ReadableStream({ pull, cancel: () => void (made.isCancelled = true) }))
      },
    })
    await new Promise(() => {})
  }, 'server')
  await step()
  await step()
  return { task, made }
}
const connected = async ({ fetch, sleep }: World): Promise<Response> => {
  for (;;)
    try {
      return await fetch('http://localhost:3000')
    } catch {
      await sleep(5)
    }
}

test('a response that lasts leaves turns of the run to others, not of the real event loop', () =>
  check({ seeds: 10 }, async ({ fetch, serve, sleep }) => {
    const lasting = (): Response => {
      let count = 0
      const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
        await sleep(20)
        if (++count > 5) controller.close()
        else controller.enqueue(new Uint8Array(10))
      }
      return new Response(new ReadableStream({ pull }))
    }
    await serve({ fetch: lasting })
    assert.equal((await (await fetch('http://localhost:3000')).arrayBuffer()).byteLength, 50)
  }))

test('a server does not send more than its client reads', () =>
  check({ seeds: 30 }, async (world) => {
    const { made } = await streaming(world, 100)
    const response = await connected(world)
    await world.sleep(10_000)
    assert.ok(made.count < 10, String(made.count))
    assert.equal((await response.arrayBuffer()).byteLength, 4_000_000)
  }))

test('who reads no more, aborts or dies is noticed by the server', () =>
  check({ seeds: 15, stall: 0 }, async (world) => {
    for (const how of ['cancel', 'abort', 'die']) {
      const { task, made } = await streaming(world, 100)
      const controller = new AbortController()
      const client = world.spawn(async () => {
        await connected(world)
        const response = await world.fetch('http://localhost:3000', { signal: controller.signal })
        const reader = response.body!.getReader()
        await reader.read()
        if (how === 'cancel') await reader.cancel()
        if (how === 'abort') {
          controller.abort(new RangeError('enough'))
          await assert.rejects(async () => {
            for (;;) await reader.read()
          }, RangeError)
          await assert.rejects(
            world.fetch('http://localhost:3000', { signal: controller.signal }),
            RangeError,
          )
        }
        if (how === 'die') await new Promise(() => {})
      }, how)
      if (how === 'die') {
        await world.sleep(1000)
        client.kill()
      } else await client.join()
      await world.sleep(1000)
      assert.ok(made.isAborted, how)
      task.kill()
    }
  }))

test('a server that dies resets its connections, and its port is free', () =>
  check({ seeds: 60 }, async (world) => {
    const { task } = await streaming(world, 100)
    const response = await connected(world)
    task.kill()
    await assert.rejects(response.arrayBuffer(), reset)
    await streaming(world, 1)
    assert.equal((await (await connected(world)).arrayBuffer()).byteLength, 40_000)
  }))

test('a request in flight is reset by the seed, by the end of its server, and held by a cut', async () => {
  let lost = 0
  await check({ seeds: 60, network: { resets: 0.1 } }, async ({ serve, fetch }) => {
    await serve({ routes: { '/': async (request) => request.text() } })
    const outcomes = [1, 2, 3].map(async (n) =>
      text(
        await fetch('http://localhost:3000/', {
          method: 'PUT',
          body: String(n),
        }),
      ),
    )
    for (const { status, ...of } of await Promise.allSettled(outcomes))
      if (status === 'rejected') lost += Number(reset((of as PromiseRejectedResult).reason))
  })
  assert.ok(lost > 10, String(lost))
  await check({ seeds: 60, stall: 0 }, async ({ serve, fetch, spawn, cut, sleep, now }) => {
    let isOver = false
    const server = await serve({
      routes: { '/': () => sleep(100).then(() => 'late'), '/never': () => new Promise<string>(() => {}) },
    })
    const client = spawn(async () => {
      const response = await fetch('http://localhost:3000/')
      isOver = true
      return text(response)
    }, 'client')
    await sleep(50)
    const begun = now()
    const heal = cut(client)
    await sleep(500)
    assert.ok(!isOver)
    heal()
    assert.equal(await client.join(), 'late')
    assert.ok(now() - begun >= 500)
    const never = spawn(() => fetch('http://localhost:3000/never'), 'never')
    await sleep(50)
    await server.close({ timeoutMs: 200 })
    await assert.rejects(never.join(), reset)
  })
})

test('a handler that does not read its request responds, and the upload ends', () =>
  check({ seeds: 30 }, async ({ serve, fetch, sleep }) => {
    await serve({ fetch: async (request) => (await request.body?.cancel(), new Response('no')) })
    let [sent, isCancelled] = [0, false]
    const body = new ReadableStream({
      pull: async (controller) => {
        await sleep(1)
        controller.enqueue(new Uint8Array(30_000))
        sent++
      },
      cancel: () => void (isCancelled = true),
    })
    const init = { method: 'POST', body, duplex: 'half' } as RequestInit
    assert.equal(await text(await fetch('http://localhost:3000', init)), 'no')
    await sleep(1000)
    assert.ok(isCancelled && sent < 100, String(sent))
  }))

test('a body that fails while it is sent resets its connection', () =>
  check({ seeds: 30 }, async ({ serve, fetch }) => {
    let count = 0
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      if (count++ > 3) throw new RangeError('broken')
      controller.enqueue(new Uint8Array(5))
    }
    await serve({ fetch: () => new Response(new ReadableStream({ pull })), error: () => undefined })
    await assert.rejects(async () => text(await fetch('http://localhost:3000')), reset)
  }))

test('a handler without an end is named where nothing can go on', async () => {
  const stuck = check({ seeds: 1 }, async ({ serve, fetch }) => {
    await serve({ routes: { '/x': () => new Promise<string>(() => {}) } })
    await fetch('http://localhost:3000/x')
  })
  await assert.rejects(stuck, (error: CheckError) => {
    assert.match(error.message, /main waits for the response of GET \/x/)
    return error.code === 'CHECK_DEADLOCK'
  })
})
