/**
 * `node --import corespun/typescript app.ts`: TypeScript modules load in this process and in its workers.
 *
 * Does nothing where Node strips types itself (22.18 and newer).
 * @module corespun/typescript
 */
import { installTypeScript } from './zone/internal.ts'

installTypeScript()
