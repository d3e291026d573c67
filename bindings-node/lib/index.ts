export type { AdoptOptions, LockCallback, MultiLockCallback, TryOutcome, WithLockOptions, WithMultiLockOptions, WithReadLockOptions, WithSemaphoreOptions } from './body.js'
export { Client } from './client.js'
export type { Credentials, CredentialsProvider } from './credentials.js'
export {
  configure,
  cronJob,
  election,
  job,
  lock,
  multiLock,
  readLock,
  semaphore,
  tryWithLock,
  tryWithMultiLock,
  tryWithReadLock,
  tryWithSemaphore,
  withLock,
  withMultiLock,
  withReadLock,
  withSemaphore,
} from './default.js'
export { Election, Leadership } from './election.js'
export type { Leader, LeaderWork, Observation } from './election.js'
export {
  AcquireTimeoutError,
  ClosedError,
  DeadlockError,
  DeniedError,
  ForkedError,
  InternalError,
  InvalidArgumentError,
  JobDeadError,
  KeyConflictError,
  LockError,
  LockLostError,
  NotHeldError,
  UnavailableError,
} from './errors.js'
export type { LossReason, ServerFailure } from './errors.js'
export type { ClientEvents, EventKind, LockEvent } from './events.js'
export { Hold } from './hold.js'
export type { Release } from './holding.js'
export type { IoredisLike } from './ioredis.js'
export { Attempt, Job } from './job.js'
export type { JobOutcome, JobState, JobStatus, JobWork, NotRunReason } from './job.js'
export { Lock, safeName } from './lock.js'
export type { Grant, HoldInfo, LockInfo, OwnerFields } from './lock.js'
export { metrics, Metrics } from './metrics.js'
export type { Metric, Sample } from './metrics.js'
export { MultiHold, MultiLock } from './multi.js'
export type { AcquireOptions, ClientOptions, CronJobOptions, ExtendOptions, FailOptions, JobOptions, LockOptions, MultiLockOptions, ReadLockOptions, SemaphoreOptions } from './options.js'
export type { ServerSource, ServerReport } from './servers.js'
export type { TraceContext, TracedOperation } from './tracing.js'
