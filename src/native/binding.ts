/**
 * The functions of the native core as crates/node exports them.
 *
 * `zoneMake` here is `zone_make` there, where each is documented. Those above the first gap run for every
 * task: their arguments and results are words of the two scratch buffers passed to `open` (layout.ts).
 */

/** The functions of the core; refusals are the negative numbers in layout.ts. */
export interface Binding {
  /** Given: zone, function, length, call. Outcome: 0 or a refusal. */
  submit(): void
  /** As submit, for a function of a known location. Outcome: also UNKNOWN_FUNCTION; then nothing was sent. */
  submitFunction(value: Function): void
  /** Given: token, status, length. Found: a kind of step. */
  step(): void
  /** Given: token, status, length. */
  complete(): void
  /** Found: a count of records. */
  drain(): void
  linger(): void
  drained(): void
  /** As submit, from a worker of that zone, for a call that it waits for with `help`. */
  joinFork(): void
  /** As submit; given as well: order, worker, tenant. */
  submitOrdered(): void
  /** Given: call, steals. Found: a kind of step: mine, joined, task or nothing. */
  help(): void

  version(): string
  /** "version path" of another copy of the library in this process. */
  otherInstance(): string | undefined
  /** Open the bridge of this thread; returns its number, 0 when it is open already. */
  open(drain: () => void, out: Uint8Array, inbound: Uint8Array, main: boolean): number
  /** Given: order, and the words behind it if that is not 0. */
  submitLarge(zone: number, functionNumber: number, bytes: Uint8Array, call: number): number
  completeLarge(token: number, status: number, bytes: Uint8Array): void
  taskBytes(token: number): Uint8Array
  largeResult(call: number): Uint8Array
  /** The running task's result contains streams over these channels; 0 when its caller's thread has ended. */
  taskStreams(token: number, to: number, from: number): number
  /** One of this worker's tasks begins to wait for the other end of a stream; 0: it no longer does. */
  streamWaits(begins: number): void
  /** None of these waits has ended for long: if nothing else runs here, a task more may begin. */
  streamsStalled(): void
  /** A task whose streams may have waited is about to end. */
  streamsOver(): void
  broadcastDone(status: number, bytes: Uint8Array): void
  /** 1 when a message was written into the inbound scratch. */
  mail(): number
  attachBuffers(ids: Uint8Array): void

  /** `plan`: the numbers of `Plan` in layout.ts. */
  zoneMake(id: string, settings: string, plan: Uint8Array): number
  /** 1 when the zone has ended or its number is not in use. */
  zoneOver(number: number): number
  /** 0: done; 1: call again soon; 2: workers were requested, call again. */
  zoneGrow(number: number): number
  /** uint32: ms until the next check (0: none), then the slots of the workers that leave. */
  zoneShrink(number: number, idleMs: number): Uint8Array
  /** 1: the workers have started and the zone has capacity; 0: `call` ends then; below 0 a refusal. */
  zoneReady(handle: number, call: number): number
  /** Stop waiting for that; 1: `call` is over; 0: it still arrives. */
  zoneReadyCancel(handle: number, call: number): number
  /** Float64 for each worker, in the order that src/zone/ground/stats.ts reads. */
  zoneWorkers(handle: number): Uint8Array
  zoneOpen(id: string): number
  zoneNumber(handle: number): number
  zoneSettings(number: number): string | undefined
  zoneId(number: number): string | undefined
  zoneIds(): string
  zoneDrop(handle: number): void
  zoneCounts(handle: number, counts: Uint8Array): void
  zoneClose(handle: number, call: number): number
  /** 0 or a refusal. */
  zoneReload(handle: number, call: number): number
  zoneReloaded(number: number, count: number, status: number, error: Uint8Array): void
  zoneRetire(number: number, slot: number): void
  zoneRefuse(handle: number): void
  zoneForget(number: number): void
  /** 1 for the first call after the zone has ended. */
  zoneEnd(handle: number): number
  zoneError(number: number): void
  zoneFail(number: number, reason: Uint8Array): void
  zoneFailure(handle: number): Uint8Array | undefined
  /** A number of `Cancelled`. */
  cancel(handle: number, call: number, note: number): number
  zoneTell(handle: number, note: number): void
  /** uint32: ms until the next check (0: none), then the slots of the workers to terminate. */
  zoneOverdue(number: number, graceMs: number): Uint8Array
  broadcast(handle: number, functionNumber: number, bytes: Uint8Array, call: number): number
  broadcastSync(handle: number, functionNumber: number, bytes: Uint8Array): number
  /** Without a slice for the last time. -1: not yet; 0: all have run it; bytes: the first error. */
  broadcastWait(number: number, sliceUs: number): number | Uint8Array
  attach(number: number, slot: number): number
  /** This thread stops being a worker; its zone has let it leave. */
  detach(): void
  /** 1 when the zone closes or has ended. */
  zoneClosing(number: number): number
  workerGone(number: number, slot: number, status: number, reason: Uint8Array): number
  renice(steps: number): number
  /** The CPU time that this thread has used, in ns. */
  threadCpuNs(): number
  workerAdd(number: number): number
  kick(number: number, kind: number): void

  intern(table: number, text: string): number
  interned(table: number, number: number): string | undefined
  /** The number of the location of a function; 0 before it has one, -1 when the location is unknown. */
  functionKnown(value: Function): number
  functionRemember(value: Function, number: number): void
  /** The file of the function's script; writes script, line, column and 1 for a module as int32. */
  functionOrigin(value: Function, numbers: Uint8Array): unknown
  /** This thread can call that function without its event loop. */
  functionReady(number: number): void
  bufferShare(buffer: SharedArrayBuffer): number
  bufferMove(buffer: ArrayBuffer): number
  bufferLend(buffer: ArrayBuffer): number
  bufferLeave(buffer: ArrayBuffer): void
  bufferTake(number: number): ArrayBuffer | SharedArrayBuffer
  bufferRelease(number: number): void
  /** Replace the 8 bytes by the token of the process, which is the first offer. */
  frameToken(offer: Uint8Array): void
  bufferCount(): number
  signalMake(): number
  signalFire(number: number, reason: Uint8Array): void
  signalListen(number: number): Uint8Array | undefined
  signalReason(number: number): Uint8Array | undefined
  signalForget(number: number): void

  /** Given: handle, key bytes. Found: status, length, version, word index, word, ms left. */
  storeGet(): void
  /** As storeGet; given as well: looks before. Found as well: 1 at word 8 if it refers to memory. */
  storeView(): void
  /** Given: handle, key and value bytes, mode, version, ttl. Found: status. */
  storeSet(): void
  /** Given: handle, key bytes, 0, mode, version. Found: status, whether it was there. */
  storeRemove(): void
  /** Given: handle, key bytes. Found: status. */
  storeHas(): void
  /** Given: handle, ticket, amount. Found: status. */
  semaphoreTry(): void
  /** Given: handle, ticket. */
  semaphoreRelease(): void
  /** Given: handle, ticket, length, how to wait. Found: status. */
  channelPut(): void
  /** Given: handle, ticket, 0, how to wait. Found: status, length. */
  channelTake(): void
  /** Given: handle, ticket. Found: status, length. */
  channelFetch(): void
  /** Given: handle, kind, 0, 0, two doubles. Found: status, and a double at word 6. */
  counterDo(): void

  memoryMake(bytes: number): ArrayBuffer
  /** Let the collector of this thread count so many bytes more, or less if negative. */
  memoryCounts(bytes: number): void
  /** Return freed memory of all threads to the system, where the C library keeps it. */
  memoryTrim(): void
  scratchOpen(out: Uint8Array, inbound: Uint8Array): void
  scratchAttach(ids: Uint8Array): void
  scratchLarge(): Uint8Array
  scratchHold(): void
  scratchRelease(): void
  scratchMoves(): number
  storeSetLarge(value: Uint8Array): void
  storeMake(id: string, settings: string, limits: Uint8Array, evicts: boolean, file: string): number
  storeNumber(id: string): number
  storeId(number: number): string | undefined
  storeSettings(number: number): string | undefined
  storeCount(): number
  storeNames(most: number): string[]
  storeOpen(number: number): number
  storeDrop(handle: number): void
  storeClose(number: number): void
  storeClear(handle: number): void
  storeStats(handle: number, numbers: Uint8Array): void
  storeWords(handle: number): ArrayBuffer | undefined
  storeParts(handle: number): number
  storeKeys(handle: number, part: number): Uint8Array
  storeWatch(handle: number, ticket: number, isPrefix: boolean, eventsMax: number): number
  storeWatchTake(watch: number): Uint8Array
  storeUnwatch(watch: number): void
  /** 0: compute; 1: wait. */
  storeBegin(handle: number, ticket: number): number
  storeEnd(handle: number, ticket: number, succeeded: boolean): void
  storeFlush(handle: number, ticket: number): number
  storeFileStage(handle: number): number
  storeFileProblem(handle: number): string | undefined
  storeAdvance(ms: number): void
  syncMake(kind: number, name: string, amount: number, named: boolean): number
  syncNumber(kind: number, name: string): number
  syncNames(kind: number, most: number): string[]
  syncOpen(number: number): number
  syncDrop(handle: number): void
  syncForget(number: number): void
  syncCount(): number
  syncAmount(handle: number): number
  syncWait(ticket: number, sliceMs: number, spins: boolean): number
  syncUnwait(ticket: number): number
  semaphoreAcquire(handle: number, ticket: number, amount: number, blocks: boolean): number
  semaphoreCancel(handle: number, ticket: number): number
  semaphoreCounts(handle: number, waiting: boolean): number
  channelPutLarge(bytes: Uint8Array): void
  channelCancel(handle: number, ticket: number): number
  channelClose(handle: number): void
  channelLength(handle: number): number

  /** Listen; returns the server's number. src/http/core/native/core.ts packs the arguments. */
  httpOpen(
    call: () => void,
    inbound: Uint8Array,
    out: Uint8Array,
    body: Uint8Array,
    numbers: Uint8Array,
    host: string,
    path: Uint8Array,
    constants: Uint8Array,
  ): number
  /** "port host", or "0 path". */
  httpAddress(server: number): string
  /** Send the responses in the out region. */
  httpFlush(server: number): void
  /** Take the records in the out region; what waits on the last one's connection is found there. */
  httpPut(server: number): void
  /** The same; `bytes` are the last one's body. */
  httpLarge(server: number, bytes: Uint8Array): void
  /** The same; the last one's body is a part of an open file. Found: 1, or 0 if it has been closed. */
  httpFile(server: number, file: number, start: number, bytes: number): void
  /** Find a file inside of a folder and write five doubles; 0: no file there may be read. */
  httpFindFile(server: number, folder: string, path: string, index: string, numbers: Uint8Array): number
  /** The next bytes of a body, in the body region: how many, or a negative number, the reason. */
  httpPull(server: number, slot: number, stamp: number): number
  /** Copy a message of the batch that is not in the inbound region; `bytes` has its length. 1: done. */
  httpTake(server: number, number: number, bytes: Uint8Array): number
  /** "port address" of a client, "0 address" if a proxy has stated it; empty: none is known. */
  httpRemote(server: number, slot: number, stamp: number): string
  /** The trailer lines of a body that has ended; empty without any. */
  httpTrailers(server: number, slot: number, stamp: number): string
  /** Write eleven doubles. */
  httpStats(server: number, counts: Uint8Array): void
  httpStop(server: number, graceMs: number): void
  httpClose(server: number): void
  /** The number by which any thread asks about the one of this server; 0 after a stop. */
  httpMember(server: number): number
  /** Connections that are accepted from now on begin with TLS; src/http/core/native/tls.ts packs. */
  httpTls(server: number, settings: Uint8Array): void
  /** The name for which a handshake waits; '' when it does not any more. */
  httpAskedName(server: number, slot: number, generation: number): string
  /** The certificate for it; empty: none of its own. */
  httpChoose(server: number, slot: number, generation: number, chosen: Uint8Array): void
  /** Refusals since the last call; src/http/core/native/refusals.ts reads them. */
  httpRefusals(server: number): string
  /** The certificate of an exchange's client, in DER; empty: none. */
  httpClientCertificate(server: number, slot: number, stamp: number): Uint8Array
  /** For how long it has not returned to its loop though there is something to do, ms; -1: it left. */
  httpStalledMs(member: number): number
  /** Other servers accept its connections; `isFinal` 1 closes the port when it is the last. 1: done. */
  httpSendAway(member: number, isFinal: number): number

  /** uint32: the link's number, and the descriptors of the process. All of these on Unix alone. */
  linkOpen(): Uint8Array
  linkStart(number: number, pid: number): void
  linkDrop(number: number): void
  /** In the process. 0 if the system has no such bound of memory. */
  linkBegin(descriptor: number, parent: number, memoryBytes: number): number
  /** In the process. The slot for `attach`. */
  linkJoin(handle: number, descriptor: number, number: number, slot: number): number
  /** There: `leaving` continues as channel `to` of the parent, and its channel `from` as `arriving`. */
  linkChannels(leaving: number, arriving: number, to: number, from: number): void
}
