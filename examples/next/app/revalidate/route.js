/**
 * Drops the page.
 * The next request, to whichever worker, makes it again.
 */
import { revalidatePath } from 'next/cache'

export function POST() {
  revalidatePath('/')
  return new Response('revalidated')
}
