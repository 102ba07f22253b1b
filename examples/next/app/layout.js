/**
 * The frame of all pages.
 * Without it Next.js writes one of its own.
 */
export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  )
}
