/**
 * This thread's port, which zones share with stores and locks.
 *
 * It lies in src/port; here only so that the files of this folder need not know.
 */
export { type Arrival, type MailHandler, type Port, thisPort, valueOf } from '../port/index.ts'
