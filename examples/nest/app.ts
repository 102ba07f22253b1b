/**
 * An app of Nest: prices in a cache that all workers share, and server-sent events.
 *
 * Nest's decorators need a compiler: `npm run build`, then `corespun serve dist/app.js`.
 */
import 'reflect-metadata'
import { randomUUID } from 'node:crypto'
import { threadId } from 'node:worker_threads'
import {
  Controller,
  Get,
  Header,
  Injectable,
  type MessageEvent,
  Module,
  type OnApplicationShutdown,
  Post,
  Sse,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { store } from 'corespun/store'
import { map, type Observable, take, timer } from 'rxjs'

interface Page {
  readonly version: string
}

@Injectable()
class Pages implements OnApplicationShutdown {
  readonly #pages = store.getOrCreate<Page>('pages', { entriesMax: 10_000 })

  /** Made once for all workers. */
  prices(): Promise<Page> {
    return this.#pages.getOrCompute('prices', () => ({ version: randomUUID() }))
  }

  drop(): void {
    this.#pages.delete('prices')
  }

  onApplicationShutdown(): void {
    console.error(`worker ${threadId} has closed`)
  }
}

@Controller()
class PricesController {
  constructor(private readonly pages: Pages) {}

  @Get()
  @Header('x-worker', String(threadId))
  prices(): Promise<Page> {
    return this.pages.prices()
  }

  @Post('revalidate')
  @Header('x-worker', String(threadId))
  revalidate(): string {
    this.pages.drop()
    return 'dropped'
  }

  @Sse('events')
  events(): Observable<MessageEvent> {
    return timer(0, 100).pipe(
      take(3),
      map((data) => ({ data: String(data) })),
    )
  }
}

@Module({ controllers: [PricesController], providers: [Pages] })
class AppModule {}

export default await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
