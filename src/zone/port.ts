/**
 * This thread's port, which zones share with stores and locks: see src/port.
 */
export { type Arrival, type MailHandler, type Port, Status, thisPort, valueOf } from '../port/index.ts'
