/**
 * A page whose first part is sent before the second one is made.
 * React puts the second one where it belongs.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { connection } from 'next/server'
import { Suspense } from 'react'

async function Late() {
  await connection()
  await pause(300)
  return <p>late</p>
}

export default function Page() {
  return (
    <>
      <p>early</p>
      <Suspense fallback={<p>waiting</p>}>
        <Late />
      </Suspense>
    </>
  )
}
