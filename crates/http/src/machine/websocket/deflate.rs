//! Compression of messages (RFC 7692), without context takeover: each message is compressed by itself.
//! Therefore all connections of a thread share one compressor and one decompressor, and a message that goes
//! to many of them is compressed once.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Fault, TOO_LARGE, code};

/// What a compressed message ends with, and its frames leave out (7.2.1).
const END: [u8; 4] = [0, 0, 0xff, 0xff];
/// Bytes by which the output grows.
const STEP_BYTES: usize = 16 * 1024;

/// Both directions, allocated when they are needed first.
#[derive(Debug, Default)]
pub struct Deflate {
    compress: Option<Compress>,
    decompress: Option<Decompress>,
}

impl Deflate {
    /// The compressed form; `None` if it is not shorter.
    pub fn deflate(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let compress = self.compress.get_or_insert_with(|| Compress::new(Compression::fast(), false));
        compress.reset();
        let mut out = Vec::with_capacity(message.len().min(STEP_BYTES) + 64);
        loop {
            let from = compress.total_in() as usize;
            let status = compress.compress_vec(&message[from..], &mut out, FlushCompress::Sync).ok()?;
            let is_all = compress.total_in() as usize == message.len() && out.len() < out.capacity();
            if is_all || status == Status::StreamEnd {
                break;
            }
            if out.len() > message.len() {
                return None;
            }
            out.reserve(STEP_BYTES);
        }
        if !out.ends_with(&END) {
            return None;
        }
        out.truncate(out.len() - END.len());
        (out.len() < message.len()).then_some(out)
    }

    /// What was compressed. No more than `most` bytes are made of it.
    pub fn inflate(&mut self, message: &[u8], most: usize) -> Result<Vec<u8>, Fault> {
        let decompress = self.decompress.get_or_insert_with(|| Decompress::new(false));
        decompress.reset(false);
        let mut out = Vec::new();
        for input in [message, &END] {
            let begun = decompress.total_in();
            loop {
                if out.len() == out.capacity() {
                    out.reserve(STEP_BYTES.min(most + 1 - out.len()).max(1));
                }
                let from = (decompress.total_in() - begun) as usize;
                let before = (from, out.len());
                let status = decompress
                    .decompress_vec(&input[from..], &mut out, FlushDecompress::Sync)
                    .map_err(|_| Fault { code: code::INVALID, why: "message is not compressed" })?;
                if out.len() > most {
                    return Err(TOO_LARGE);
                }
                if status == Status::StreamEnd {
                    return Ok(out);
                }
                let now = ((decompress.total_in() - begun) as usize, out.len());
                if now.0 == input.len() && out.len() < out.capacity()
                    || now == before && out.len() < out.capacity()
                {
                    break;
                }
            }
        }
        Ok(out)
    }
}
