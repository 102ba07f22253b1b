/**
 * What the messages of every engine must do, as tests that any adapter runs.
 *
 * An engine without messages runs only the other half: keeps.test.support.ts.
 */
import assert from 'node:assert/strict'
import type { Engine, Message, Messages } from './engine.ts'
import {
  Arrivals,
  type Check,
  type Venue,
  bytes,
  checkOf,
  isCode,
  newName,
  text,
} from './conformance.test.support.ts'

type Closable = Pick<Engine, 'close'>

/** The tests, with a venue of that kind for each of them. */
export function messagesConformance(kind: string, open: () => Promise<Venue>): void {
  const check = checkOf(kind, open, (engine) => engine.messages as Messages & Closable)
  messages(check)
  listeners(check)
  ends(check)
}

function messages(check: Check<Messages & Closable>): void {
  check('a question without a listener is answered by nobody', async (one) => {
    const replies = new Arrivals<Uint8Array | undefined>()
    one.ask(newName(), bytes('anybody?'), replies.push)
    assert.equal(await replies.next(), undefined)
  })

  check('every listener has a question, and may reply more than once, in order', async (one, other) => {
    const subject = newName()
    await one.listen(subject, ({ bytes: asked, reply }) => reply(bytes(`${text(asked)} one`)))
    await other.listen(subject, ({ reply }) => {
      for (const part of ['a', 'b', 'c']) reply(bytes(part))
    })
    const replies = new Arrivals<Uint8Array | undefined>()
    const end = one.ask(subject, bytes('hello'), replies.push)
    const all = []
    for (let count = 0; count < 4; count++) all.push(text(await replies.next()))
    assert.deepEqual(
      all.filter((each) => each!.length === 1),
      ['a', 'b', 'c'],
    )
    assert.ok(all.includes('hello one'))
    end()
  })

  check('a question that was ended receives nothing more', async (one, other) => {
    const subject = newName()
    const asked = new Arrivals<Message>()
    await other.listen(subject, asked.push)
    const replies = new Arrivals<Uint8Array | undefined>()
    const end = one.ask(subject, bytes('first'), replies.push)
    const first = await asked.next()
    first.reply(bytes('1'))
    assert.equal(text(await replies.next()), '1')
    end()
    first.reply(bytes('2'))
    one.ask(subject, bytes('second'), replies.push)
    ;(await asked.next()).reply(bytes('3'))
    assert.equal(text(await replies.next()), '3')
  })

  check('what was sent before a flush is with the servers behind it', async (one, other) => {
    const subject = newName()
    const received = new Arrivals<Message>()
    await other.listen(subject, received.push)
    one.watchLink(() => assert.fail('it is not lost'))
    one.send(subject, bytes('sent'))
    await one.flush()
    await other.flush()
    assert.equal(received.count, 1)
  })
}

function listeners(check: Check<Messages & Closable>): void {
  check('what was delivered before its listener ended is received', async (one, other) => {
    const subject = newName()
    let count = 0
    const end = await other.listen(subject, ({ bytes: asked, reply }) => {
      count++
      reply(asked)
    })
    const replies = new Arrivals<Uint8Array | undefined>()
    const asked = 64
    for (let index = 0; index < asked; index++) one.ask(subject, bytes('on its way'), replies.push)
    await one.flush()
    end()
    await other.flush()
    assert.equal(count, asked)
    for (let index = 0; index < asked; index++) assert.equal(text(await replies.next()), 'on its way')
  })

  check('who has ended listening is nobody', async (one, other) => {
    const subject = newName()
    const received = new Arrivals<Message>()
    const end = await other.listen(subject, received.push)
    one.send(subject, bytes('sent'))
    assert.equal(text((await received.next()).bytes), 'sent')
    end()
    end()
    await other.listen(newName(), received.push) // behind the end, so the server has had that
    const replies = new Arrivals<Uint8Array | undefined>()
    one.ask(subject, bytes('late'), replies.push)
    assert.equal(await replies.next(), undefined)
    assert.equal(received.count, 0)
  })
}

function ends(check: Check<Messages & Closable>): void {
  check('what is closed sends nothing', async (one) => {
    await one.close()
    assert.throws(() => one.send('x', bytes('')), isCode('FLEET_CLOSED'))
    assert.throws(() => one.ask('x', bytes(''), () => {}), isCode('FLEET_CLOSED'))
    await assert.rejects(one.flush(), isCode('FLEET_CLOSED'))
    await assert.rejects(
      one.listen('x', () => {}),
      isCode('FLEET_CLOSED'),
    )
  })
}
