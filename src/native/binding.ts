/**
 * The functions of the native core, printed from crates/node/src when it is compiled: `zoneMake` here is
 * `zone_make` there, where each is documented. Those of `calls.rs` without parameters run for every task:
 * their arguments and results are words of the two scratch buffers passed to `open` (layout.ts).
 */

/** Refusals are the negative numbers in layout.ts. */
export interface Binding {
  // call_sites.rs
  functionKnown(value: Function): number
  functionRemember(value: Function, number: number): void
  functionOrigin(value: Function, numbers: Uint8Array): unknown
  // calls.rs
  submitFunction(value: Function): void
  submitLarge(zone: number, functionNumber: number, bytes: Uint8Array, call: number): number
  completeLarge(token: number, status: number, bytes: Uint8Array): void
  taskBytes(token: number): Uint8Array
  taskStreams(token: number, to: number, from: number): number
  streamWaits(begins: number): void
  streamsStalled(): void
  streamsOver(): void
  broadcastDone(status: number, bytes: Uint8Array): void
  functionReady(number: number): void
  drained(): void
  largeResult(call: number): Uint8Array
  mail(): number
  submit(): void
  step(): void
  complete(): void
  drain(): void
  linger(): void
  submitOrdered(): void
  joinFork(): void
  help(): void
  // http.rs
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
  httpAddress(server: number): string
  httpFlush(server: number): void
  httpPut(server: number): void
  httpLarge(server: number, bytes: Uint8Array): void
  httpPull(server: number, slot: number, stamp: number): number
  httpRemote(server: number, slot: number, stamp: number): string
  httpStats(server: number, counts: Uint8Array): void
  httpConstants(server: number): Uint8Array
  httpStop(server: number, graceMs: number): void
  httpTake(server: number, number: number, bytes: Uint8Array): number
  httpMember(server: number): number
  httpStalledMs(member: number): number
  httpSendAway(member: number, isFinal: number): number
  httpClose(server: number): void
  httpFindFile(server: number, folder: string, path: string, index: string, numbers: Uint8Array): number
  httpFile(server: number, file: number, start: number, bytes: number): void
  httpTrailers(server: number, slot: number, stamp: number): string
  httpTls(server: number, settings: Uint8Array): void
  httpAskedName(server: number, slot: number, generation: number): string
  httpChoose(server: number, slot: number, generation: number, chosen: Uint8Array): void
  httpClientCertificate(server: number, slot: number, stamp: number): Uint8Array
  httpRefusals(server: number): string
  // lib.rs
  open(drain: () => void, out: Uint8Array, inbound: Uint8Array, main: boolean): number
  version(): string
  otherInstance(): string | undefined
  // link.rs
  linkOpen(): Uint8Array
  linkStart(number: number, pid: number): void
  linkDrop(number: number): void
  linkReaped(number: number): void
  linkBegin(descriptor: number, parent: number, memoryBytes: number): number
  linkJoin(handle: number, descriptor: number, number: number, slot: number): number
  linkChannels(leaving: number, arriving: number, to: number, from: number): void
  // memory.rs
  memoryMake(bytes: number): ArrayBuffer
  memoryCounts(bytes: number): void
  memoryTrim(): void
  // sheets.rs
  countBy(module: string): void
  countedBy(): string | undefined
  sheetTake(): number
  sheetAdd(buffer: number): void
  sheetsAll(): Uint8Array
  zoneFunctions(handle: number, bounds: Uint8Array): Uint8Array
  zoneQueue(id: string): Uint8Array
  nameTenant(low: number, high: number, name: string): void
  tenantName(low: number, high: number): string | undefined
  // slow.rs
  slowLast(): number
  slowAdd(numbers: Uint8Array, text: string): number
  slowNumbers(after: number): Uint8Array
  slowText(number: number): string | undefined
  slowGc(number: number, ms: number): void
  slowThread(): number
  // store.rs
  storeSetLarge(value: Uint8Array): void
  storeStepLarge(value: Uint8Array): void
  storeMake(
    id: string,
    settings: string,
    limits: Uint8Array,
    evicts: boolean,
    file: string,
    isSeeded: boolean,
  ): number
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
  storeBegin(handle: number, ticket: number): number
  storeEnd(handle: number, ticket: number, succeeded: boolean): void
  storeAdvance(ms: number): void
  storeSeededAt(ms: number): void
  storeFlush(handle: number, ticket: number): number
  storeFileStage(handle: number): number
  storeFileProblem(handle: number): string | undefined
  storeGet(): void
  storeView(): void
  storeRead(): void
  storeSet(): void
  storeRemove(): void
  storeHas(): void
  storeStep(): void
  storeCommit(): void
  storeAbandon(): void
  // sync.rs
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
  semaphoreTry(): void
  semaphoreRelease(): void
  channelPut(): void
  channelTake(): void
  channelFetch(): void
  counterDo(): void
  // tables.rs
  intern(table: number, text: string): number
  interned(table: number, number: number): string | undefined
  bufferShare(buffer: SharedArrayBuffer): number
  bufferMove(buffer: ArrayBuffer): number
  bufferLend(buffer: ArrayBuffer): number
  bufferLeave(buffer: ArrayBuffer): void
  bufferTake(number: number): ArrayBuffer | SharedArrayBuffer
  bufferRelease(number: number): void
  bufferCount(): number
  frameToken(offer: Uint8Array): void
  signalFire(number: number, reason: Uint8Array): void
  signalReason(number: number): Uint8Array | undefined
  signalForget(number: number): void
  // thread_state.rs
  scratchOpen(out: Uint8Array, inbound: Uint8Array): void
  scratchAttach(ids: Uint8Array): void
  scratchLarge(): Uint8Array
  scratchHold(): void
  scratchRelease(): void
  scratchMoves(): number
  // zones.rs
  zoneMake(id: string, settings: string, plan: Uint8Array): number
  zoneOver(number: number): number
  zoneGrow(number: number): number
  zoneShrink(number: number, idleMs: number): Uint8Array
  zoneReady(handle: number, call: number): number
  zoneReadyCancel(handle: number, call: number): number
  zoneWorkers(handle: number): Uint8Array
  zoneOpen(id: string): number
  zoneNumber(handle: number): number
  zoneSettings(number: number): string | undefined
  zoneId(number: number): string | undefined
  zoneIds(): string
  zoneDrop(handle: number): void
  zoneCounts(handle: number, counts: Uint8Array): void
  cancel(handle: number, call: number, note: number): number
  zoneTell(number: number, note: number): void
  zoneOverdue(number: number, graceMs: number): Uint8Array
  broadcast(handle: number, functionNumber: number, bytes: Uint8Array, call: number): number
  broadcastSync(handle: number, functionNumber: number, bytes: Uint8Array): number
  broadcastWait(number: number, sliceUs: number): number | Uint8Array
  zoneClose(handle: number, call: number): number
  zoneReload(handle: number, call: number): number
  zoneReloaded(number: number, count: number, status: number, error: Uint8Array): void
  zoneRetire(number: number, slot: number): void
  zoneRefuse(number: number): void
  zoneForget(number: number): void
  zoneWeaken(handle: number): void
  zoneUnused(number: number): number
  zoneClosing(number: number): number
  attach(number: number, slot: number): number
  detach(): void
  workerGone(number: number, slot: number, status: number, reason: Uint8Array): number
  renice(steps: number): void
  threadCpuNs(): number
  tickNs(): number
  cores(): number
  workerAdd(number: number): number
  zoneEnd(handle: number): number
  zoneFail(number: number, reason: Uint8Array): void
  zoneError(number: number): void
  zoneFailure(handle: number): Uint8Array | undefined
  zoneRunning(id: string): Uint8Array
  kick(number: number, kind: number): void
  attachBuffers(ids: Uint8Array): void
  signalMake(): number
  signalListen(number: number): Uint8Array | undefined
  zoneEnding(number: number): number
}
