/**
 * Fails to load.
 *
 * So does a module that reads its configuration at the start.
 */
throw new Error('DATABASE_URL is not set')
