//! hyper as a contender of the tables of HTTP: one thread, hyper's own connections, no framework.
//!
//! Usage: `corespun-bench-hyper <port> [h2 | <certificate> <key>]`: `h2` serves HTTP/2 by prior knowledge, a
//! certificate https by rustls. Its answers are those of bench/contenders/http/responses.ts.

use std::{convert::Infallible, error::Error, net::SocketAddr, sync::Arc, time::Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    header,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpSocket,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

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

/// TLS with the same provider, versions and kind of tickets as Corespun.
fn acceptor(certificate: &str, key: &str) -> Result<TlsAcceptor, Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.ticketer = ring::Ticketer::new()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
    let connection = http1::Builder::new()
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(stream), service_fn(respond));
    connection.await.ok(); // a client that left; its requests are over
}

async fn serve_http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let connection =
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service_fn(respond));
    connection.await.ok(); // a client that left; its requests are over
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let port = words.first().and_then(|text| text.parse().ok()).unwrap_or(8080);
    let tls = match &words[..] {
        [_, certificate, key] => Some(acceptor(certificate, key)?),
        _ => None,
    };
    let is_http2 = matches!(&words[..], [_, word] if word == "h2");
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
            let tls = tls.clone();
            tokio::task::spawn_local(async move {
                let Some(tls) = tls else {
                    return if is_http2 { serve_http2(socket).await } else { serve(socket).await };
                };
                if let Ok(stream) = tls.accept(socket).await {
                    serve(stream).await;
                }
            });
        }
    }))
}
