/**
 * The WebSocket of the page, which connects again when it is lost, each time after a longer pause.
 * What is sent meanwhile is dropped: `onOpen` is called for each connection, and `onLoss` when it is lost.
 */
const PAUSE_MS_MIN = 500
const PAUSE_MS_MAX = 30_000

export function connect({ onOpen, onMessage, onLoss }) {
  let socket
  let pauseMs = PAUSE_MS_MIN
  open()
  return (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message))

  function open() {
    socket = new WebSocket(`${location.origin.replace('http', 'ws')}/live`)
    socket.addEventListener('message', ({ data }) => onMessage(JSON.parse(data)))
    socket.addEventListener('open', () => {
      pauseMs = PAUSE_MS_MIN
      onOpen()
    })
    socket.addEventListener('close', () => {
      onLoss()
      setTimeout(open, pauseMs)
      pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)
    })
  }
}
