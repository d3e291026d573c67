// A NestJS service with one charge at a time for each order, in any number of processes. Other requests get 409.
//   LOCKTENDER_URL=redis://localhost PORT=3000 node dist/nestjs.js      (after `nest build`)
//   curl --request POST localhost:3000/orders/42/charge
// SIGTERM shuts it down gracefully: it finishes its requests, or cancels them after five seconds. Both release their locks.

import 'reflect-metadata'

import { setTimeout as sleep } from 'node:timers/promises'

import { Catch, Controller, createParamDecorator, HttpCode, HttpException, Module, Param, Post } from '@nestjs/common'
import type { ArgumentsHost, ExceptionFilter, ExecutionContext, OnApplicationShutdown } from '@nestjs/common'
import { APP_FILTER, NestFactory } from '@nestjs/core'
import { AcquireTimeoutError, Client, UnavailableError } from 'locktender'

const { PORT = 0, CHARGE_MS = 300, GRACE_MS = 5_000 } = process.env

@Catch(AcquireTimeoutError, UnavailableError)
class LockErrors implements ExceptionFilter {
  catch(error: AcquireTimeoutError | UnavailableError, host: ArgumentsHost) {
    const status = error instanceof AcquireTimeoutError ? 409 : 503
    host.switchToHttp().getResponse().status(status).set('Retry-After', '1').json({ code: error.code })
  }
}

/** One client for the whole service (LOCKTENDER_URL), closed after its last request: `onModuleDestroy` would be too early. */
@Module({ providers: [{ provide: Client, useFactory: () => new Client() }, { provide: APP_FILTER, useClass: LockErrors }], exports: [Client] })
class LocksModule implements OnApplicationShutdown {
  constructor(private readonly locks: Client) {}

  onApplicationShutdown() {
    return this.locks.close()
  }
}

/** A signal that is aborted when the customer hangs up. */
const HangUp = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const gone = new AbortController()
  context.switchToHttp().getResponse().once('close', () => gone.abort(new HttpException('the customer hung up', 499)))
  return gone.signal
})

@Controller('orders')
class OrdersController {
  constructor(private readonly locks: Client) {}

  @Post(':id/charge')
  @HttpCode(200)
  pay(@Param('id') id: string, @HangUp() signal: AbortSignal) {
    return this.locks.withLock(`orders:${id}`, { waitMs: 100, signal }, async (hold) => {
      await charge(AbortSignal.any([hold.signal, signal]))   // cancelled if the lock is lost, or the customer hangs up
      return { order: id, fence: hold.fence }                // send the fence along with each write
    })
  }
}

/** Stands for the payment provider: takes a while, unless it is cancelled. */
function charge(signal: AbortSignal) {
  return sleep(Number(CHARGE_MS), undefined, { signal }).catch(() => signal.throwIfAborted())
}

@Module({ imports: [LocksModule], controllers: [OrdersController] })
class AppModule {}

async function bootstrap() {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
  app.enableShutdownHooks(['SIGTERM'], { useProcessExit: true })
  process.once('SIGTERM', () => {
    setInterval(() => app.getHttpServer().closeIdleConnections(), 100)               // those that customers keep alive
    setTimeout(() => app.getHttpServer().closeAllConnections(), Number(GRACE_MS))    // a charge that takes too long
  })
  await app.listen(PORT, '127.0.0.1')
  console.log(await app.getUrl())
}

void bootstrap()
