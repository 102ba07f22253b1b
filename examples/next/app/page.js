/**
 * A page that is made once, for all workers, until it is revalidated.
 * Its version shows who made it.
 */
export const revalidate = 3600

export default function Page() {
  return <p>version {crypto.randomUUID()}</p>
}
