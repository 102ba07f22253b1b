//! The fields that concern the message as a whole: host, expectation, persistence and framing. The framing
//! rules exclude request smuggling: a length and a transfer coding, two lengths or a coding after chunked are
//! refused.

use super::{Framing, Head, Method, target::is_authority};
use crate::limits::{Limits, Refusal};

/// The values of those fields so far.
#[derive(Default)]
pub struct MessageFields {
    length: Option<u64>,
    codings: bool,
    chunked: bool,
    unknown_coding: bool,
    host: bool,
    close: bool,
    keep_alive: bool,
}

impl MessageFields {
    #[inline]
    pub fn add(&mut self, name: &[u8], value: &[u8], head: &mut Head) -> Result<(), Refusal> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.host(value),
            6 if name.eq_ignore_ascii_case(b"expect") => self.expect(value, head),
            7 if name.eq_ignore_ascii_case(b"upgrade") => {
                head.upgrades |= value.eq_ignore_ascii_case(b"websocket");
                Ok(())
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.connection(value);
                Ok(())
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => self.content_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.transfer_encoding(value),
            _ => Ok(()),
        }
    }

    fn host(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.host {
            return Err(Refusal::bad("more than one host"));
        }
        self.host = true;
        if is_authority(value) { Ok(()) } else { Err(Refusal::bad("host")) }
    }

    fn expect(&self, value: &[u8], head: &mut Head) -> Result<(), Refusal> {
        let mut members = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        if !members.all(|member| member.eq_ignore_ascii_case(b"100-continue")) {
            return Err(Refusal::of(417, "expectation"));
        }
        // An expectation from an HTTP/1.0 client is ignored (RFC 9110, 10.1.1).
        head.expects = !head.is_http10;
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.length.is_some() {
            return Err(Refusal::bad("more than one content-length"));
        }
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(Refusal::bad("content-length"));
        }
        let digits = value.iter().try_fold(0_u64, |sum, digit| {
            sum.checked_mul(10).and_then(|sum| sum.checked_add(u64::from(digit - b'0')))
        });
        // A length that does not fit exceeds every limit.
        self.length = Some(digits.unwrap_or(u64::MAX));
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.codings = true;
        for coding in value.split(|&byte| byte == b',') {
            let coding = coding.trim_ascii();
            if self.chunked {
                return Err(Refusal::bad("a coding after chunked"));
            }
            if coding.eq_ignore_ascii_case(b"chunked") {
                self.chunked = true;
            } else if coding.is_empty() || coding.eq_ignore_ascii_case(b"identity") {
                return Err(Refusal::bad("transfer-encoding"));
            } else {
                self.unknown_coding = true;
            }
        }
        Ok(())
    }

    pub fn finish(&self, head: &mut Head, limits: &Limits) -> Result<(), Refusal> {
        if self.codings {
            if self.length.is_some() {
                return Err(Refusal::bad("content-length with transfer-encoding"));
            }
            if head.is_http10 {
                return Err(Refusal::bad("transfer-encoding in HTTP/1.0"));
            }
            if !self.chunked {
                return Err(Refusal::bad("chunked is not the last coding"));
            }
            if self.unknown_coding {
                return Err(Refusal::of(501, "transfer coding"));
            }
            head.framing = Framing::Chunked;
        } else if let Some(length) = self.length {
            if length > limits.body_bytes_max {
                return Err(Refusal::of(413, "body too long"));
            }
            head.framing = Framing::Length(length);
        }
        if !self.host && !head.is_http10 {
            return Err(Refusal::bad("no host"));
        }
        head.expects &= head.framing != Framing::Length(0);
        head.upgrades &= head.method == Method::Get && !head.is_http10 && head.framing == Framing::Length(0);
        head.keeps_alive = !self.close && (head.keeps_alive || self.keep_alive);
        Ok(())
    }
}
