//! hyper as a contender of the http table: one thread, hyper's own HTTP/1.1 connections, no framework.
//!
//! Usage: `corespun-bench-hyper <port>`. Its answers are those of bench/contenders/http/answers.ts.

use std::{convert::Infallible, net::SocketAddr, time::Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpSocket;

const TEXT: &str = "text/plain;charset=UTF-8";
const JSON: &str = "application/json";
const WORK_MS: u128 = 1;

fn answer(kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    if let Some(id) = path.strip_prefix("/user/") {
        // The JSON is put together; a serializer would write the same bytes.
        let body = format!(r#"{{"id":"{id}","name":"user {id}","active":true}}"#);
        return Ok(answer(JSON, body));
    }
    Ok(match path {
        "/" | "/constant" => answer(TEXT, "Hello, World!"),
        "/echo" => echo(request).await,
        "/work" => answer(TEXT, work()),
        _ => {
            let mut response = answer(TEXT, "Not Found");
            *response.status_mut() = hyper::StatusCode::NOT_FOUND;
            response
        }
    })
}

/// Parsed and made again.
async fn echo(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let parsed = match request.into_body().collect().await {
        Ok(body) => serde_json::from_slice::<serde_json::Value>(&body.to_bytes()).ok(),
        Err(_) => None,
    };
    let body = parsed.and_then(|value| serde_json::to_vec(&value).ok()).unwrap_or_default();
    answer(JSON, body)
}

/// Keeps the thread busy for 1 ms.
fn work() -> &'static str {
    let begun = Instant::now();
    while begun.elapsed().as_millis() < WORK_MS {
        std::hint::spin_loop();
    }
    "worked"
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(8080);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(async move {
        let listening = TcpSocket::new_v4()?;
        listening.set_reuseaddr(true)?; // the run before may have left connections in TIME_WAIT
        listening.bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
        let listener = listening.listen(511)?;
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            tokio::task::spawn_local(async move {
                let connection = http1::Builder::new()
                    .pipeline_flush(true)
                    .serve_connection(TokioIo::new(socket), service_fn(respond));
                connection.await.ok(); // a client that left; its requests are over
            });
        }
    }))
}
