//! Limits of the tests of this crate, each of which changes what it is about. They are not those of a server:
//! its host passes them.

use super::Limits;

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes_max: 16 * 1024,
            headers_max: 100,
            target_bytes_max: 8 * 1024,
            body_bytes_max: 1024 * 1024,
            idle_ms: 60_000,
            headers_ms: 15_000,
            body_ms: 30_000,
            linger_ms: 30_000,
            connections_max: 10_000,
            requests_per_connection_max: u32::MAX,
            pipeline_max: 32,
            streams_max: 128,
            resets_max: 256,
            out_bytes_max: 256 * 1024,
            out_bytes_total_max: 256 * 1024 * 1024,
            open_files_max: 64,
            handshake_ms: 10_000,
            is_secure: false,
        }
    }
}
